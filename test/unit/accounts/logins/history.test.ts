import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Account } from '../../../../src/accounts/directory/account.ts';
import { LoginHistories, type RecordedLogin, type LoginRecord } from '../../../../src/accounts/logins/history.ts';
import { loginHistoriesPath } from '../../../../src/config/names.ts';
import type { KubeRequest } from '../../../../src/cluster/client/client.ts';
import type { KubeObject } from '../../../../src/cluster/client/kube-object.ts';
import { KubeError, unreachable } from '../../../../src/cluster/client/kube-error.ts';
import type { Logger } from '../../../../src/runtime/logger.ts';
import { MemoryCluster, type MemoryClient } from '../../../fakes/cluster.ts';
import { logOfLines } from '../../../fakes/log.ts';
import { FakeClock } from '../../../labs/cluster-fakes.ts';

const namespace = 'platform-system';
const path = loginHistoriesPath(namespace);
const hour = 3_600_000;
const alice = { username: 'alice', uid: 'uid-of-alice' };
const bob = { username: 'bob', uid: 'uid-of-bob' };
const carol = { username: 'carol', uid: 'uid-of-carol' };

let clock: FakeClock;
let cluster: MemoryCluster;
let settings: { keep: number; maxEntries: number };
/** Users in the configuration; bob is a User object instead. */
let configured: (typeof alice)[];
/** Users whose logins were reported, with the login times. */
let loggedIn: [uid: string, time: string][];
let log: Logger;
let lines: () => string[];
beforeEach(() => {
  loggedIn = [];
  ({ log, lines } = logOfLines());
  clock = new FakeClock();
  cluster = new MemoryCluster(clock);
  settings = { keep: 168 * hour, maxEntries: 100 };
  configured = [alice, carol];
});

function replica(maySweep = true): { readonly client: MemoryClient; readonly histories: LoginHistories } {
  const client = cluster.client();
  return { client, histories: historiesOver(client, maySweep) };
}

function historiesOver(client: Pick<MemoryClient, 'json'>, maySweep = true): LoginHistories {
  return new LoginHistories({
    client,
    namespace,
    settings: () => settings,
    directory: {
      configured: (name) => configured.find(({ username }) => username === name) as Account | undefined,
      configuredAccounts: () => configured as Account[],
    },
    loggedIn: ({ uid }, time) => loggedIn.push([uid, time]),
    maySweep: () => maySweep,
    clock,
    log,
  });
}

const login = (changes: Partial<RecordedLogin> = {}): RecordedLogin => ({
  reason: 'LoggedIn',
  client: 'platform',
  sourceIP: '192.0.2.1',
  userAgent: 'curl/8',
  ...changes,
});

const stored = (uid: string): readonly LoginRecord[] =>
  (cluster.get(path, uid) as unknown as { status: { records: LoginRecord[] } } | undefined)?.status.records ?? [];

describe('the login history of a user', () => {
  test('the login history of a user is stored in one object with the newest entry first', async () => {
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

  test('the login history of a configured user has no owner reference', async () => {
    const { histories } = replica();
    histories.add(alice, login());
    await histories.stop();
    expect(cluster.get(path, alice.uid)?.metadata.ownerReferences).toEqual([]);
  });

  test('the login history of a user includes entries that this replica has not written yet, without duplicates', async () => {
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

  test('the login history of a user is limited in the number and age of its entries', async () => {
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
    ['deleted', () => cluster.delete(path, alice.uid)],
    [
      'replaced without annotations',
      () => cluster.put(path, { ...(cluster.get(path, alice.uid) as KubeObject), metadata: { name: alice.uid } }),
    ],
    [
      'replaced without records',
      () => cluster.put(path, { ...(cluster.get(path, alice.uid) as KubeObject), status: {} }),
    ],
  ])('the login history of a user continues after its object was %s', async (_, change) => {
    const { histories } = replica();
    histories.add(alice, login({ sourceIP: '192.0.2.1' }));
    await clock.advance(2_000);
    change();
    histories.add(alice, login({ sourceIP: '192.0.2.2' }));
    await clock.advance(2_000);
    expect(stored(alice.uid)[0]?.sourceIP).toBe('192.0.2.2');
  });

  test('the login history of a user is written in small requests that rarely repeat stored entries', async () => {
    const { histories, client } = replica();
    for (let index = 0; index < 40; index += 1) {
      histories.add(alice, login({ sourceIP: `192.0.2.${index}` }));
      await clock.advance(2_000);
    }
    const count = (wanted: string): number => client.requests.filter(({ method }) => method === wanted).length;
    expect([count('POST'), count('PATCH'), count('PUT'), count('GET')]).toEqual([1, 37, 2, 3]);
    expect(await histories.of(alice)).toHaveLength(40);
  });

  test('the login history of a user fits into one object, even with the highest configurable number of entries', async () => {
    settings.maxEntries = 10_000;
    const { histories } = replica();
    for (let index = 0; index < 5_000; index += 1)
      histories.add(alice, login({ sourceIP: `10.0.${index % 256}.${index >> 8}`, userAgent: 'x'.repeat(256) }));
    await histories.stop();
    expect(stored(alice.uid).length).toBeGreaterThan(2_000);
    expect(JSON.stringify(stored(alice.uid)).length).toBeLessThan(1_100_000);
  });

  test('the login history of a user keeps its successful logins during a flood of failed logins', async () => {
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

test('the login history reports only successful logins to its listener, with their times', () => {
  const { histories } = replica();
  const time = new Date(clock.now()).toISOString();
  for (const reason of ['WrongPassword', 'NoPassword', 'Disabled', 'Limited', 'LoggedIn'] as const)
    histories.add(alice, login({ reason }));
  expect(loggedIn).toEqual([[alice.uid, time]]);
});

test('the login history records rejections by the login limit at most once a minute per user, client and address', async () => {
  const { histories } = replica();
  const reason = 'Limited';
  const all = [
    [alice, login({ reason })],
    [alice, login({ reason, client: 'other' })],
    [alice, login({ reason, sourceIP: '192.0.2.2' })],
    [bob, login({ reason })],
  ] as const;
  for (const [user, one] of [...all, ...all]) histories.add(user, one);
  expect([await histories.of(alice), await histories.of(bob)].map(({ length }) => length)).toEqual([3, 1]);
  await clock.advance(60_000);
  for (const [user, one] of all) histories.add(user, one);
  expect([await histories.of(alice), await histories.of(bob)].map(({ length }) => length)).toEqual([6, 2]);
  await histories.stop();
});

describe('reading a login history', () => {
  test.each([
    ['does not respond', unreachable(new Error('reset'))],
    ['rejects the request', new KubeError(403, {})],
  ])('reading a login history fails with 503 if the cluster %s', async (_, failure) => {
    const { client, histories } = replica();
    client.before = () => {
      throw failure;
    };
    await expect(histories.of(alice)).rejects.toMatchObject({ code: 503, cause: failure });
  });

  test('reading a login history rethrows an unexpected error', async () => {
    const { client, histories } = replica();
    const bug = new Error('a bug');
    client.before = () => {
      throw bug;
    };
    await expect(histories.of(alice)).rejects.toBe(bug);
  });

  test('reading a login history returns an empty list for a user without a history', async () => {
    expect(await replica().histories.of(alice)).toEqual([]);
  });
});

/** Makes the cluster respond to requests of this method with these codes in turn, and normally afterwards. */
const failWith = ({ client }: { readonly client: MemoryClient }, method: string, codes: readonly number[]): void => {
  const left = [...codes];
  client.before = (request) => {
    const code = request.method === method ? left.shift() : undefined;
    if (code !== undefined) throw new KubeError(code, {});
  };
};

describe('a history write that the cluster rejects', () => {
  test.each([400, 404, 409, 422])(
    'when the cluster rejects an addition to a history with %i, the replica writes the whole object instead',
    async (code) => {
      const made = replica();
      made.histories.add(alice, login({ sourceIP: '192.0.2.1' }));
      await clock.advance(2_000);
      failWith(made, 'PATCH', [code]);
      made.histories.add(alice, login({ sourceIP: '192.0.2.2' }));
      await clock.advance(2_000);
      expect(stored(alice.uid)).toHaveLength(2);
      expect(made.client.requests.at(-1)?.method).toBe('PUT');
      expect(lines()).toEqual([]);
    },
  );

  test.each([
    ['the fifth attempt', [409, 409, 409, 409], 0],
    ['a later write', [409, 409, 409, 409, 409], 1],
    ['a later write', [500], 1],
    ['a later write', [404], 1],
  ])('a whole history is successfully written at %s despite the rejections %j', async (_, codes, warnings) => {
    const made = replica();
    failWith(made, 'POST', codes);
    made.histories.add(alice, login());
    await clock.advance(60_000);
    expect(stored(alice.uid)).toHaveLength(1);
    expect(lines()).toHaveLength(warnings);
  });

  test('a write of a whole history succeeds at the second attempt if the object was deleted in the meantime', async () => {
    const made = replica();
    made.histories.add(alice, login({ sourceIP: '192.0.2.1' }));
    await clock.advance(2_000);
    const refusals: Record<string, number | undefined> = { PATCH: 422, PUT: 404 };
    made.client.before = ({ method }) => {
      const code = refusals[method];
      refusals[method] = undefined;
      if (code !== undefined) throw new KubeError(code, {});
    };
    made.histories.add(alice, login({ sourceIP: '192.0.2.2' }));
    await clock.advance(2_000);
    expect(stored(alice.uid)).toHaveLength(2);
    expect(lines()).toEqual([]);
  });
});

describe('replicas', () => {
  test('replicas that write a history at the same time lose no entry', async () => {
    const [one, other] = [replica(), replica()];
    one.client.before = async ({ method, path: at }) => {
      if (method !== 'GET' && at.startsWith(path) && one.client.requestsTo('GET', alice.uid).length === 1)
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

  test('replicas write a history at most once a second, and retry a failed write once', async () => {
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
      if (method === 'PATCH') throw unreachable(new Error('the response was lost'));
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

describe('sweeping login histories', () => {
  test('sweeping login histories deletes histories of removed configured users and histories without entries', async () => {
    const histories = await written();
    histories.start();
    await sweep();
    expect(names()).toEqual(['alice', 'bob', 'carol']);
    configured = [carol];
    await sweep();
    // The garbage collector deletes the history of a User object.
    expect(names()).toEqual(['bob', 'carol']);
    await clock.advance(2 * hour);
    await sweep();
    expect(names()).toEqual([]);
    await histories.stop();
  });

  test('sweeping login histories is done only by the replica that holds the Lease', async () => {
    await written();
    const { histories } = replica(false);
    histories.start();
    configured = [carol];
    await sweep();
    expect(names()).toEqual(['alice', 'bob', 'carol']);
    await histories.stop();
  });
});

const deletions = (client: MemoryClient): number => client.requests.filter(({ method }) => method === 'DELETE').length;

describe('a sweep of login histories', () => {
  test('a sweep of login histories keeps a history that was written in the meantime, and continues with the other histories', async () => {
    await written();
    configured = [];
    const { client, histories } = replica();
    client.before = ({ method, path: at }) => {
      const uid = at.slice(path.length + 1);
      const current = cluster.get(path, uid);
      if (method === 'DELETE' && uid === alice.uid && current !== undefined) cluster.put(path, current);
    };
    histories.start();
    await clock.advance(10 * 60_000);
    expect(names()).toEqual(['alice', 'bob']);
    expect(lines().filter((line) => line.includes('"warn"'))).toEqual([]);
    await histories.stop();
  });

  test('a sweep of login histories is repeated after a failure, with a warning', async () => {
    await written();
    configured = [];
    const { client, histories } = replica();
    client.before = ({ method }) => {
      if (method === 'DELETE') throw new KubeError(403, {});
    };
    histories.start();
    await clock.advance(10 * 60_000);
    expect(lines().filter((line) => line.includes('"warn"'))).toHaveLength(1);
    client.before = () => undefined;
    await clock.advance(10 * 60_000);
    expect(names()).toEqual(['bob']);
    await histories.stop();
  });

  test('a sweep of login histories ends when the replica stops, and leaves no timer', async () => {
    await written();
    configured = [];
    const { client, histories } = replica();
    client.before = async ({ method }) => {
      if (method === 'DELETE') await histories.stop();
    };
    histories.start();
    await clock.advance(10 * 60_000);
    expect(deletions(client)).toBe(1);
    expect(clock.pending()).toEqual([]);
  });

  test('a sweep of login histories does not start after the replica has stopped', async () => {
    await written();
    configured = [];
    const { client, histories } = replica();
    histories.start();
    await histories.stop();
    await clock.advance(20 * 60_000);
    expect(client.requests).toEqual([]);
  });

  test('a sweep of login histories reads all pages, and only the metadata of each object', async () => {
    const sent: { query: unknown; accept: unknown; method: string | undefined; path: string }[] = [];
    const pages: Readonly<Record<string, unknown>> = {
      '': { metadata: { continue: 'next' }, items: [{ metadata: { name: 'one', resourceVersion: '1' } }] },
      next: { metadata: {}, items: [{ metadata: { name: 'two', resourceVersion: '2' } }] },
    };
    const histories = historiesOver({
      json: async <T>(at: string, { method, query = {}, headers = {}, body }: KubeRequest): Promise<T> => {
        sent.push({ query: method === 'DELETE' ? body : query, accept: headers['accept'], method, path: at });
        return pages[String(query['continue'] ?? '')] as T;
      },
    });
    histories.start();
    await clock.advance(10 * 60_000);
    const accept = expect.stringContaining('PartialObjectMetadataList') as unknown;
    expect(sent).toEqual([
      { query: { limit: 500 }, accept, method: undefined, path },
      {
        query: { preconditions: { resourceVersion: '1' } },
        accept: undefined,
        method: 'DELETE',
        path: `${path}/one`,
      },
      { query: { limit: 500, continue: 'next' }, accept, method: undefined, path },
      {
        query: { preconditions: { resourceVersion: '2' } },
        accept: undefined,
        method: 'DELETE',
        path: `${path}/two`,
      },
    ]);
    await histories.stop();
  });
});

test.each([0, 403, 500])(
  'when an addition to a history fails with the status %i, the replica does not write the whole object instead',
  async (code) => {
    const { client, histories } = replica();
    histories.add(alice, login());
    await clock.advance(2_000);
    client.before = ({ method }) => {
      if (method === 'PATCH') throw new KubeError(code, {});
    };
    histories.add(alice, login({ reason: 'WrongPassword' }));
    const before = client.requests.length;
    await clock.advance(2_000);
    expect(client.requests.slice(before).map(({ method }) => method)).toEqual(['PATCH']);
  },
);

test('an addition to a history records the time of the newest entry for the sweep', async () => {
  const { histories } = replica();
  for (let time = 0; time < 2; time += 1) {
    histories.add(alice, login());
    await clock.advance(2_000);
    const annotations = cluster.get(path, alice.uid)?.metadata.annotations ?? {};
    expect(Object.values(annotations)).toEqual([stored(alice.uid)[0]?.time]);
  }
});

test('a sweep of login histories deletes the history of a removed user even if kube-apiserver returns no ownerReferences', async () => {
  const { histories } = replica();
  const annotations = { 'iam.platform.io/newest-record': new Date(clock.now()).toISOString() };
  cluster.put(path, { metadata: { name: 'gone', annotations }, spec: {}, status: { records: [] } });
  histories.start();
  await clock.advance(hour);
  await histories.stop();
  expect(cluster.list(path)).toEqual([]);
});
