import { afterEach, expect, test } from '@jest/globals';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { RefreshTokens } from '../../../src/tokens/refresh-tokens.ts';
import { SigningKeys } from '../../../src/tokens/signing-keys.ts';
import { createLogger } from '../../../src/runtime/logger.ts';
import { MemoryCluster } from '../../fakes/cluster.ts';
import { keyMaker } from '../../fakes/signing-keys.ts';
import { FakeClock, settle } from '../../labs/cluster-fakes.ts';

const namespace = 'platform-system';
const path = `/api/v1/namespaces/${namespace}/secrets`;
const log = createLogger({ silent: true });

const running: { stop(): void }[] = [];
afterEach(() => {
  for (const one of running.splice(0)) one.stop();
});

const makeKey = keyMaker();

async function replica(cluster: MemoryCluster, clock = new FakeClock()): Promise<SigningKeys> {
  const keys = new SigningKeys({ client: cluster.client(), namespace, makeKey, clock, log });
  running.push(keys);
  await keys.start();
  await settle();
  return keys;
}

const kids = (keys: SigningKeys): string[] => (['ES256', 'RS256'] as const).map((alg) => keys.current(alg).kid);

test('missing signing keys are created for each algorithm', async () => {
  const keys = new SigningKeys({ client: new MemoryCluster().client(), namespace, clock: new FakeClock(), log });
  running.push(keys);
  await keys.start();
  expect(keys.published().map(({ alg, kty }) => [alg, kty])).toEqual([
    ['RS256', 'RSA'],
    ['ES256', 'EC'],
  ]);
});

test('the signing keys are the same on every replica, and are replaced on all when their Secret is deleted', async () => {
  const cluster = new MemoryCluster();
  const [one, two] = [await replica(cluster), await replica(cluster)];
  const before = kids(one);
  expect(kids(two)).toEqual(before);
  cluster.delete(path, 'platform-signing-keys');
  while (one.find(before[0] ?? '') !== undefined || two.find(before[0] ?? '') !== undefined) await settle();
  expect(kids(two)).toEqual(kids(one));
  expect(kids(await replica(cluster))).toEqual(kids(one));
});

test('the generation of the signing keys does not change if other fields of their Secret change', async () => {
  const cluster = new MemoryCluster();
  const one = await replica(cluster);
  const { generation } = one;
  const secret = cluster.get(path, 'platform-signing-keys');
  cluster.put(path, { ...secret, metadata: { name: 'platform-signing-keys', labels: { a: 'b' } } });
  await settle();
  expect(one.generation).toBe(generation);
});

test('new signing keys replace the previous keys at once', async () => {
  const [cluster, elsewhere] = [new MemoryCluster(), new MemoryCluster()];
  const one = await replica(cluster);
  const other = await replica(elsewhere);
  const before = kids(one);
  const { generation } = one;
  cluster.put(path, elsewhere.get(path, 'platform-signing-keys') ?? { metadata: { name: '' } });
  await settle();
  expect(kids(one)).toEqual(kids(other));
  for (const kid of before) expect(one.find(kid)).toBeUndefined();
  for (const kid of kids(other)) expect(one.find(kid)?.kid).toBe(kid);
  expect(one.generation).not.toBe(generation);
});

test.each<[string, Record<string, string>]>([
  ['a key is missing', {}],
  ['a key is invalid', { 'ES256.pem': 'AAAA', 'RS256.pem': 'AAAA' }],
])('a Secret of signing keys in which %s prevents the start, and is ignored after the start', async (_, data) => {
  const [cluster, broken] = [new MemoryCluster(), new MemoryCluster()];
  const secret = { metadata: { name: 'platform-signing-keys' }, data };
  broken.put(path, secret);
  await expect(replica(broken)).rejects.toThrow(/delete the Secret to create new keys/);
  const one = await replica(cluster);
  const before = kids(one);
  cluster.put(path, secret);
  await settle();
  expect(kids(one)).toEqual(before);
});

test('a new key of refresh tokens in the Secret replaces the previous key at once', async () => {
  const cluster = new MemoryCluster();
  const one = RefreshTokens.stored({ client: cluster.client(), namespace, clock: new FakeClock(), log });
  running.push(one);
  await one.start();
  await settle();
  const sid = '0'.repeat(32);
  const token = one.first(sid);
  const key = Buffer.alloc(32, 9);
  cluster.put(path, { metadata: { name: 'platform-refresh-key' }, data: { key: key.toString('base64') } });
  await settle();
  expect(one.sessionOf(token)).toBeUndefined();
  expect(one.sessionOf(new RefreshTokens(key).first(sid))).toBe(sid);
});

const pemOf = ({ privateKey }: { readonly privateKey: KeyObject }): string =>
  privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

test.each<[string, string, () => string]>([
  ['ES256', 'of another curve', () => pemOf(generateKeyPairSync('ec', { namedCurve: 'P-384' }))],
  ['ES256', 'of RSA', () => pemOf(generateKeyPairSync('rsa', { modulusLength: 2048 }))],
  ['ES256', 'of Ed25519', () => pemOf(generateKeyPairSync('ed25519'))],
  ['RS256', 'of 1024 bits', () => pemOf(generateKeyPairSync('rsa', { modulusLength: 1024 }))],
  ['RS256', 'of RSA-PSS', () => pemOf(generateKeyPairSync('rsa-pss', { modulusLength: 2048 }))],
  ['RS256', 'of an elliptic curve', () => pemOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }))],
  ['RS256', 'that is text', () => 'key'],
])('a signing key for %s %s prevents the start with an error that contains the solution', async (alg, _, pem) => {
  const cluster = new MemoryCluster();
  await replica(cluster);
  const secret = cluster.get(path, 'platform-signing-keys');
  const data = { ...(secret?.['data'] as object), [`${alg}.pem`]: Buffer.from(pem()).toString('base64') };
  cluster.put(path, { ...secret, metadata: { name: 'platform-signing-keys' }, data });
  await expect(replica(cluster)).rejects.toThrow(`is not a valid ${alg} key; delete the Secret`);
});

test('a Secret without one of the signing keys prevents the start with an error that contains the solution', async () => {
  const cluster = new MemoryCluster();
  cluster.put(path, { metadata: { name: 'platform-signing-keys' }, data: {} });
  await expect(replica(cluster)).rejects.toThrow('"RS256.pem" is missing; delete the Secret');
});

test('the Secret with the signing keys is not watched after the server has stopped', async () => {
  const clock = new FakeClock();
  const keys = await replica(new MemoryCluster(clock), clock);
  expect(clock.pending()).not.toEqual([]);
  keys.stop();
  await settle();
  expect(clock.pending()).toEqual([]);
});

test('the generation of the signing keys changes when one of several keys is deleted', async () => {
  const cluster = new MemoryCluster();
  const one = await replica(cluster);
  const { generation } = one;
  const secret = cluster.get(path, 'platform-signing-keys');
  const pem = pemOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }));
  const data = { ...(secret?.['data'] as object), 'ES256.pem': Buffer.from(pem).toString('base64') };
  cluster.put(path, { ...secret, metadata: { name: 'platform-signing-keys' }, data });
  await settle();
  expect(one.generation).not.toBe(generation);
});
