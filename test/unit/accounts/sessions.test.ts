import { afterEach, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { newSessionID, RefreshTokens } from '../../../src/accounts/refresh-tokens.ts';
import { Sessions, type Session, type SessionLives } from '../../../src/accounts/sessions.ts';
import type { KubeRequest } from '../../../src/kube/client.ts';
import { KubeError, unreachable } from '../../../src/kube/kube-error.ts';
import { createLogger } from '../../../src/logger.ts';
import { MemoryCluster, type MemoryClient } from '../../fakes/cluster.ts';
import { logOfLines } from '../../fakes/log.ts';
import { FakeClock, settle } from '../kube/fakes.ts';

const namespace = 'platform-system';
const path = `/apis/iam.platform.io/v1alpha2/namespaces/${namespace}/sessions`;
const second = 1_000;
const minute = 60 * second;
const lives = {
  refreshTokenIdle: 30 * minute,
  refreshGrace: 10 * second,
  sessionMaxAge: 120 * minute,
  accessTokenMaxAge: 60 * minute,
};
const login = { userName: 'alice', userUID: 'uid-alice', clientID: 'platform', credentialID: 'c1' };
const tokens = new RefreshTokens(Buffer.alloc(32, 7));
const always = (): boolean => true;
const never = (): boolean => false;

interface Replica {
  readonly sessions: Sessions;
  readonly client: MemoryClient;
  /** The ids of the sessions that it was told have ended. */
  readonly ended: string[];
}

interface Lab {
  readonly cluster: MemoryCluster;
  readonly clock: FakeClock;
  readonly replica: () => Promise<Replica>;
}

const running: Sessions[] = [];
afterEach(() => {
  for (const sessions of running.splice(0)) sessions.stop();
});

const silent = createLogger({ silent: true });

function lab(chosen: SessionLives = lives, log = silent, maySweep = always): Lab {
  const clock = new FakeClock();
  const cluster = new MemoryCluster(clock);
  return {
    cluster,
    clock,
    replica: async () => {
      const client = cluster.client();
      const parts = { client, namespace, lives: () => chosen, tokens, isDismissed: never, clock, log };
      const sessions = new Sessions({ ...parts, maySweep });
      const ended: string[] = [];
      sessions.onEnd((sid) => ended.push(sid));
      running.push(sessions);
      sessions.start();
      await settle();
      return { sessions, client, ended };
    },
  };
}

async function granted(sessions: Sessions, token: string): Promise<string> {
  const refreshed = await sessions.refresh(token, always);
  if (typeof refreshed === 'string') throw new Error(`the refresh was refused: ${refreshed}`);
  return refreshed.refreshToken;
}

const stored = (cluster: MemoryCluster): Session[] => cluster.list(path) as unknown as Session[];
const namesIn = (cluster: MemoryCluster): string[] => stored(cluster).map(({ metadata }) => metadata.name);

/** Requests of this method do not reach the cluster. */
const failing =
  (method: string, failure = unreachable(new Error('reset'))) =>
  (request: { method: string }): void => {
    if (request.method === method) throw failure;
  };

describe('a new session', () => {
  test('is in the cluster before the login is answered, and holds no token', async () => {
    const { cluster, clock, replica } = lab();
    const { sessions } = await replica();
    const { session, refreshToken } = await sessions.create({ ...login, scope: 'openid' });
    expect(stored(cluster)).toEqual([session]);
    expect(session.spec).toEqual({
      ...login,
      scope: 'openid',
      createdAt: new Date(clock.now()).toISOString(),
      expiresAt: new Date(clock.now() + lives.sessionMaxAge).toISOString(),
    });
    expect(session.status.phase).toBe('Active');
    expect(session.metadata.name).toBe(tokens.sessionOf(refreshToken));
    expect(JSON.stringify(stored(cluster))).not.toContain(refreshToken.split('.')[1]);
  });

  test('counts at once on the replica that made it, and with one read on another, before any watch tells', async () => {
    const { replica } = lab();
    const [one, two] = [await replica(), await replica()];
    for (const { client } of [one, two]) client.holdWatches();
    const { session } = await one.sessions.create(login);
    const sid = session.metadata.name;
    expect(await one.sessions.active(sid)).toEqual(session);
    expect(one.client.asked('GET', sid)).toHaveLength(0);
    expect(await two.sessions.active(sid)).toEqual(session);
    expect(two.client.asked('GET', sid)).toHaveLength(1);
  });

  test('is asked of the cluster once by all who ask at once, and not again for a moment when there is none', async () => {
    const { replica } = lab();
    const { sessions, client } = await replica();
    const sid = newSessionID();
    const answers = await Promise.all(Array.from({ length: 50 }, () => sessions.active(sid)));
    expect(answers).toEqual(Array.from({ length: 50 }, () => undefined));
    await sessions.active(sid);
    expect(client.asked('GET', sid)).toHaveLength(1);
  });

  test('is 503, and nothing else, when the cluster refuses or does not answer', async () => {
    const { replica } = lab();
    const { sessions, client } = await replica();
    for (const failure of [unreachable(new Error('reset')), new KubeError(403, { message: 'forbidden' })]) {
      client.before = () => {
        throw failure;
      };
      const refused = { code: 503, reason: 'ServiceUnavailable', cause: failure };
      await expect(sessions.create(login)).rejects.toMatchObject(refused);
      await expect(sessions.active(newSessionID())).rejects.toMatchObject(refused);
      await expect(sessions.refresh(tokens.first(newSessionID()), always)).rejects.toMatchObject(refused);
    }
  });
});

test.each([
  ['the kind is not served', new KubeError(404, { message: '404 page not found' }), /sessions\.iam\.platform\.io/],
  ['the name is taken', new KubeError(409, { message: 'exists' }), /exists/],
])('a login that cannot be kept because %s is 503, and the log says why', async (_, failure, why) => {
  const { log, lines } = logOfLines();
  const { sessions, client } = await lab(lives, log).replica();
  client.before = failing('POST', failure);
  const error: unknown = await sessions.create(login).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 503, reason: 'ServiceUnavailable', cause: failure });
  expect(`${lines().join('\n')} ${String((error as Error).cause)}`).toMatch(why);
});

describe('the sessions of one user', () => {
  const most = 100;
  const bob = { ...login, userName: 'bob', userUID: 'uid-bob' };

  test('are at most a hundred: one more ends the one that was used longest ago', async () => {
    const { cluster, clock, replica } = lab();
    const [one, two] = [await replica(), await replica()];
    const { session: other } = await one.sessions.create(bob);
    const begun = [];
    for (let index = 0; index < most; index += 1) {
      begun.push(await (index % 2 === 0 ? one : two).sessions.create(login));
      await clock.advance(second);
    }
    const [refreshed, oldest] = begun;
    await granted(one.sessions, refreshed?.refreshToken ?? '');
    await settle();
    expect(stored(cluster)).toHaveLength(most + 1);
    const { session } = await two.sessions.create(login);
    await settle();
    const names = namesIn(cluster);
    expect(names).toHaveLength(most + 1);
    for (const kept of [other, session, refreshed?.session]) expect(names).toContain(kept?.metadata.name);
    expect(names).not.toContain(oldest?.session.metadata.name);
    for (const { ended } of [one, two]) expect(ended).toEqual([oldest?.session.metadata.name]);
  });

  test('are not ended because one more could not begin, and begin although none could be ended', async () => {
    const { cluster, clock, replica } = lab();
    const { sessions, client } = await replica();
    for (let index = 0; index < most; index += 1) await sessions.create(login);
    await clock.advance(second);
    const before = namesIn(cluster);
    client.before = failing('POST');
    await expect(sessions.create(login)).rejects.toMatchObject({ code: 503 });
    expect(namesIn(cluster)).toEqual(before);
    client.before = failing('DELETE');
    await sessions.create(login);
    expect(namesIn(cluster)).toHaveLength(most + 1);
    client.before = () => undefined;
    await sessions.create(login);
    expect(namesIn(cluster)).toHaveLength(most);
  });
});

/** A refresh was written, and nobody heard of it. */
async function lost() {
  const made = lab();
  const replicas = [await made.replica(), await made.replica()] as const;
  const [{ sessions, client }] = replicas;
  const { refreshToken } = await sessions.create(login);
  client.after = ({ method }) => {
    client.after = () => undefined;
    if (method === 'PUT') throw unreachable(new Error('reset'));
  };
  await expect(sessions.refresh(refreshToken, always)).rejects.toMatchObject({ code: 503 });
  await made.clock.advance(9 * minute);
  return { ...made, one: sessions, two: replicas[1].sessions, client, refreshToken };
}

describe('a refresh', () => {
  test('gives the successor and moves the idle life', async () => {
    const { cluster, clock, replica } = lab();
    const { sessions } = await replica();
    const { session, refreshToken } = await sessions.create(login);
    await clock.advance(20 * minute);
    expect(await granted(sessions, refreshToken)).toBe(tokens.successor(refreshToken));
    await clock.advance(20 * minute);
    expect(await sessions.active(session.metadata.name)).toBeDefined();
    expect(stored(cluster)).toHaveLength(1);
  });

  test('repeated within the grace gives the same successor, on any replica, and writes nothing', async () => {
    const { cluster, clock, replica } = lab();
    const [one, two] = [await replica(), await replica()];
    const { refreshToken } = await one.sessions.create(login);
    const successor = await granted(one.sessions, refreshToken);
    await settle();
    const before = stored(cluster);
    await clock.advance(lives.refreshGrace);
    expect(await granted(one.sessions, refreshToken)).toBe(successor);
    expect(await granted(two.sessions, refreshToken)).toBe(successor);
    expect(stored(cluster)).toEqual(before);
    expect(await granted(two.sessions, successor)).toBe(tokens.successor(successor));
  });

  test('repeated after the grace ends the session everywhere', async () => {
    const { clock, replica } = lab();
    const [one, two] = [await replica(), await replica()];
    const { session, refreshToken } = await one.sessions.create(login);
    const successor = await granted(one.sessions, refreshToken);
    await clock.advance(lives.refreshGrace + 1);
    expect(await two.sessions.refresh(refreshToken, always)).toBe('reused');
    await settle();
    for (const { sessions, ended } of [one, two]) {
      expect(await sessions.active(session.metadata.name)).toBeUndefined();
      expect(await sessions.refresh(successor, always)).toBe('ended');
      expect(ended).toEqual([session.metadata.name]);
    }
  });

  test('with the token before the previous one ends the session, also within the grace', async () => {
    const { replica } = lab();
    const { sessions } = await replica();
    const { session, refreshToken } = await sessions.create(login);
    const next = await granted(sessions, refreshToken);
    await granted(sessions, next);
    expect(await sessions.refresh(refreshToken, always)).toBe('reused');
    expect(await sessions.active(session.metadata.name)).toBeUndefined();
  });

  test('on a replica whose watch lags is judged by what the cluster has', async () => {
    const { replica } = lab();
    const [one, two] = [await replica(), await replica()];
    const { session, refreshToken } = await one.sessions.create(login);
    await settle();
    two.client.holdWatches();
    const next = await granted(one.sessions, refreshToken);
    expect(await granted(two.sessions, refreshToken)).toBe(next);
    const third = await granted(two.sessions, next);
    const fourth = await granted(one.sessions, third);
    expect(await granted(two.sessions, fourth)).toBe(tokens.successor(fourth));
    await one.sessions.revoke(session.metadata.name);
    expect(await two.sessions.refresh(tokens.successor(fourth), always)).toBe('ended');
  });

  test('of which the answer was lost is repeated with the same successor', async () => {
    const { replica } = lab();
    const { sessions, client } = await replica();
    const { refreshToken } = await sessions.create(login);
    client.after = ({ method }) => {
      client.after = () => undefined;
      if (method === 'PUT') throw unreachable(new Error('reset'));
    };
    await expect(sessions.refresh(refreshToken, always)).rejects.toMatchObject({ code: 503 });
    expect(await granted(sessions, refreshToken)).toBe(tokens.successor(refreshToken));
  });

  describe('of which the answer was lost for longer than the grace', () => {
    test('is repeated by the replica that gave none, and the grace begins then, everywhere', async () => {
      const { one, two, clock, refreshToken } = await lost();
      const successor = await granted(one, refreshToken);
      expect(successor).toBe(tokens.successor(refreshToken));
      await clock.advance(lives.refreshGrace);
      for (const sessions of [one, two]) expect(await granted(sessions, refreshToken)).toBe(successor);
      await clock.advance(1);
      expect(await one.refresh(refreshToken, always)).toBe('reused');
      expect(await one.refresh(successor, always)).toBe('ended');
    });

    test('ends the session once the successor was used, as always', async () => {
      const { one, two, refreshToken } = await lost();
      await granted(two, tokens.successor(refreshToken));
      expect(await one.refresh(refreshToken, always)).toBe('reused');
    });

    test('ends the session where nobody knows of it: at another replica, and after ten minutes', async () => {
      const elsewhere = await lost();
      expect(await elsewhere.two.refresh(elsewhere.refreshToken, always)).toBe('reused');
      const late = await lost();
      await late.clock.advance(minute + 1);
      expect(await late.one.refresh(late.refreshToken, always)).toBe('reused');
    });

    test('is still to be had when somebody has asked about it, or has asked for it without an answer again', async () => {
      const { one, client, clock, refreshToken } = await lost();
      expect(await one.presented(refreshToken)).toMatchObject({ isCurrent: true });
      client.before = ({ method }) => {
        if (method !== 'PUT') return;
        client.before = () => undefined;
        throw unreachable(new Error('reset'));
      };
      await expect(one.refresh(refreshToken, always)).rejects.toMatchObject({ code: 503 });
      await clock.advance(30 * second);
      expect(await granted(one, refreshToken)).toBe(tokens.successor(refreshToken));
    });
  });

  test('that the cluster does not answer is given up while an honest client may still repeat it', async () => {
    const { clock, replica } = lab();
    const { sessions, client } = await replica();
    const { refreshToken } = await sessions.create(login);
    client.json = <T>(_path: string, options?: KubeRequest): Promise<T> =>
      new Promise((_, reject) => {
        options?.signal?.addEventListener('abort', () => reject(unreachable(options.signal?.reason)));
      });
    const answer = sessions.refresh(refreshToken, always).catch((error: unknown) => error);
    await clock.advance(lives.refreshGrace / 2);
    expect(await Promise.race([answer, settle()])).toMatchObject({ code: 503 });
  });

  test('that the caller does not accept spends nothing', async () => {
    const { cluster, replica } = lab();
    const { sessions } = await replica();
    const { refreshToken } = await sessions.create(login);
    const before = stored(cluster);
    expect(await sessions.refresh(refreshToken, () => false)).toBe('unknown');
    await expect(
      sessions.refresh(refreshToken, () => {
        throw new RangeError('too wide');
      }),
    ).rejects.toThrow(RangeError);
    expect(stored(cluster)).toEqual(before);
  });

  test('with a token that was never ours asks nobody', async () => {
    const { replica } = lab();
    const { sessions, client } = await replica();
    const { session } = await sessions.create(login);
    const foreign = new RefreshTokens(Buffer.alloc(32, 8));
    client.requests.length = 0;
    for (const token of ['', 'x', foreign.first(newSessionID()), foreign.first(session.metadata.name)])
      expect(await sessions.refresh(token, always)).toBe('unknown');
    expect(client.requests).toEqual([]);
    expect(await sessions.active(session.metadata.name)).toBeDefined();
  });

  test('made by many at once on two replicas gives all the same successor', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(fc.boolean(), { minLength: 2, maxLength: 8 }),
        async (scheduler, calls) => {
          const { cluster, replica } = lab();
          const [one, two] = [await replica(), await replica()];
          const { refreshToken } = await one.sessions.create(login);
          await settle();
          for (const { client } of [one, two]) {
            client.before = async () => await scheduler.schedule(Promise.resolve());
            client.after = async () => await scheduler.schedule(Promise.resolve());
          }
          const all = calls.map((first) => granted((first ? one : two).sessions, refreshToken));
          await scheduler.waitFor(Promise.allSettled(all));
          expect(await Promise.all(all)).toEqual(calls.map(() => tokens.successor(refreshToken)));
          expect(stored(cluster).map(({ status }) => status.phase)).toEqual(['Active']);
        },
      ),
      { numRuns: 60 },
    );
  });

  test('gives up with 503 when others change the session all the time', async () => {
    const { cluster, replica } = lab();
    const { sessions, client } = await replica();
    const { session, refreshToken } = await sessions.create(login);
    client.before = ({ method }) => {
      if (method !== 'PUT') return;
      const current = cluster.get(path, session.metadata.name);
      if (current !== undefined) cluster.put(path, current);
    };
    await expect(sessions.refresh(refreshToken, always)).rejects.toMatchObject({ code: 503 });
  });
});

describe('a session ends', () => {
  test.each([
    ['when it was not refreshed for the idle life', lives.refreshTokenIdle - 1],
    ['at its greatest age, however often it is refreshed', lives.sessionMaxAge - 1],
  ])('%s, and not a millisecond before', async (_what, life) => {
    const { clock, replica } = lab();
    const { sessions } = await replica();
    const { session, refreshToken } = await sessions.create(login);
    let token = refreshToken;
    let left = life;
    for (; left >= lives.refreshTokenIdle; left -= 20 * minute) {
      await clock.advance(20 * minute);
      token = await granted(sessions, token);
    }
    await clock.advance(left);
    expect(await sessions.active(session.metadata.name)).toBeDefined();
    await clock.advance(1);
    expect(await sessions.active(session.metadata.name)).toBeUndefined();
    expect(['ended', 'unknown']).toContain(await sessions.refresh(token, always));
  });

  test('by revocation: when that has returned it is over here, and elsewhere when the watch tells', async () => {
    const { replica } = lab();
    const [one, two] = [await replica(), await replica()];
    const { session, refreshToken } = await one.sessions.create(login);
    await settle();
    await one.sessions.revoke(session.metadata.name);
    expect(await one.sessions.active(session.metadata.name)).toBeUndefined();
    await settle();
    expect(await two.sessions.active(session.metadata.name)).toBeUndefined();
    expect(await two.sessions.refresh(refreshToken, always)).toBe('ended');
    expect([one.ended, two.ended]).toEqual([[session.metadata.name], [session.metadata.name]]);
    await one.sessions.revoke(session.metadata.name);
    await one.sessions.revoke(newSessionID());
  });

  test('by revocation although others change it at the same time', async () => {
    const { cluster, replica } = lab();
    const { sessions, client } = await replica();
    const { session } = await sessions.create(login);
    let conflicts = 3;
    client.before = ({ method }) => {
      const current = cluster.get(path, session.metadata.name);
      if (method === 'PUT' && current !== undefined && conflicts-- > 0) cluster.put(path, current);
    };
    await sessions.revoke(session.metadata.name);
    expect(stored(cluster).map(({ status }) => status)).toEqual([{ phase: 'Revoked' }]);
  });

  test.each(['deleted', 'revoked and deleted'])('when its object was %s, also where it had just begun', async (how) => {
    const { cluster, replica } = lab();
    const { sessions, ended } = await replica();
    const { session, refreshToken } = await sessions.create(login);
    const { name } = session.metadata;
    if (how !== 'deleted') cluster.put(path, { ...session, status: { phase: 'Revoked' } });
    cluster.delete(path, name);
    await settle();
    expect(await sessions.active(name)).toBeUndefined();
    expect(await sessions.refresh(refreshToken, always)).toBe('unknown');
    expect(ended).toContain(name);
  });

  test('when its object was deleted before the answer to our own write arrived', async () => {
    const { cluster, replica } = lab();
    const { sessions, client } = await replica();
    const { session, refreshToken } = await sessions.create(login);
    client.after = async ({ method }) => {
      if (method !== 'PUT') return;
      cluster.delete(path, session.metadata.name);
      await settle();
    };
    await sessions.refresh(refreshToken, always);
    expect(await sessions.active(session.metadata.name)).toBeUndefined();
  });

  test.each([{ status: {} }, { spec: {} }, { status: { phase: 'Active' }, spec: { ...login, expiresAt: 'never' } }])(
    'when somebody made it unreadable: %j',
    async (damage) => {
      const { cluster, clock, replica } = lab();
      const { sessions } = await replica();
      const { session } = await sessions.create(login);
      cluster.put(path, { ...session, ...damage });
      await clock.advance(0);
      expect(await sessions.active(session.metadata.name)).toBeUndefined();
      expect(sessions.ofUser(login.userUID)).toEqual([]);
    },
  );
});

describe('a replica', () => {
  test('whose watch gives no sign of life for 15 s says 503, although the cluster answers everything else', async () => {
    const { clock, replica } = lab();
    const { sessions, client } = await replica();
    const { session } = await sessions.create(login);
    await settle();
    client.holdWatches();
    await clock.advance(15 * second);
    expect(await sessions.active(session.metadata.name)).toBeDefined();
    await clock.advance(1);
    await expect(sessions.active(session.metadata.name)).rejects.toMatchObject({ code: 503 });
    await expect(sessions.active(newSessionID())).rejects.toMatchObject({ code: 503 });
    client.releaseWatches();
    await clock.advance(30 * second);
    expect(await sessions.active(session.metadata.name)).toBeDefined();
  });

  test('believes its watch while nothing happens', async () => {
    const { clock, replica } = lab();
    const { sessions } = await replica();
    const { session } = await sessions.create(login);
    for (let elapsed = 0; elapsed < 3 * minute; elapsed += second) {
      await clock.advance(second);
      expect(await sessions.active(session.metadata.name)).toBeDefined();
    }
  });

  test('says 503 until it has read the sessions once', async () => {
    const { cluster, clock, replica } = lab();
    const { sessions: other } = await replica();
    const { session } = await other.create(login);
    const client = cluster.client();
    client.holdWatches();
    const parts = { client, namespace, lives: () => lives, tokens, isDismissed: never, clock, log: silent };
    const late = new Sessions({ ...parts, maySweep: always });
    running.push(late);
    late.start();
    await settle();
    expect(late.hasSynced()).toBe(false);
    await expect(late.active(session.metadata.name)).rejects.toMatchObject({ code: 503 });
    client.releaseWatches();
    await settle();
    expect(late.hasSynced()).toBe(true);
    expect(await late.active(session.metadata.name)).toBeDefined();
  });

  test('knows the active sessions of a user, also one that it has just made', async () => {
    const { clock, replica } = lab();
    const [one, two] = [await replica(), await replica()];
    const first = await one.sessions.create(login);
    await one.sessions.create({ ...login, userName: 'bob', userUID: 'uid-bob' });
    await clock.advance(second);
    one.client.holdWatches();
    const latest = await one.sessions.create(login);
    const names = one.sessions.ofUser(login.userUID).map(({ metadata }) => metadata.name);
    expect(names.toSorted()).toEqual([first.session.metadata.name, latest.session.metadata.name].toSorted());
    await two.sessions.revoke(latest.session.metadata.name);
    await settle();
    expect(two.sessions.ofUser(login.userUID).map(({ metadata }) => metadata.name)).toEqual([
      first.session.metadata.name,
    ]);
  });

  test('sweeps what is over and nothing else', async () => {
    const { cluster, clock, replica } = lab();
    const { sessions } = await replica();
    const kept = await sessions.create(login);
    const revoked = await sessions.create(login);
    await sessions.revoke(revoked.session.metadata.name);
    await clock.advance(2 * minute);
    expect(namesIn(cluster)).toEqual([kept.session.metadata.name]);
    await clock.advance(lives.refreshTokenIdle + 2 * minute);
    expect(stored(cluster)).toEqual([]);
  });

  test('is swept by the replica whose turn it is, and by no other', async () => {
    let isOurs = false;
    const { cluster, clock, replica } = lab(lives, silent, () => isOurs);
    const { sessions } = await replica();
    const { session } = await sessions.create(login);
    await sessions.revoke(session.metadata.name);
    await clock.advance(10 * minute);
    expect(namesIn(cluster)).toEqual([session.metadata.name]);
    isOurs = true;
    await clock.advance(2 * minute);
    expect(namesIn(cluster)).toEqual([]);
  });

  test('sweeps all that is over in one go, however much it is', async () => {
    const { cluster, clock, replica } = lab();
    const { sessions } = await replica();
    const { session } = await sessions.create(login);
    for (let index = 0; index < 1_000; index += 1)
      cluster.put(path, { ...session, metadata: { name: newSessionID() }, status: { phase: 'Revoked' } });
    await clock.advance(minute);
    expect(namesIn(cluster)).toEqual([session.metadata.name]);
  });

  test('gives a sweep up when the cluster refuses one deletion after the other', async () => {
    const { cluster, clock, replica } = lab();
    const { client } = await replica();
    for (let index = 0; index < 1_000; index += 1)
      cluster.put(path, { metadata: { name: newSessionID() }, spec: login, status: { phase: 'Revoked' } });
    let asked = 0;
    client.before = ({ method }) => {
      if (method !== 'DELETE') return;
      asked += 1;
      throw unreachable(new Error('reset'));
    };
    await clock.advance(minute);
    expect(asked).toBeGreaterThan(1);
    expect(asked).toBeLessThan(100);
  });

  test('does not let one session that cannot be deleted or read keep the others', async () => {
    const { cluster, clock, replica } = lab();
    const { sessions, client } = await replica();
    // What the cluster sends may have any shape; jest fails a test that leaves a rejection unhandled.
    cluster.put(path, { metadata: { name: newSessionID() } });
    const { session: stuck } = await sessions.create(login);
    const { session } = await sessions.create(login);
    for (const one of [stuck, session]) await sessions.revoke(one.metadata.name);
    client.before = (request) => {
      if (request.method === 'DELETE' && request.path.endsWith(stuck.metadata.name))
        throw new KubeError(403, { message: 'a webhook forbids it' });
    };
    await clock.advance(minute);
    expect(namesIn(cluster)).not.toContain(session.metadata.name);
    expect(stored(cluster)).toHaveLength(2);
  });

  test('does not sweep a session that another has refreshed meanwhile', async () => {
    const { cluster, clock, replica } = lab();
    const [one, two] = [await replica(), await replica()];
    const { refreshToken } = await one.sessions.create(login);
    await clock.advance(lives.refreshTokenIdle - second);
    two.client.holdWatches();
    await granted(one.sessions, refreshToken);
    await clock.advance(9 * second);
    expect(stored(cluster)).toHaveLength(1);
    await clock.advance(2 * minute);
    expect(stored(cluster).map(({ status }) => status.phase)).toEqual(['Active']);
  });

  test('goes on sweeping after a failure, and nothing escapes', async () => {
    const { cluster, clock, replica } = lab();
    const { sessions, client } = await replica();
    const { session } = await sessions.create(login);
    await sessions.revoke(session.metadata.name);
    client.before = failing('DELETE');
    await clock.advance(2 * minute);
    expect(stored(cluster)).toHaveLength(1);
    client.before = () => undefined;
    await clock.advance(2 * minute);
    expect(stored(cluster)).toEqual([]);
  });
});

/** What one session must do, in as few words as possible. */
class Model {
  readonly chain: string[];
  readonly #lives: SessionLives;
  readonly #createdAt: number;
  #lastUsedAt: number;
  #rotatedAt = -Infinity;
  #ended = false;

  constructor(chosen: SessionLives, first: string, now: number) {
    this.#lives = chosen;
    this.chain = [first];
    this.#createdAt = now;
    this.#lastUsedAt = now;
  }

  /** The token that is current when `back` is 0, the one before it when it is 1. */
  token(back: number): string {
    return this.chain[Math.max(0, this.chain.length - 1 - back)] ?? '';
  }

  isActive(now: number): boolean {
    const { sessionMaxAge, refreshTokenIdle } = this.#lives;
    return !this.#ended && now < this.#createdAt + sessionMaxAge && now < this.#lastUsedAt + refreshTokenIdle;
  }

  /** The token that is given; 'refused'. */
  refresh(token: string, now: number): string {
    if (!this.isActive(now)) return 'refused';
    if (token === this.token(0)) {
      this.#rotatedAt = now;
      this.#lastUsedAt = now;
      this.chain.push(tokens.successor(token));
    } else if (token !== this.token(1) || now - this.#rotatedAt > this.#lives.refreshGrace) {
      this.#ended = true;
      return 'refused';
    }
    return tokens.successor(token);
  }
}

const short: SessionLives = {
  refreshTokenIdle: 30 * second,
  refreshGrace: 2 * second,
  sessionMaxAge: 100 * second,
  accessTokenMaxAge: 50 * second,
};

type Step =
  | { readonly kind: 'refresh'; readonly back: number; readonly replica: number }
  | { readonly kind: 'advance'; readonly milliseconds: number }
  | { readonly kind: 'hold'; readonly replica: number }
  | { readonly kind: 'release' | 'garbage' | 'active'; readonly replica: number };

const whichReplica = fc.integer({ min: 0, max: 1 });
const refreshOf = (back: fc.Arbitrary<number>): fc.Arbitrary<Step> =>
  fc.record({ kind: fc.constant('refresh' as const), back, replica: whichReplica });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: refreshOf(fc.constant(0)) },
  { weight: 4, arbitrary: refreshOf(fc.constantFrom(1, 1, 1, 2, 3)) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('advance' as const),
      milliseconds: fc.constantFrom(1, second, 2 * second, 2 * second + 1, 10 * second, 29 * second, 31 * second),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom('hold' as const, 'release' as const, 'garbage' as const, 'active' as const),
      replica: whichReplica,
    }),
  },
);

describe('whatever is done with the tokens of a session', () => {
  test('two replicas, of which one may lag behind, do what the model does', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        const { clock, replica } = lab(short);
        const replicas: readonly [Replica, Replica] = [await replica(), await replica()];
        const { session, refreshToken } = await replicas[0].sessions.create(login);
        const sid = session.metadata.name;
        const model = new Model(short, refreshToken, clock.now());
        await settle();
        const catchUp = async (): Promise<void> => {
          for (const { client } of replicas) client.releaseWatches();
          await settle();
        };
        const seen: unknown[] = [];
        const expected: unknown[] = [];
        for (const one of steps) {
          if (one.kind === 'advance') {
            await catchUp();
            await clock.advance(one.milliseconds);
            continue;
          }
          const { sessions, client } = replicas[one.replica === 0 ? 0 : 1];
          if (one.kind === 'hold') client.holdWatches();
          else if (one.kind === 'release') await catchUp();
          else if (one.kind === 'garbage') {
            seen.push(await sessions.refresh(`${sid}.${'A'.repeat(43)}.${'A'.repeat(22)}`, always));
            expected.push('unknown');
          } else if (one.kind === 'active') {
            await catchUp();
            seen.push((await sessions.active(sid)) !== undefined);
            expected.push(model.isActive(clock.now()));
          } else if (one.kind === 'refresh') {
            const token = model.token(one.back);
            const refreshed = await sessions.refresh(token, always);
            seen.push(typeof refreshed === 'string' ? 'refused' : refreshed.refreshToken);
            expected.push(model.refresh(token, clock.now()));
          }
        }
        for (const { sessions } of replicas) sessions.stop();
        expect(seen).toEqual(expected);
      }),
      { numRuns: 150 },
    );
  });
});

test('what a login lets in does not outlive it, by a code or of a device', async () => {
  const { cluster, clock, replica } = lab();
  const { sessions } = await replica();
  const authenticatedAt = new Date(clock.now()).toISOString();
  const until = clock.now() + lives.sessionMaxAge;
  await clock.advance(100 * minute);
  await sessions.createPending({ ...login, code: { authenticatedAt } }, minute, true);
  const device = { userCode: 'BCDF-GHJK', sourceIP: '192.0.2.1', life: minute, refreshable: true };
  await sessions.createForDevice({ clientID: 'platform-cli' }, device);
  const waiting = await sessions.ofDevice(device.userCode);
  expect(Date.parse(waiting?.spec.expiresAt ?? '')).toBe(clock.now() + lives.sessionMaxAge);
  expect(waiting && (await sessions.letIn(waiting, { ...login, authenticatedAt, login: 'x' }))).toBe(true);
  expect(stored(cluster).map(({ spec }) => Date.parse(spec.expiresAt))).toEqual([until, until]);
});
