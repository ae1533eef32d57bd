import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { SecretRefs, secretValue } from '../../../src/cluster/secret-refs.ts';
import { createLogger } from '../../../src/runtime/logger.ts';
import { MemoryCluster, type MemoryClient } from '../../fakes/cluster.ts';
import { FakeClock, settle } from '../../labs/cluster-fakes.ts';

const namespace = 'platform-system';
const path = `/api/v1/namespaces/${namespace}/secrets`;
const key = 'password';

let clock: FakeClock;
let cluster: MemoryCluster;
let client: MemoryClient;
let changes: number;
let release: () => void;
let secrets: SecretRefs;
beforeEach(() => {
  clock = new FakeClock();
  cluster = new MemoryCluster(clock);
  client = cluster.client();
  changes = 0;
  release = () => undefined;
  secrets = new SecretRefs({
    client,
    namespace,
    clock,
    log: createLogger({ silent: true }),
  });
  secrets.changed.subscribe(() => {
    changes += 1;
  });
});
afterEach(async () => {
  release();
  await settle();
  secrets.stop();
});

const encoded = (text: string): string => Buffer.from(text).toString('base64');
const put = (name: string, value: string): void =>
  cluster.put(path, { metadata: { name }, data: { [key]: encoded(value) } });

async function follow(...names: readonly string[]): Promise<void> {
  secrets.follow(new Set(names));
  await settle();
}

/** The list of this Secret gets no response until `release` is called. */
function hold(name: string): void {
  const held = new Promise<void>((resolve) => (release = resolve));
  client.before = async ({ query }) => {
    if (query['fieldSelector'] === `metadata.name=${name}`) await held;
  };
}

test.each([
  ['secret', 'secret'],
  ['secret\n', 'secret'],
  ['secret\r\n', 'secret'],
  ['secret\n\n', 'secret\n'],
  ['two\nlines\n', 'two\nlines'],
  ['\n', ''],
  [' secret ', ' secret '],
])('the value %j of a Secret is read as %j', (text, value) => {
  expect(secretValue({ metadata: { name: 'a' }, data: { [key]: encoded(text) } }, key)).toBe(value);
});

test.each([
  ['missing Secret', undefined],
  ['Secret without data', { metadata: { name: 'a' } }],
  ['Secret without the key', { metadata: { name: 'a' }, data: {} }],
])('the value of a Secret reference is undefined for a %s', (_, secret) => {
  expect(secretValue(secret, key)).toBeUndefined();
});

describe('the referenced Secrets', () => {
  test('the referenced Secrets are read, and every change is reported', async () => {
    put('a', 'first');
    await follow('a');
    expect(secrets.read({ name: 'a', key })).toBe('first');
    const before = changes;
    put('a', 'second');
    await settle();
    expect(secrets.read({ name: 'a', key })).toBe('second');
    cluster.delete(path, 'a');
    await settle();
    expect(secrets.read({ name: 'a', key })).toBeUndefined();
    expect(changes).toBe(before + 2);
  });

  test('a Secret that is no longer referenced is no longer read', async () => {
    for (const name of ['a', 'b']) put(name, name);
    await follow('a');
    await follow('a', 'b');
    const lists = client.requestsTo('GET', '/secrets').map(({ query }) => query['fieldSelector']);
    expect(lists).toEqual(['metadata.name=a', 'metadata.name=b']);
    await follow('b');
    expect(secrets.read({ name: 'a', key })).toBeUndefined();
    expect(secrets.read({ name: 'b', key })).toBe('b');
    const before = changes;
    put('a', 'later');
    await settle();
    expect(changes).toBe(before);
  });

  test('the referenced Secrets are synced after all were read, even if one is missing', async () => {
    put('b', 'b');
    hold('b');
    await follow('a', 'b');
    let settled = false;
    const waiting = secrets.settled().then(() => (settled = true));
    await settle();
    expect([settled, secrets.hasSynced(), changes]).toEqual([false, false, 0]);
    release();
    await waiting;
    await settle();
    expect(secrets.hasSynced()).toBe(true);
    expect(changes).toBeGreaterThan(0);
  });

  test('the referenced Secrets are reported once when all of them are missing', async () => {
    await follow('a');
    expect([secrets.hasSynced(), changes]).toEqual([true, 1]);
  });

  test('waiting for the referenced Secrets ends when the signal is aborted', async () => {
    hold('a');
    await follow('a');
    await expect(secrets.settled(AbortSignal.abort(new Error('too late')))).rejects.toThrow('too late');
  });

  test('the referenced Secrets are no longer watched after the server has stopped', async () => {
    put('a', 'a');
    await follow('a');
    secrets.stop();
    await settle();
    const before = changes;
    put('a', 'later');
    await settle();
    expect(changes).toBe(before);
    expect(clock.pending()).toEqual([]);
  });
});

test('an error explains why a value of a Secret is unusable', async () => {
  cluster.put(path, { metadata: { name: 'a' }, data: { [key]: encoded('x'), empty: '' } });
  await follow('a', 'b');
  const problems = [
    { name: 'a', key },
    { name: 'a', key: 'empty' },
    { name: 'a', key: 'other' },
    { name: 'b', key },
    { name: 'c', key },
  ].map((ref) => secrets.problemOf(ref));
  expect(problems).toEqual([
    undefined,
    'key "empty" of Secret "a" is empty',
    'Secret "a" has no key "other"',
    'Secret "b" not found in namespace "platform-system"',
    'Secret "c" not found in namespace "platform-system"',
  ]);
  expect(secrets.read({ name: 'c', key })).toBeUndefined();
});
