import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { LoginAttempt } from '../../../../src/accounts/logins/attempt.ts';
import { LoginLimiter } from '../../../../src/accounts/logins/limit.ts';
import { SharedFailures } from '../../../../src/accounts/logins/shared-failures.ts';
import { loginFailuresPath } from '../../../../src/config/names.ts';
import { KubeError, unreachable } from '../../../../src/cluster/client/kube-error.ts';
import { MemoryCluster, type MemoryClient } from '../../../fakes/cluster.ts';
import { logOfLines } from '../../../fakes/log.ts';
import { FakeClock, settle } from '../../../labs/cluster-fakes.ts';

const namespace = 'platform-system';
const path = loginFailuresPath(namespace);
const second = 1_000;
const minute = 60 * second;
const day = 24 * 60 * minute;
const limit = { maxTries: 5, within: 10 * minute, perAddress: 1_000, perClient: 1_000 };

interface Replica {
  readonly client: MemoryClient;
  readonly limiter: LoginLimiter;
  readonly shared: SharedFailures;
  readonly lines: () => string[];
}

let clock: FakeClock;
/** Milliseconds by which the wall clock is ahead of the timers. */
let ahead: number;
let cluster: MemoryCluster;
let replicas: Replica[];
beforeEach(() => {
  clock = new FakeClock();
  ahead = 0;
  cluster = new MemoryCluster(clock);
  replicas = [];
});
afterEach(async () => {
  for (const { shared } of replicas) await shared.stop();
});

async function replica(maySweep = false): Promise<Replica> {
  const client = cluster.client();
  const { log, lines } = logOfLines();
  const limiter = new LoginLimiter(
    () => limit,
    () => clock.now() + ahead,
    (text) => `mark of ${text}`,
  );
  const shared = new SharedFailures({
    client,
    namespace,
    limiter,
    within: () => limit.within,
    maySweep: () => maySweep,
    clock: {
      now: () => clock.now() + ahead,
      monotonic: () => clock.monotonic(),
      after: (time, run) => clock.after(time, run),
      random: () => clock.random(),
    },
    log,
  });
  shared.start();
  await settle();
  const made = { client, limiter, shared, lines };
  replicas.push(made);
  return made;
}

const pair = async (): Promise<[Replica, Replica]> => [await replica(), await replica()];
const attempt = (username = 'alice', address = '10.0.0.1'): LoginAttempt => ({
  guesses: 'password',
  username,
  address,
  client: 'platform',
});

function fail({ limiter }: Replica, times: number, one = attempt()): void {
  for (let time = 0; time < times; time += 1) limiter.failed(one);
}

const travel = (): Promise<void> => clock.advance(2 * second);

describe('failed logins on one replica', () => {
  test.each(['alice', 'nobody'])(
    'failed logins as %s on one replica also count on the other replica, from any address',
    async (username) => {
      const [one, other] = await pair();
      fail(one, 3, attempt(username));
      await clock.advance(500);
      fail(other, 2, attempt(username));
      await travel();
      for (const { limiter } of [one, other]) {
        expect(limiter.retryAfter(attempt(username))).toBeGreaterThan(9 * 60);
        expect(limiter.retryAfter(attempt(username, '10.9.9.9'))).toBeGreaterThan(0);
        expect(limiter.retryAfter(attempt('other'))).toBe(0);
      }
      await clock.advance(limit.within);
      for (const { limiter } of [one, other]) expect(limiter.retryAfter(attempt(username))).toBe(0);
    },
  );

  // evidence: limit-shared-by-replicas
  test('an attacker has no more login attempts with many replicas than with one', async () => {
    const tries = async (all: readonly Replica[]): Promise<number> => {
      let made = 0;
      for (let time = 0; time < 20 * minute; time += 2 * second) {
        for (const { limiter } of all)
          if (limiter.retryAfter(attempt()) === 0) {
            limiter.failed(attempt());
            made += 1;
            break;
          }
        await clock.advance(2 * second);
      }
      return made;
    };
    const alone = await tries([await replica()]);
    await clock.advance(limit.within);
    expect(await tries([await replica(), await replica(), await replica()])).toBe(alone);
  });

  test('failed logins on one replica are known to replicas that start later, even after the first replica stops', async () => {
    const one = await replica();
    fail(one, limit.maxTries);
    await one.shared.stop();
    const later = await replica();
    expect(later.limiter.retryAfter(attempt())).toBeGreaterThan(0);
  });

  test('failed logins on one replica are shared after an outage, as soon as the cluster responds', async () => {
    const [one, other] = await pair();
    one.client.before = ({ method }) => {
      if (method !== 'GET') throw unreachable(new Error('down'));
    };
    fail(one, limit.maxTries);
    await clock.advance(5 * second);
    expect(other.limiter.retryAfter(attempt())).toBe(0);
    one.client.before = () => undefined;
    await clock.advance(12 * second);
    expect(other.limiter.retryAfter(attempt())).toBeGreaterThan(0);
  });

  test('failed logins on a replica whose clock is ahead do not extend the delay of a user', async () => {
    const [, other] = await pair();
    const last = new Date(clock.now() + 1_000 * minute).toISOString();
    const failures = [{ key: `mark of u:alice`, count: 50, last }];
    cluster.put(path, { metadata: { name: 'ahead' }, status: { failures } });
    await settle();
    expect(other.limiter.retryAfter(attempt())).toBe(60);
    await clock.advance(minute);
    expect(other.limiter.retryAfter(attempt())).toBe(0);
  });
});

describe('failed logins are reset on every replica', () => {
  test('failed logins of a user at an address are reset on every replica when the user logs in from that address', async () => {
    const [one, other] = await pair();
    fail(one, 4);
    fail(other, 2, attempt('alice', '10.0.0.2'));
    await travel();
    await clock.advance(minute);
    other.limiter.succeeded(attempt());
    expect(other.limiter.retryAfter(attempt())).toBe(0);
    await travel();
    fail(one, 2);
    fail(other, 1, attempt('alice', '10.0.0.2'));
    await travel();
    // Since the reset, alice has two failures at `one` and one at `other`.
    for (const { limiter } of [one, other]) {
      for (const address of ['10.0.0.1', '10.0.0.3']) expect(limiter.retryAfter(attempt('alice', address))).toBe(0);
      limiter.failed(attempt('alice', '10.0.0.4'));
    }
    await travel();
    for (const { limiter } of [one, other]) {
      const elsewhere = limiter.retryAfter(attempt('alice', '10.0.0.3'));
      expect(elsewhere).toBeGreaterThan(0);
      expect(elsewhere).toBeLessThanOrEqual(60);
    }
  });

  test('failed logins are reset on every replica when the user is unlocked on each of them', async () => {
    const [one, other] = await pair();
    fail(one, 5);
    fail(other, 5);
    await travel();
    other.limiter.unlock({ username: 'alice', email: undefined });
    expect(other.limiter.retryAfter(attempt())).toBe(0);
    expect(one.limiter.retryAfter(attempt())).toBeGreaterThan(0);
    one.limiter.unlock({ username: 'alice', email: undefined });
    await travel();
    for (const { limiter } of [one, other]) {
      expect(limiter.retryAfter(attempt())).toBe(0);
      expect(limiter.retryAfter(attempt('alice', '10.0.0.2'))).toBe(0);
    }
    const later = await replica();
    expect(later.limiter.retryAfter(attempt())).toBe(0);
  });
});

interface Familiar {
  readonly familiar: Readonly<Record<string, string>>;
}

const familiar = (): Readonly<Record<string, string>> =>
  (cluster.get(path, 'familiar') as unknown as { status: Familiar } | undefined)?.status.familiar ?? {};

/** Fails to log in as alice from many unfamiliar addresses. */
const guess = (one: Replica): void => {
  for (let index = 0; index < 6; index += 1) fail(one, 1, attempt('alice', `10.9.0.${index}`));
};

const expectFamiliar = ({ limiter }: Replica): void => {
  expect(limiter.retryAfter(attempt())).toBe(0);
  expect(limiter.retryAfter(attempt('alice', '10.0.0.2'))).toBeGreaterThan(0);
};

describe('the address of a login', () => {
  // evidence: familiar-address-shared
  test('the address of a login is known to every replica, even after all replicas were restarted', async () => {
    const [one, other] = await pair();
    one.limiter.succeeded(attempt());
    guess(other);
    expect(other.limiter.retryAfter(attempt())).toBeGreaterThan(0);
    await travel();
    for (const each of [one, other]) expectFamiliar(each);
    for (const { shared } of [one, other]) await shared.stop();
    ahead += 20 * day;
    const later = await replica(true);
    guess(later);
    expectFamiliar(later);
    await clock.advance(5 * minute);
    guess(later);
    expectFamiliar(later);
    expect(Object.keys(familiar())).toHaveLength(1);
    ahead += 11 * day;
    guess(later);
    expect(later.limiter.retryAfter(attempt())).toBeGreaterThan(0);
  });

  test('the addresses of two logins are both kept if two replicas write at the same time', async () => {
    const [one, other] = await pair();
    one.limiter.succeeded(attempt('alice'));
    other.limiter.succeeded(attempt('bob'));
    await travel();
    expect(Object.keys(familiar())).toHaveLength(2);
    one.limiter.succeeded(attempt('carol'));
    other.limiter.succeeded(attempt('dave'));
    await travel();
    expect(Object.keys(familiar())).toHaveLength(4);
  });

  test('the addresses of a bounded number of recent logins are kept for a month', async () => {
    const [one, other] = await pair();
    one.limiter.succeeded(attempt('first'));
    await travel();
    for (let index = 0; index < 2_500; index += 1) {
      const { limiter } = index % 2 === 0 ? one : other;
      limiter.succeeded(attempt(`name-${index}`));
      if (index % 50 === 0) await clock.advance(100);
    }
    await travel();
    one.limiter.succeeded(attempt('last'));
    await travel();
    const names = Object.keys(familiar()).join(' ');
    expect(Object.keys(familiar())).toHaveLength(2_000);
    expect(names).toContain('name-2499');
    expect(names).toContain('"last"');
    expect(names).not.toContain('"first"');
    ahead += 31 * day;
    one.limiter.succeeded(attempt('alice'));
    await travel();
    expect(Object.keys(familiar())).toHaveLength(1);
  });

  test('the address of a login is written again after the object with the addresses is deleted', async () => {
    const one = await replica();
    one.limiter.succeeded(attempt());
    await travel();
    cluster.delete(path, 'familiar');
    await settle();
    one.limiter.succeeded(attempt('bob'));
    await travel();
    expect(Object.keys(familiar())).toHaveLength(2);
  });

  test('the address of a login is never stored with a time in the future', async () => {
    const one = await replica();
    const at = new Date(clock.now() + 365 * day).toISOString();
    const key = `mark of p:${JSON.stringify(['alice', '10.0.0.1'])}`;
    cluster.put(path, { metadata: { name: 'familiar' }, status: { failures: [], familiar: { [key]: at } } });
    await settle();
    guess(one);
    expectFamiliar(one);
    ahead += 31 * day;
    guess(one);
    expect(one.limiter.retryAfter(attempt())).toBeGreaterThan(0);
  });
});

const writes = ({ client }: Replica): number => client.requests.filter(({ method }) => method !== 'GET').length;

describe('a replica', () => {
  test('a replica writes at most one bounded object of failed logins a second, however many names are guessed', async () => {
    const one = await replica();
    fail(one, 4, attempt('victim'));
    for (let index = 0; index < 1_500; index += 1) {
      fail(one, 1, attempt(`name-${index}`, `10.${index % 7}.0.1`));
      if (index % 50 === 0) await clock.advance(100);
    }
    await travel();
    expect(writes(one)).toBeLessThanOrEqual(8);
    const [{ status } = { status: undefined }, ...others] = cluster.list(path);
    expect(others).toEqual([]);
    const { failures } = status as { failures: { key: string; count: number }[] };
    expect(failures).toHaveLength(1_000);
    expect(failures.filter(({ key }) => key.includes('victim'))).toMatchObject([{ count: 4 }, { count: 4 }]);
  });

  test('a replica writes nothing while no login fails, except the addresses of logins once a day', async () => {
    const [one, other] = await pair();
    await travel();
    expect(writes(one)).toBe(0);
    for (let time = 0; time < 20; time += 1) {
      for (const { limiter } of [one, other]) limiter.succeeded(attempt());
      await clock.advance(minute);
    }
    // The first login can require a second request to create the object, and both replicas can write at the same time.
    expect(writes(one) + writes(other)).toBeLessThanOrEqual(4);
    const before = writes(one) + writes(other);
    ahead += day;
    one.limiter.succeeded(attempt());
    await travel();
    other.limiter.succeeded(attempt());
    await travel();
    expect(writes(one) + writes(other)).toBe(before + 1);
  });

  test('a replica deletes expired tables of failures while it holds the Lease', async () => {
    const one = await replica();
    fail(one, 1);
    await clock.advance(minute);
    await one.shared.stop();
    const sweeper = await replica(true);
    await clock.advance(limit.within - 2 * minute);
    expect(cluster.list(path)).toHaveLength(1);
    await clock.advance(4 * minute);
    expect(cluster.list(path)).toHaveLength(0);
    fail(sweeper, 1);
    await clock.advance(20 * minute);
    expect(cluster.list(path)).toHaveLength(0);
    fail(sweeper, 1);
    await travel();
    expect(cluster.list(path)).toHaveLength(1);
  });
});

const tables = (): string[] => cluster.list(path).map(({ metadata }) => metadata.name);

/** Stores a table of failures of alice, the last of them at this time, under the name of another replica. */
const leave = (name: string, at: number): void => {
  const failures = [{ key: 'mark of u:alice', count: 9, last: new Date(at).toISOString() }];
  cluster.put(path, { metadata: { name }, status: { failures } });
};

const deletions = ({ client }: Replica): string[] =>
  client.requests.filter(({ method }) => method === 'DELETE').map((request) => request.path.slice(path.length + 1));

test('failed logins no longer count after an administrator deletes the object that stores them', async () => {
  const one = await replica();
  leave('other', clock.now());
  await settle();
  expect(one.limiter.retryAfter(attempt())).toBeGreaterThan(0);
  cluster.delete(path, 'other');
  await settle();
  expect(one.limiter.retryAfter(attempt())).toBe(0);
});

test('a reset of failed logins is written without a time of the last failure', async () => {
  const one = await replica();
  fail(one, 2);
  await travel();
  one.limiter.succeeded(attempt());
  await travel();
  const table = cluster.list(path).find(({ metadata }) => metadata.name !== 'familiar');
  const failures = (table?.['status'] as { failures: object[] } | undefined)?.failures ?? [];
  for (const entry of failures)
    expect(entry).toEqual({ key: expect.any(String) as unknown, count: 0, forgiven: expect.any(String) as unknown });
  expect(failures).toHaveLength(2);
});

describe.each([
  ['failed logins', (one: Replica) => one.limiter.failed(attempt())],
  ['a login', (one: Replica) => one.limiter.succeeded(attempt())],
])('a write of %s', (_, log) => {
  test.each([0, 403, 500])(
    'a write to the login tables that fails with the status %i creates no object',
    async (code) => {
      const one = await replica();
      one.client.before = ({ method }) => {
        if (method === 'PATCH') throw new KubeError(code, {});
      };
      log(one);
      await travel();
      expect(writes(one)).toBe(1);
    },
  );
});

describe('the addresses of logins', () => {
  test('the addresses of logins are in one object, to which a login adds only its own entry', async () => {
    const one = await replica();
    one.limiter.succeeded(attempt('alice'));
    await travel();
    one.limiter.succeeded(attempt('bob'));
    await travel();
    const bodies = one.client.requests.filter(({ method }) => method !== 'GET').map(({ body }) => body);
    const at = expect.any(String) as unknown;
    const [alice, bob] = ['alice', 'bob'].map((name) => `mark of p:${JSON.stringify([name, '10.0.0.1'])}`) as [
      string,
      string,
    ];
    expect(bodies).toEqual([
      { status: { familiar: { [alice]: at } } },
      expect.objectContaining({ metadata: { name: 'familiar' }, status: { failures: [], familiar: { [alice]: at } } }),
      { status: { familiar: { [bob]: at } } },
    ]);
  });

  test('the addresses of logins are added to the object that another replica creates at the same time', async () => {
    const one = await replica();
    one.client.before = ({ method }) => {
      if (method === 'POST')
        cluster.put(path, {
          metadata: { name: 'familiar' },
          status: { failures: [], familiar: { theirs: new Date(clock.now()).toISOString() } },
        });
    };
    one.limiter.succeeded(attempt());
    await travel();
    expect(Object.keys(familiar())).toHaveLength(2);
  });

  test('the addresses of logins are written later if the object cannot be created at first', async () => {
    const one = await replica();
    one.client.before = ({ method }) => {
      if (method === 'POST') throw unreachable(new Error('reset'));
    };
    one.limiter.succeeded(attempt());
    await travel();
    expect(one.client.requestsTo('PATCH', '/familiar')).toHaveLength(1);
    one.client.before = () => undefined;
    await clock.advance(15 * second);
    expect(Object.keys(familiar())).toHaveLength(1);
  });
});

/** Time of a failure that no longer counts. */
const old = (): number => clock.now() - limit.within;

describe('a sweep of failed logins', () => {
  const sweepTime = 2 * minute;

  test('a sweep of failed logins is done only by the replica that holds the Lease', async () => {
    await replica();
    leave('old', old());
    await clock.advance(sweepTime);
    expect(tables()).toEqual(['old']);
  });

  test('a sweep of failed logins deletes expired tables and keeps tables that still count', async () => {
    await replica(true);
    leave('old', old());
    leave('young', clock.now());
    const forgiven = [{ key: 'k', count: 0, forgiven: new Date(old()).toISOString() }];
    cluster.put(path, { metadata: { name: 'forgiven' }, status: { failures: forgiven } });
    await clock.advance(sweepTime);
    expect(tables()).toEqual(['young']);
  });

  test('a sweep of failed logins keeps a table that is written in the meantime', async () => {
    const one = await replica(true);
    leave('old', old());
    one.client.before = ({ method }) => {
      if (method === 'DELETE') leave('old', clock.now());
    };
    await clock.advance(sweepTime);
    expect(deletions(one)).toEqual(['old']);
    expect(tables()).toEqual(['old']);
    expect(one.lines().join('\n')).not.toContain('swept');
  });

  test('a sweep of failed logins continues with the other tables when one table is already deleted', async () => {
    const one = await replica(true);
    for (const name of ['first', 'second']) leave(name, old());
    one.client.before = ({ method, path: target }) => {
      if (method === 'DELETE' && target.endsWith('first')) cluster.delete(path, 'first');
    };
    await clock.advance(sweepTime);
    expect(tables()).toEqual([]);
    expect(one.lines().join('\n')).not.toContain('swept');
  });

  test('a sweep of failed logins is repeated after a failure, and the cause is logged', async () => {
    const one = await replica(true);
    leave('old', old());
    one.client.before = ({ method }) => {
      if (method === 'DELETE') throw unreachable(new Error('reset'));
    };
    await settle();
    await clock.advance(minute);
    expect(one.lines().filter((line) => line.includes('deletion of old login failures failed'))).toEqual([
      expect.stringContaining('reset'),
    ]);
    one.client.before = () => undefined;
    await clock.advance(sweepTime);
    expect(tables()).toEqual([]);
  });

  test('a sweep of failed logins ends when the replica stops, even during a request', async () => {
    const one = await replica(true);
    for (const name of ['first', 'second']) leave(name, old());
    one.client.before = async ({ method }) => {
      if (method === 'DELETE') await one.shared.stop();
    };
    await clock.advance(sweepTime);
    expect(tables()).toEqual(['second']);
    expect(clock.pending()).toEqual([]);
  });
});

test('a stopped replica leaves no watch and no pending timer for shared login failures', async () => {
  const one = await replica(true);
  await one.shared.stop();
  await settle();
  expect(clock.pending()).toEqual([]);
});
