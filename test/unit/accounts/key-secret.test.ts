import { afterEach, describe, expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { KeySecret } from '../../../src/accounts/key-secret.ts';
import { unreachable } from '../../../src/kube/kube-error.ts';
import { MemoryCluster, type MemoryClient } from '../../fakes/cluster.ts';
import { logOfLines } from '../../fakes/log.ts';
import { FakeClock, settle } from '../kube/fakes.ts';

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
  /** The key in force; undefined before there is one. */
  readonly key: () => string | undefined;
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
      const secret = new KeySecret({
        client,
        namespace,
        name,
        make: () => ({ key: randomBytes(8) }),
        use: ({ key: bytes }) => {
          if (bytes?.length !== 8) throw new Error('no key');
          key = bytes.toString('base64');
        },
      });
      running.push(secret);
      await secret.load();
      secret.follow(log, clock);
      await settle();
      return { client, key: () => key, lines };
    },
  };
}

const put = (cluster: MemoryCluster, data: object): void => cluster.put(path, { metadata: { name }, data });

describe('replicas that follow the same Secret', () => {
  test('have the key that the first of them made', async () => {
    const { start, stored } = lab();
    const all = await Promise.all([start(), start(), start()]);
    expect(all.map(({ key }) => key())).toEqual(all.map(() => stored()));
  });

  test('have the same new key when somebody deletes it, as often as that is', async () => {
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
    expect(one.lines().join('\n')).toContain('there are new keys');
  });

  test('agree although another has made a new key before they could', async () => {
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

  test('take over what an administrator puts there', async () => {
    const { cluster, start } = lab();
    const [one, two] = [await start(), await start()];
    const key = randomBytes(8).toString('base64');
    put(cluster, { key });
    await settle();
    expect([one.key(), two.key()]).toEqual([key, key]);
  });

  test.each([{}, { key: 'AAAA' }])('keep theirs when %j is put there, and say so', async (data) => {
    const { cluster, start } = lab();
    const one = await start();
    const before = one.key();
    put(cluster, data);
    await settle();
    expect(one.key()).toBe(before);
    expect(one.lines().join('\n')).toContain('not used');
  });
});

test('a Secret that cannot be made again at once is made within a minute', async () => {
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
  expect(lines().join('\n')).toContain('cannot be made again');
  client.before = () => undefined;
  await clock.advance(minute);
  expect(stored()).toBe(key());
  expect(key()).not.toBe(before);
});

test('a Secret that holds no key is refused at the start', async () => {
  const { cluster, start } = lab();
  put(cluster, {});
  await expect(start()).rejects.toThrow('no key');
});
