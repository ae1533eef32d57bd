import { afterEach, describe, expect, test } from '@jest/globals';
import { KeyRotation } from '../../../src/accounts/key-rotation.ts';
import type { Session } from '../../../src/accounts/sessions/session.ts';
import { SigningKeys, type Algorithm } from '../../../src/accounts/signing-keys.ts';
import { Tokens } from '../../../src/auth/tokens.ts';
import { MemoryCluster } from '../../fakes/cluster.ts';
import { logOfLines } from '../../fakes/log.ts';
import { keyMaker } from '../../fakes/signing-keys.ts';
import { FakeClock, settle } from '../kube/fakes.ts';

const namespace = 'platform-system';
const path = `/api/v1/namespaces/${namespace}/secrets`;
const name = 'platform-signing-keys';
const minute = 60_000;
const hour = 60 * minute;
const algorithms: readonly Algorithm[] = ['ES256', 'RS256'];
const settings = {
  issuer: 'https://platform.example',
  signingAlgorithm: 'ES256' as const,
  keyRotation: 6 * hour,
  accessTokenMaxAge: 2 * hour,
  maximumClockSkew: 10_000,
};
const subject = { username: 'alice', uid: 'u', groups: [], displayName: undefined, email: undefined };

const running: { stop(): void }[] = [];
afterEach(() => {
  for (const one of running.splice(0)) one.stop();
});

interface Replica {
  readonly keys: SigningKeys;
  readonly tokens: Tokens;
  readonly lines: () => string[];
}

async function lab() {
  const clock = new FakeClock();
  const cluster = new MemoryCluster(clock);
  const makeKey = keyMaker();
  const replica = async (isOurs: () => boolean = () => true): Promise<Replica> => {
    const client = cluster.client();
    const { log, lines } = logOfLines();
    const keys = await SigningKeys.load(client, namespace, makeKey);
    keys.follow(log, clock);
    const rotation = new KeyRotation({ keys, settings: () => settings, isOurs, clock, log });
    rotation.start();
    running.push(keys, rotation);
    await settle();
    return { keys, lines, tokens: new Tokens({ keys, settings: () => settings, clock: () => clock.now() }) };
  };
  const pass = async (time: number): Promise<void> => {
    const target = clock.now() + time;
    while (clock.now() < target) await clock.advance(Math.min(5_000, target - clock.now()));
  };
  const until = async (what: () => boolean): Promise<void> => {
    while (!what()) await pass(5_000);
  };
  const command = (text: string): void => {
    const secret = cluster.get(path, name) ?? { metadata: { name } };
    cluster.put(path, {
      ...secret,
      metadata: { ...secret.metadata, annotations: { 'platform.io/rotate-keys': text } },
    });
  };
  const issue = ({ tokens }: Replica): string => {
    const spec = { clientID: 'platform', expiresAt: new Date(clock.now() + 999 * hour).toISOString() };
    return tokens.issueAccess({ metadata: { name: 's' }, spec } as Session, subject, undefined).token;
  };
  return {
    clock,
    cluster,
    replica,
    pass,
    until,
    command,
    issue,
    data: () => Object.keys(cluster.get(path, name)?.['data'] ?? {}),
  };
}

const signing = ({ keys }: Replica): string[] => algorithms.map((alg) => keys.current(alg).kid);
const published = ({ keys }: Replica): string[] => keys.published().map(({ kid }) => kid);

describe('a rotation', () => {
  test('publishes the next keys for ten minutes, then signs with them, and verifies with those before as long as a token lives', async () => {
    const { replica, pass, until, command, issue, data } = await lab();
    const [one, two] = [await replica(), await replica(() => false)];
    const before = signing(one);
    const old = issue(one);
    command('now');
    await until(() => published(one).length === 4);
    expect(signing(one)).toEqual(before);
    expect(new Set(published(two))).toEqual(new Set(published(one)));
    await pass(9 * minute);
    expect(signing(one)).toEqual(before);
    await pass(2 * minute);
    const after = signing(one);
    for (const kid of before) expect(after).not.toContain(kid);
    expect(signing(two)).toEqual(after);
    expect(data().toSorted()).toEqual(['ES256.pem', 'RS256.pem', 'retired.json', 'rotation.json']);
    // Whatever was signed by either key is good on either replica.
    const last = issue(two);
    for (const { tokens } of [one, two])
      for (const token of [old, last]) expect(tokens.verifyAccess(token)).toBeDefined();
    await pass(100 * minute);
    for (const { tokens } of [one, two]) expect(tokens.verifyAccess(old)).toBeDefined();
    await pass(40 * minute);
    for (const kid of before) expect([published(one), published(two)].flat()).not.toContain(kid);
    expect(published(one)).toHaveLength(2);
  });

  test('keeps of what signed before the public half only', async () => {
    const { cluster, replica, pass, until, command } = await lab();
    const one = await replica();
    command('now');
    await until(() => published(one).length === 4);
    await pass(11 * minute);
    const { 'retired.json': text = '' } = (cluster.get(path, name)?.['data'] ?? {}) as Record<string, string>;
    const retired = Buffer.from(text, 'base64').toString('utf8');
    expect(retired).toContain('BEGIN PUBLIC KEY');
    expect(retired).not.toContain('PRIVATE');
  });

  test('begins when the keys are old enough, and not before', async () => {
    const { replica, clock, until } = await lab();
    const one = await replica();
    const begun = clock.now();
    await clock.advance(settings.keyRotation - minute);
    expect(published(one)).toHaveLength(2);
    await until(() => published(one).length === 4);
    expect(clock.now() - begun).toBeGreaterThanOrEqual(settings.keyRotation);
  });

  test('is asked for once by each command', async () => {
    const { replica, pass, until, command } = await lab();
    const one = await replica();
    command('first');
    await until(() => published(one).length === 4);
    await pass(11 * minute);
    const after = signing(one);
    await pass(3 * hour);
    expect(signing(one)).toEqual(after);
    command('second');
    await until(() => published(one).length === 4);
  });

  test('is done once by replicas that all believe that it is theirs', async () => {
    const { replica, pass, until, command } = await lab();
    const all = [await replica(), await replica(), await replica()];
    command('now');
    await until(() => all.every((one) => published(one).length === 4));
    await pass(20_000);
    for (const one of all) expect(published(one)).toHaveLength(4);
    await pass(11 * minute);
    for (const one of all) expect(signing(one)).toEqual(signing(all[0] as Replica));
    for (const one of all) expect(published(one)).toHaveLength(4);
  });

  test('is not for a replica whose turn it is not', async () => {
    const { replica, pass, command } = await lab();
    const one = await replica(() => false);
    command('now');
    await pass(30_000);
    expect(published(one)).toHaveLength(2);
  });

  test('of a Secret that holds something else changes nothing, and is logged once', async () => {
    const { cluster, replica, pass } = await lab();
    const one = await replica();
    const before = signing(one);
    const secret = cluster.get(path, name) ?? { metadata: { name } };
    const broken = { ...(secret['data' as never] as object), 'rotation.json': Buffer.from('{').toString('base64') };
    cluster.put(path, { ...secret, data: broken });
    await pass(30_000);
    expect(signing(one)).toEqual(before);
    expect(one.lines().filter((line) => line.includes('cannot be rotated'))).toHaveLength(1);
  });
});

test('a rotation makes nobody verify again what is verified already, until a key is gone', async () => {
  const { replica, until, command } = await lab();
  const one = await replica();
  const { generation } = one.keys;
  command('now');
  await until(() => published(one).length === 4);
  expect(one.keys.generation).toBe(generation);
});
