import { afterEach, describe, expect, test } from '@jest/globals';
import { KeyRotation } from '../../../src/tokens/key-rotation.ts';
import type { Session } from '../../../src/tokens/sessions/session.ts';
import { SigningKeys, type Algorithm } from '../../../src/tokens/signing-keys.ts';
import { Tokens } from '../../../src/tokens/jwt.ts';
import { MemoryCluster, type MemoryClient } from '../../fakes/cluster.ts';
import { logOfLines } from '../../fakes/log.ts';
import { keyMaker } from '../../fakes/signing-keys.ts';
import { FakeClock, settle } from '../../labs/cluster-fakes.ts';

const namespace = 'platform-system';
const path = `/api/v1/namespaces/${namespace}/secrets`;
const name = 'platform-signing-keys';
const minute = 60_000;
const hour = 60 * minute;
const algorithms: readonly Algorithm[] = ['ES256', 'RS256'];
const usual = {
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
  readonly client: MemoryClient;
  readonly keys: SigningKeys;
  readonly rotation: KeyRotation;
  readonly tokens: Tokens;
  readonly lines: () => string[];
}

/** Starts a lab with one cluster. Shorter intervals in `changes` make a test of several intervals faster. */
async function lab(changes: Partial<typeof usual> = {}) {
  const settings = { ...usual, ...changes };
  const clock = new FakeClock();
  const cluster = new MemoryCluster(clock);
  const makeKey = keyMaker();
  const replica = async (isLeader: () => boolean = () => true): Promise<Replica> => {
    const client = cluster.client();
    const { log, lines } = logOfLines();
    const keys = new SigningKeys({ client, namespace, makeKey, clock, log });
    await keys.start();
    const rotation = new KeyRotation({ keys, settings: () => settings, isLeader, clock, log });
    rotation.start();
    running.push(keys, rotation);
    await settle();
    return {
      client,
      keys,
      rotation,
      lines,
      tokens: new Tokens({ keys, idTokenClients: () => [], settings: () => settings, clock: () => clock.now() }),
    };
  };
  const pass = async (time: number): Promise<void> => {
    const target = clock.now() + time;
    while (clock.now() < target) await clock.advance(Math.min(5_000, target - clock.now()));
  };
  const until = async (what: () => boolean): Promise<void> => {
    const latest = clock.now() + 2 * settings.keyRotation;
    while (!what()) {
      if (clock.now() > latest) throw new Error('it has not happened for two rotations');
      await pass(5_000);
    }
  };
  /** Sets the annotation `platform.io/rotate-keys`, or removes it if `text` is undefined. */
  const command = (text: string | undefined): void => {
    const secret = cluster.get(path, name) ?? { metadata: { name } };
    cluster.put(path, {
      ...secret,
      metadata: { ...secret.metadata, annotations: text === undefined ? {} : { 'platform.io/rotate-keys': text } },
    });
  };
  const issue = ({ tokens }: Replica): string => {
    const spec = { clientID: 'platform', expiresAt: new Date(clock.now() + 999 * hour).toISOString() };
    return tokens.issueAccess({ metadata: { name: 's' }, spec } as Session, subject, undefined).token;
  };
  return {
    settings,
    clock,
    cluster,
    replica,
    pass,
    until,
    command,
    issue,
    data: () => Object.keys(cluster.get(path, name)?.['data'] ?? {}),
    retired: (): unknown[] => {
      const { 'retired.json': text = '' } = (cluster.get(path, name)?.['data'] ?? {}) as Record<string, string>;
      return JSON.parse(Buffer.from(text, 'base64').toString('utf8')) as unknown[];
    },
  };
}

const signing = ({ keys }: Replica): string[] => algorithms.map((alg) => keys.current(alg).kid);
const published = ({ keys }: Replica): string[] => keys.published().map(({ kid }) => kid);

describe('a key rotation', () => {
  test('a key rotation publishes the next keys for ten minutes before signing with them, and accepts the previous keys while their tokens are valid', async () => {
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
    // Tokens signed by either key are valid on either replica.
    const last = issue(two);
    for (const { tokens } of [one, two])
      for (const token of [old, last]) expect(tokens.verifyAccess(token)).toBeDefined();
    await pass(100 * minute);
    for (const { tokens } of [one, two]) expect(tokens.verifyAccess(old)).toBeDefined();
    await pass(40 * minute);
    for (const kid of before) expect([published(one), published(two)].flat()).not.toContain(kid);
    expect(published(one)).toHaveLength(2);
  });

  test('a key rotation keeps only the public half of previous keys', async () => {
    const { replica, pass, until, command, retired } = await lab();
    const one = await replica();
    command('now');
    await until(() => published(one).length === 4);
    await pass(11 * minute);
    expect(retired()).toHaveLength(2);
    for (const key of retired()) expect(JSON.stringify(key)).toMatch(/^(?!.*PRIVATE).*BEGIN PUBLIC KEY/);
  });

  test('a key rotation starts exactly when the keys reach the configured age', async () => {
    const { settings, replica, clock, until } = await lab();
    const one = await replica();
    const started = clock.now();
    await clock.advance(settings.keyRotation - minute);
    expect(published(one)).toHaveLength(2);
    await until(() => published(one).length === 4);
    expect(clock.now() - started).toBeGreaterThanOrEqual(settings.keyRotation);
  });

  test('each new value of the annotation rotate-keys starts one key rotation', async () => {
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

  test('a key rotation takes place once, even if several replicas consider themselves responsible', async () => {
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

  test('a replica that is not responsible for key rotation does not start one', async () => {
    const { replica, pass, command } = await lab();
    const one = await replica(() => false);
    command('now');
    await pass(30_000);
    expect(published(one)).toHaveLength(2);
  });

  test('a key rotation with an invalid Secret changes nothing, and the problem is logged once until the Secret is repaired', async () => {
    const { cluster, replica, pass } = await lab();
    const one = await replica();
    const before = signing(one);
    const secret = cluster.get(path, name) ?? { metadata: { name } };
    const broken = { ...(secret['data' as never] as object), 'rotation.json': Buffer.from('{').toString('base64') };
    cluster.put(path, { ...secret, data: broken });
    await settle();
    await pass(30_000);
    expect(signing(one)).toEqual(before);
    const logged = (): string[] => one.lines().filter((line) => line.includes('signing key rotation failed'));
    expect(logged()).toEqual([expect.stringContaining('JSON')]);
    for (const data of [secret['data'], broken]) {
      cluster.put(path, { ...secret, data });
      await settle();
      await pass(10_000);
    }
    expect(logged()).toHaveLength(2);
  });

  test('a key rotation by age starts when the interval is over, and again one interval after the new keys came into use', async () => {
    const { settings, replica, clock, pass, until } = await lab({
      keyRotation: 40 * minute,
      accessTokenMaxAge: 15 * minute,
    });
    const one = await replica();
    const created = clock.now();
    const first = signing(one);
    await until(() => published(one).length === 4);
    expect(clock.now() - created).toBe(settings.keyRotation);
    await until(() => signing(one)[0] !== first[0]);
    const since = clock.now();
    expect(since - created).toBe(settings.keyRotation + 10 * minute);
    const second = signing(one);
    // Meanwhile the server deletes the retired keys.
    await pass(settings.keyRotation - minute);
    expect(published(one).toSorted()).toEqual(second.toSorted());
    await until(() => published(one).length === 4);
    expect(clock.now() - since).toBe(settings.keyRotation);
    const logged = one.lines().map((line) => JSON.parse(line) as { message: string; reason?: string });
    expect(logged.map(({ message, reason }) => [message, reason]).filter(([message]) => message !== 'listed')).toEqual([
      ['next signing keys published', 'age'],
      ['signing keys rotated', undefined],
      ['next signing keys published', 'age'],
    ]);
  });

  test('a key rotation keeps retired keys for the lifetime of an access token, the clock skew and five minutes', async () => {
    const { settings, replica, pass, until, command } = await lab({ accessTokenMaxAge: 15 * minute });
    const one = await replica();
    const before = signing(one);
    command('now');
    await until(() => signing(one)[0] !== before[0]);
    await pass(settings.accessTokenMaxAge + settings.maximumClockSkew + 5 * minute - 5_000);
    expect(published(one)).toEqual(expect.arrayContaining(before));
    await pass(10_000);
    expect(published(one)).toHaveLength(2);
  });

  test('a key rotation does not start when the annotation rotate-keys is removed or set to its previous value', async () => {
    const { replica, pass, until, command } = await lab({ keyRotation: 45 * minute, accessTokenMaxAge: 10 * minute });
    const one = await replica();
    command('first');
    await until(() => published(one).length === 4);
    await pass(11 * minute);
    command(undefined);
    await pass(30 * minute);
    expect(published(one)).toHaveLength(2);
    // A key rotation by age keeps the stored value of the annotation.
    await until(() => published(one).length === 4);
    await pass(30 * minute);
    command('first');
    await pass(minute);
    expect(published(one)).toHaveLength(2);
  });

  test('a key rotation waits while sixteen retired keys are kept, however often the rotation is requested', async () => {
    const { replica, pass, command, retired } = await lab();
    await replica();
    let max = 0;
    for (let time = 0; time < 15; time += 1) {
      command(`command ${time}`);
      await pass(11 * minute);
      max = Math.max(max, retired().length);
    }
    expect(max).toBe(16);
  });

  test('a stopped replica does not start a key rotation', async () => {
    const { replica, pass, command } = await lab();
    const one = await replica();
    one.rotation.stop();
    command('now');
    await pass(minute);
    expect(published(one)).toHaveLength(2);
  });

  test('a replica that stops during a write of a key rotation does not continue this key rotation', async () => {
    const { replica, pass, until, command } = await lab();
    const [one, two] = [await replica(), await replica()];
    one.rotation.stop();
    two.client.after = ({ method }) => {
      if (method === 'PUT') two.rotation.stop();
    };
    command('now');
    await until(() => published(one).length === 4);
    const before = signing(one);
    await pass(20 * minute);
    expect(signing(one)).toEqual(before);
  });
});

test('token verifications stay cached when a key rotation publishes new keys', async () => {
  const { replica, until, command } = await lab();
  const one = await replica();
  const { generation } = one.keys;
  command('now');
  await until(() => published(one).length === 4);
  expect(one.keys.generation).toBe(generation);
});
