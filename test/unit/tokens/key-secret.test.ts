import { afterEach, describe, expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { KeySecret } from '../../../src/tokens/key-secret.ts';
import { KubeError, unreachable } from '../../../src/cluster/client/kube-error.ts';
import { MemoryCluster, type MemoryClient } from '../../fakes/cluster.ts';
import { logOfLines } from '../../fakes/log.ts';
import { FakeClock, settle } from '../../labs/cluster-fakes.ts';

const namespace = 'platform-system';
const path = `/api/v1/namespaces/${namespace}/secrets`;
const name = 'keys';
const minute = 60_000;

const running: KeySecret[] = [];
afterEach(() => {
  for (const secret of running.splice(0)) secret.stop();
});

interface Replica {
  readonly client: MemoryClient;
  readonly secret: KeySecret;
  /** Returns the active key, or undefined if there is none. */
  readonly key: () => string | undefined;
  /** Returns how often keys became active. */
  readonly uses: () => number;
  readonly lines: () => string[];
}

interface Lab {
  readonly cluster: MemoryCluster;
  readonly clock: FakeClock;
  readonly start: () => Promise<Replica>;
  readonly stored: () => unknown;
}

function lab(): Lab {
  const clock = new FakeClock();
  const cluster = new MemoryCluster(clock);
  return {
    cluster,
    clock,
    stored: () => (cluster.get(path, name)?.['data'] as { key?: unknown } | undefined)?.key,
    start: async () => {
      const client = cluster.client();
      const { log, lines } = logOfLines();
      let key: string | undefined;
      let uses = 0;
      const secret = new KeySecret({
        client,
        namespace,
        log,
        clock,
        name,
        make: () => ({ key: randomBytes(8) }),
        use: ({ key: bytes }) => {
          if (bytes?.length !== 8) throw new Error('no key');
          key = bytes.toString('base64');
          uses += 1;
        },
      });
      running.push(secret);
      await secret.start();
      await settle();
      return { client, secret, key: () => key, uses: () => uses, lines };
    },
  };
}

const put = (cluster: MemoryCluster, data: object): void => cluster.put(path, { metadata: { name }, data });

describe('replicas that watch the same key Secret', () => {
  test('replicas that watch the same key Secret have the key that the first replica created', async () => {
    const { start, stored } = lab();
    const all = await Promise.all([start(), start(), start()]);
    expect(all.map(({ key }) => key())).toEqual(all.map(() => stored()));
  });

  test('replicas that watch the same key Secret get the same new key each time the Secret is deleted', async () => {
    const { cluster, start, stored } = lab();
    const [one, two] = [await start(), await start()];
    const seen = new Set([one.key()]);
    for (let time = 0; time < 3; time += 1) {
      cluster.delete(path, name);
      await settle();
      expect([one.key(), two.key()]).toEqual([stored(), stored()]);
      seen.add(one.key());
    }
    expect(seen.size).toBe(4);
    expect(one.lines().join('\n')).toContain('new keys were created');
  });

  test('replicas that watch the same key Secret agree even if another replica has created a new key first', async () => {
    const { cluster, start, stored } = lab();
    const [one, two] = [await start(), await start()];
    const before = one.key();
    for (const { client } of [one, two]) client.holdWatches();
    cluster.delete(path, name);
    const three = await start();
    for (const { client } of [one, two]) client.releaseWatches();
    await settle();
    expect(three.key()).not.toBe(before);
    expect([stored(), one.key(), two.key()]).toEqual([three.key(), three.key(), three.key()]);
  });

  test('replicas that watch the same key Secret apply the keys that were read at the start exactly once', async () => {
    const { cluster, start } = lab();
    const { uses } = await start();
    expect(uses()).toBe(1);
    put(cluster, { key: randomBytes(8).toString('base64') });
    await settle();
    expect(uses()).toBe(2);
  });

  test('replicas that watch the same key Secret use the key that an administrator stores', async () => {
    const { cluster, start } = lab();
    const [one, two] = [await start(), await start()];
    const key = randomBytes(8).toString('base64');
    put(cluster, { key });
    await settle();
    expect([one.key(), two.key()]).toEqual([key, key]);
  });

  test.each([{}, { key: 'AAAA' }])(
    'replicas that watch the same key Secret keep their key when %j is stored, and report the problem',
    async (data) => {
      const { cluster, start } = lab();
      const one = await start();
      const before = one.key();
      put(cluster, data);
      await settle();
      expect(one.key()).toBe(before);
      expect(one.lines().join('\n')).toMatch(/no key.*Secret with keys is invalid/);
    },
  );
});

test('a key Secret that cannot be recreated at once is recreated within one minute', async () => {
  const { cluster, clock, start, stored } = lab();
  const { client, key, lines } = await start();
  const before = key();
  client.before = ({ method }) => {
    if (method === 'POST') throw unreachable(new Error('reset'));
  };
  cluster.delete(path, name);
  await settle();
  expect(stored()).toBeUndefined();
  expect(key()).toBe(before);
  expect(lines().join('\n')).toMatch(/reset.*could not be recreated/);
  client.before = () => undefined;
  await clock.advance(minute);
  expect(stored()).toBe(key());
  expect(key()).not.toBe(before);
});

test('a key Secret without a key is rejected at the start', async () => {
  const { cluster, start } = lab();
  put(cluster, {});
  await expect(start()).rejects.toThrow('no key');
});

test('a key Secret that cannot be recreated for three minutes is recreated within another minute', async () => {
  const { cluster, clock, start, stored } = lab();
  const { client, key } = await start();
  client.before = ({ method }) => {
    if (method === 'POST') throw unreachable(new Error('reset'));
  };
  cluster.delete(path, name);
  await clock.advance(3 * minute);
  expect(stored()).toBeUndefined();
  client.before = () => undefined;
  await clock.advance(minute);
  expect(stored()).toBe(key());
});

test('an existing key Secret is not created again or reported as deleted', async () => {
  const { clock, start } = lab();
  const { client, lines } = await start();
  const before = client.requestsTo('GET', `/${name}`).length;
  await clock.advance(5 * minute);
  expect(client.requestsTo('GET', `/${name}`)).toHaveLength(before);
  expect(lines().join('\n')).not.toContain('deleted');
});

test('a key Secret that has not been read yet is not treated as deleted', async () => {
  const { cluster, clock } = lab();
  const client = cluster.client();
  const { log, lines } = logOfLines();
  const secret = new KeySecret({
    client,
    namespace,
    log,
    clock,
    name,
    make: () => ({ key: randomBytes(8) }),
    use: () => undefined,
  });
  running.push(secret);
  client.holdWatches();
  await secret.start();
  await clock.advance(minute);
  expect(lines().join('\n')).not.toContain('deleted');
});

describe('a change of the key Secret', () => {
  const other = { key: Buffer.alloc(8) };

  test('a change of the key Secret is computed from the current contents of the Secret, and is written', async () => {
    const { start, stored } = lab();
    const { secret, key } = await start();
    const before = key();
    let given: unknown;
    await secret.change(async (data, metadata) => {
      given = [data['key']?.toString('base64'), metadata.name];
      return other;
    });
    await settle();
    expect(given).toEqual([before, name]);
    expect([stored(), key()]).toEqual([other.key.toString('base64'), other.key.toString('base64')]);
  });

  test('a change of the key Secret writes nothing if its function returns undefined', async () => {
    const { start } = lab();
    const { client, secret } = await start();
    await secret.change(async () => undefined);
    expect(client.requestsTo('PUT', `/${name}`)).toEqual([]);
  });

  test('a change of the key Secret is not attempted before the Secret is read, or while the Secret does not exist', async () => {
    const { cluster, clock, start } = lab();
    const client = cluster.client();
    const { log } = logOfLines();
    const early = new KeySecret({ client, namespace, log, clock, name, make: () => other, use: () => undefined });
    const late = await start();
    late.client.before = ({ method }) => {
      if (method === 'POST') throw unreachable(new Error('reset'));
    };
    cluster.delete(path, name);
    await settle();
    let calls = 0;
    for (const secret of [early, late.secret])
      await secret.change(async () => {
        calls += 1;
        return other;
      });
    expect(calls).toBe(0);
  });

  test('a change of the key Secret is dropped if the Secret is changed or deleted concurrently', async () => {
    const { cluster, start, stored } = lab();
    const { client, secret } = await start();
    const otherKey = Buffer.alloc(8, 1).toString('base64');
    client.before = ({ method }) => {
      if (method === 'PUT') put(cluster, { key: otherKey });
    };
    await secret.change(async () => other);
    expect(stored()).toBe(otherKey);
    await settle();
    client.before = ({ method }) => {
      if (method === 'PUT') cluster.delete(path, name);
    };
    await secret.change(async () => other);
    await settle();
    expect(stored()).not.toBe(other.key.toString('base64'));
  });

  test.each([0, 403, 500])('a change of the key Secret fails if the write fails with the status %i', async (code) => {
    const { start } = lab();
    const { client, secret } = await start();
    client.before = ({ method }) => {
      if (method === 'PUT') throw new KubeError(code, { message: 'refused' });
    };
    await expect(secret.change(async () => other)).rejects.toThrow('refused');
  });
});

test('the key Secret is not watched or recreated after the server has stopped', async () => {
  const { cluster, clock, start, stored } = lab();
  const { secret } = await start();
  secret.stop();
  await settle();
  expect(clock.pending()).toEqual([]);
  cluster.delete(path, name);
  await clock.advance(2 * minute);
  expect(stored()).toBeUndefined();
});
