import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Account } from '../../../src/accounts/directory/account.ts';
import { LoginHistories, type Login, type LoginRecord } from '../../../src/accounts/login-history.ts';
import { loginHistoriesPath } from '../../../src/config/names.ts';
import type { KubeObject } from '../../../src/kube/kube-object.ts';
import { unreachable } from '../../../src/kube/kube-error.ts';
import { createLogger } from '../../../src/logger.ts';
import { MemoryCluster, type MemoryClient } from '../../fakes/cluster.ts';
import { FakeClock } from '../kube/fakes.ts';

const namespace = 'platform-system';
const path = loginHistoriesPath(namespace);
const hour = 3_600_000;
const alice = { username: 'alice', uid: 'uid-of-alice' };
const bob = { username: 'bob', uid: 'uid-of-bob' };
const carol = { username: 'carol', uid: 'uid-of-carol' };

let clock: FakeClock;
let cluster: MemoryCluster;
let settings: { keep: number; maxEntries: number };
/** Bob is an object of the cluster. */
let configured: (typeof alice)[];
beforeEach(() => {
  clock = new FakeClock();
  cluster = new MemoryCluster(clock);
  settings = { keep: 168 * hour, maxEntries: 100 };
  configured = [alice, carol];
});

function replica(maySweep = true): { readonly client: MemoryClient; readonly histories: LoginHistories } {
  const client = cluster.client();
  const histories = new LoginHistories({
    client,
    namespace,
    settings: () => settings,
    directory: {
      configured: (name) => configured.find(({ username }) => username === name) as Account | undefined,
      configuredAccounts: () => configured as Account[],
    },
    loggedIn: () => undefined,
    maySweep: () => maySweep,
    clock,
    log: createLogger({ silent: true }),
  });
  return { client, histories };
}

const login = (changes: Partial<Login> = {}): Login => ({
  reason: 'LoggedIn',
  client: 'platform',
  sourceIP: '192.0.2.1',
  userAgent: 'curl/8',
  ...changes,
});

const stored = (uid: string): readonly LoginRecord[] =>
  (cluster.get(path, uid) as unknown as { status: { records: LoginRecord[] } } | undefined)?.status.records ?? [];

describe('the history of a user', () => {
  test('is one object of the user, the newest first', async () => {
    const { uid } = bob;
    const { histories } = replica();
    histories.add(bob, login({ reason: 'WrongPassword' }));
    await clock.advance(5);
    histories.add(bob, login({ userAgent: 'x'.repeat(1_000) }));
    await clock.advance(2_000);
    expect(stored(uid)).toMatchObject([
      { success: true, reason: 'LoggedIn', userAgent: 'x'.repeat(256) },
      { success: false, reason: 'WrongPassword', client: 'platform', sourceIP: '192.0.2.1', userAgent: 'curl/8' },
    ]);
    expect(cluster.list(path)).toMatchObject([
      { spec: { userName: 'bob' }, metadata: { ownerReferences: [{ kind: 'User', name: 'bob', uid }] } },
    ]);
    expect(await histories.of(bob)).toEqual(stored(uid));
  });

  test('of one who is configured belongs to no object', async () => {
    const { histories } = replica();
    histories.add(alice, login());
    await histories.stop();
    expect(cluster.get(path, alice.uid)?.metadata.ownerReferences).toEqual([]);
  });

  test('shows at once what this replica has yet to write, and once only', async () => {
    const { histories, client } = replica();
    histories.add(alice, login());
    expect(await histories.of(alice)).toHaveLength(1);
    let during: readonly LoginRecord[] = [];
    client.after = async ({ method }) => {
      if (method === 'POST') during = await histories.of(alice);
    };
    await clock.advance(2_000);
    expect(during).toHaveLength(1);
    expect(await histories.of(alice)).toHaveLength(1);
  });

  test('keeps so many and so long', async () => {
    settings = { maxEntries: 3, keep: hour };
    const { histories } = replica();
    for (let index = 0; index < 5; index += 1) {
      histories.add(alice, login({ sourceIP: `192.0.2.${index}` }));
      await clock.advance(10 * 60_000);
    }
    const shown = (await histories.of(alice)).map(({ sourceIP }) => sourceIP);
    expect(shown).toEqual(['192.0.2.4', '192.0.2.3', '192.0.2.2']);
    await clock.advance(35 * 60_000);
    expect(await histories.of(alice)).toHaveLength(2);
    for (let index = 0; index < 40; index += 1) {
      histories.add(alice, login({ sourceIP: `198.51.100.${index}` }));
      await clock.advance(2_000);
    }
    expect((await histories.of(alice)).map(({ sourceIP }) => sourceIP)).toEqual(
      [39, 38, 37].map((index) => `198.51.100.${index}`),
    );
    expect(stored(alice.uid).length).toBeLessThanOrEqual(3 + 16);
  });

  test.each<[string, () => void]>([
    ['gone', () => cluster.delete(path, alice.uid)],
    [
      'without annotations',
      () => cluster.put(path, { ...(cluster.get(path, alice.uid) as KubeObject), metadata: { name: alice.uid } }),
    ],
    ['without records', () => cluster.put(path, { ...(cluster.get(path, alice.uid) as KubeObject), status: {} })],
  ])('goes on in an object that is %s meanwhile', async (_, change) => {
    const { histories } = replica();
    histories.add(alice, login({ sourceIP: '192.0.2.1' }));
    await clock.advance(2_000);
    change();
    histories.add(alice, login({ sourceIP: '192.0.2.2' }));
    await clock.advance(2_000);
    expect(stored(alice.uid)[0]?.sourceIP).toBe('192.0.2.2');
  });

  test('is written by small requests: what is in it is seldom sent again', async () => {
    const { histories, client } = replica();
    for (let index = 0; index < 40; index += 1) {
      histories.add(alice, login({ sourceIP: `192.0.2.${index}` }));
      await clock.advance(2_000);
    }
    const count = (wanted: string): number => client.requests.filter(({ method }) => method === wanted).length;
    expect([count('POST'), count('PATCH'), count('PUT'), count('GET')]).toEqual([1, 37, 2, 3]);
    expect(await histories.of(alice)).toHaveLength(40);
  });

  test('fits into an object, however many entries may be kept', async () => {
    settings.maxEntries = 10_000;
    const { histories } = replica();
    for (let index = 0; index < 5_000; index += 1)
      histories.add(alice, login({ sourceIP: `10.0.${index % 256}.${index >> 8}`, userAgent: 'x'.repeat(256) }));
    await histories.stop();
    expect(stored(alice.uid).length).toBeGreaterThan(2_000);
    expect(JSON.stringify(stored(alice.uid)).length).toBeLessThan(1_100_000);
  });

  test('is not washed away by one who is refused all the time', async () => {
    const { histories } = replica();
    histories.add(alice, login());
    for (let index = 0; index < 300; index += 1) {
      histories.add(alice, login({ reason: 'Limited', sourceIP: '192.0.2.9' }));
      await clock.advance(1_000);
    }
    await histories.stop();
    expect(stored(alice.uid)).toHaveLength(6);
  });
});

describe('replicas', () => {
  test('that write at once lose nothing', async () => {
    const [one, other] = [replica(), replica()];
    one.client.before = async ({ method, path: at }) => {
      if (method !== 'GET' && at.startsWith(path) && one.client.asked('GET', alice.uid).length === 1)
        await other.histories.stop();
    };
    one.histories.add(alice, login({ client: 'one' }));
    other.histories.add(alice, login({ client: 'other' }));
    await one.histories.stop();
    expect(
      stored(alice.uid)
        .map(({ client }) => client)
        .toSorted(),
    ).toEqual(['one', 'other']);
  });

  test('write at most once a second, and make again what failed, once', async () => {
    const { histories, client } = replica();
    for (let index = 0; index < 100; index += 1) {
      histories.add(alice, login({ sourceIP: `192.0.2.${index}` }));
      await clock.advance(50);
    }
    await clock.advance(2_000);
    const writes = client.requests.filter(({ method }) => method !== 'GET').length;
    expect(writes).toBeGreaterThan(3);
    expect(writes).toBeLessThanOrEqual(6);
    expect(stored(alice.uid)).toHaveLength(100);
    client.after = ({ method }) => {
      if (method === 'PATCH') throw unreachable(new Error('the answer was lost'));
    };
    histories.add(alice, login({ client: 'other' }));
    await clock.advance(2_000);
    client.after = () => undefined;
    await clock.advance(20_000);
    expect(stored(alice.uid).filter((record) => record.client === 'other')).toHaveLength(1);
    expect(await histories.of(alice)).toHaveLength(100);
  });
});

const sweep = (): Promise<void> => clock.advance(15 * 60_000);

async function written(): Promise<LoginHistories> {
  settings.keep = 2 * hour;
  const { histories } = replica();
  for (const user of [alice, carol, bob]) histories.add(user, login());
  await clock.advance(2_000);
  return histories;
}
const names = (): string[] =>
  cluster
    .list(path)
    .map((object) => (object['spec'] as { userName: string }).userName)
    .toSorted();

describe('sweeping', () => {
  test('takes the histories of configured users who are gone, and those of which nothing is kept', async () => {
    const histories = await written();
    histories.start();
    await sweep();
    expect(names()).toEqual(['alice', 'bob', 'carol']);
    configured = [carol];
    await sweep();
    // That of a User object is the garbage collector's.
    expect(names()).toEqual(['bob', 'carol']);
    await clock.advance(2 * hour);
    await sweep();
    expect(names()).toEqual([]);
    await histories.stop();
  });

  test('is for the holder of the Lease', async () => {
    await written();
    const { histories } = replica(false);
    histories.start();
    configured = [carol];
    await sweep();
    expect(names()).toEqual(['alice', 'bob', 'carol']);
    await histories.stop();
  });
});
