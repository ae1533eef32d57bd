import { describe, expect, test } from '@jest/globals';
import { newSessionID } from '../../../../src/tokens/refresh-tokens.ts';
import { unreachable } from '../../../../src/cluster/client/kube-error.ts';
import type { MemoryClient } from '../../../fakes/cluster.ts';
import { logOfLines } from '../../../fakes/log.ts';
import { settle } from '../../../labs/cluster-fakes.ts';
import { failing, granted, lab, lifetimes, login, minute, path, refresh, stored } from '../../../labs/sessions.ts';

describe('the expiry and revocation of a session', () => {
  test.each([
    ['when it was not refreshed within the idle timeout', lifetimes.refreshTokenIdle - 1],
    ['at its maximum age, however often it is refreshed', lifetimes.sessionMaxAge - 1],
  ])('a session expires %s, and not a millisecond before', async (_what, life) => {
    const { clock, replica } = lab();
    const { sessions } = await replica();
    const { session, refreshToken } = await sessions.create(login);
    let token = refreshToken;
    let left = life;
    for (; left >= lifetimes.refreshTokenIdle; left -= 20 * minute) {
      await clock.advance(20 * minute);
      token = await granted(sessions, token);
    }
    await clock.advance(left);
    expect(await sessions.active(session.metadata.name)).toBeDefined();
    await clock.advance(1);
    expect(await sessions.active(session.metadata.name)).toBeUndefined();
    expect(['ended', 'unknown']).toContain(await refresh(sessions, token));
  });

  // evidence: session-revocation
  test('revoking a session takes effect at once on the same replica, and with the watch event on other replicas', async () => {
    const { replica } = lab();
    const [one, two] = [await replica(), await replica()];
    const { session, refreshToken } = await one.sessions.create(login);
    await settle();
    await one.sessions.revoke(session.metadata.name);
    expect(await one.sessions.active(session.metadata.name)).toBeUndefined();
    await settle();
    expect(await two.sessions.active(session.metadata.name)).toBeUndefined();
    expect(await refresh(two.sessions, refreshToken)).toBe('ended');
    expect([one.ended, two.ended]).toEqual([[session.metadata.name], [session.metadata.name]]);
    await one.sessions.revoke(session.metadata.name);
    await one.sessions.revoke(newSessionID());
  });

  test('revoking a session succeeds despite concurrent changes to its object', async () => {
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

  test.each(['deleted', 'revoked and deleted'])(
    'a session is no longer valid after its object is %s, even if the session was just created',
    async (how) => {
      const { cluster, replica } = lab();
      const { sessions, ended } = await replica();
      const { session, refreshToken } = await sessions.create(login);
      const { name } = session.metadata;
      if (how !== 'deleted') cluster.put(path, { ...session, status: { phase: 'Revoked' } });
      cluster.delete(path, name);
      await settle();
      expect(await sessions.active(name)).toBeUndefined();
      expect(await refresh(sessions, refreshToken)).toBe('unknown');
      expect(ended).toContain(name);
    },
  );

  test("a session is no longer valid if its object is deleted before the response to the replica's own write arrives", async () => {
    const { cluster, replica } = lab();
    const { sessions, client } = await replica();
    const { session, refreshToken } = await sessions.create(login);
    client.after = async ({ method }) => {
      if (method !== 'PUT') return;
      cluster.delete(path, session.metadata.name);
      await settle();
    };
    await refresh(sessions, refreshToken);
    expect(await sessions.active(session.metadata.name)).toBeUndefined();
  });

  test.each([{ status: {} }, { spec: {} }, { status: { phase: 'Active' }, spec: { ...login, expiresAt: 'never' } }])(
    'a session is no longer valid when its object becomes invalid: %j',
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

describe('a stopped replica', () => {
  test('a stopped replica sends no more requests about sessions, and leaves no timer', async () => {
    const { clock, replica } = lab();
    const { sessions, client } = await replica();
    await sessions.create(login);
    sessions.stop();
    await settle();
    const before = client.requests.length;
    await sessions.dismiss([{ userUID: login.userUID }]);
    await clock.advance(10 * minute);
    expect(client.requests).toHaveLength(before);
    expect(clock.pending()).toEqual([]);
  });

  test('a replica that stops while it deletes expired and revoked sessions deletes no more sessions', async () => {
    const { cluster, clock, replica } = lab();
    const { sessions, client } = await replica();
    for (let index = 0; index < 5; index += 1) {
      const { session } = await sessions.create(login);
      await sessions.revoke(session.metadata.name);
    }
    client.before = ({ method }) => {
      if (method === 'DELETE') sessions.stop();
    };
    await clock.advance(2 * minute);
    expect(stored(cluster)).toHaveLength(4);
    expect(clock.pending()).toEqual([]);
  });
});

const reads = ({ requests }: MemoryClient): number => requests.filter(({ method }) => method === 'GET').length;

describe('a session ID', () => {
  test.each(['', 'x', '../secrets/platform-admin', 'A'.repeat(32), `${'a'.repeat(32)}\n`])(
    'the invalid session ID %j is never sent to the cluster',
    async (sid) => {
      const { replica } = lab();
      const { sessions, client } = await replica();
      const before = reads(client);
      expect(await sessions.active(sid)).toBeUndefined();
      expect(reads(client)).toBe(before);
    },
  );

  test('an unknown session ID causes at most one read of the cluster in two seconds, however many requests contain this ID', async () => {
    const { clock, replica } = lab();
    const { sessions, client } = await replica();
    const sid = newSessionID();
    const before = client.requestsTo('GET', sid).length;
    await Promise.all(Array.from({ length: 5 }, () => sessions.active(sid)));
    await clock.advance(2_000);
    await sessions.active(sid);
    expect(client.requestsTo('GET', sid)).toHaveLength(before + 1);
    await clock.advance(1);
    await sessions.active(sid);
    expect(client.requestsTo('GET', sid)).toHaveLength(before + 2);
  });

  test('a session ID that the watch has not sent is looked up in the cluster each time, so that a revocation takes effect at once', async () => {
    const { replica } = lab();
    const [one, two] = [await replica(), await replica()];
    one.client.holdWatches();
    const { session } = await two.sessions.create(login);
    const { name } = session.metadata;
    for (let time = 0; time < 3; time += 1) expect(await one.sessions.active(name)).toBeDefined();
    await two.sessions.revoke(name);
    expect(await one.sessions.active(name)).toBeUndefined();
  });
});

describe('the permanent revocation of sessions', () => {
  test('the permanent revocation of sessions continues with a warning if one session cannot be revoked', async () => {
    const { log, lines } = logOfLines();
    const { cluster, replica } = lab(lifetimes, log);
    const { sessions, client } = await replica();
    const started = [await sessions.create(login), await sessions.create(login), await sessions.create(login)];
    const stuck = started[1]?.session.metadata.name ?? '';
    client.before = ({ method, path: at }) => {
      if (method === 'PUT' && at.endsWith(stuck)) throw unreachable(new Error('reset'));
    };
    await sessions.dismiss([{ userUID: login.userUID }]);
    for (const { metadata, status } of stored(cluster))
      expect(status.phase).toBe(metadata.name === stuck ? 'Active' : 'Revoked');
    expect(lines().filter((line) => line.includes('"warn"'))).toHaveLength(1);
  });

  test('the permanent revocation of sessions does not write sessions that have already expired or been revoked', async () => {
    const { replica } = lab();
    const { sessions, client } = await replica();
    const { session } = await sessions.create(login);
    const writes = (): number => client.requests.filter(({ method }) => method === 'PUT').length;
    await sessions.revoke(session.metadata.name);
    await settle();
    const before = writes();
    await sessions.revoke(session.metadata.name);
    await sessions.dismiss([{ userUID: login.userUID }]);
    await sessions.dismiss([{ clientID: login.clientID }]);
    expect(writes()).toBe(before);
  });

  test('the permanent revocation of sessions succeeds if a session is deleted in the meantime, and can be repeated', async () => {
    const { cluster, replica } = lab();
    const { sessions, client } = await replica();
    const started = [await sessions.create(login), await sessions.create(login)];
    const [first = '', deleted = ''] = started.map(({ session }) => session.metadata.name);
    const bob = await sessions.create({ ...login, userName: 'bob', userUID: 'uid-bob' });
    await settle();
    client.before = async ({ method }) => {
      if (method !== 'PUT') return;
      cluster.delete(path, deleted);
      await settle();
    };
    await sessions.dismiss([{ userUID: login.userUID }]);
    await sessions.dismiss([{ userUID: 'uid-bob' }]);
    const phases = Object.fromEntries(stored(cluster).map(({ metadata, status }) => [metadata.name, status.phase]));
    expect(phases).toEqual({ [first]: 'Revoked', [bob.session.metadata.name]: 'Revoked' });
  });
});

test('a removed listener is no longer notified of expired and revoked sessions', async () => {
  const { replica } = lab();
  const { sessions } = await replica();
  const received: string[] = [];
  const remove = sessions.ended.subscribe((sid) => received.push(sid));
  const [one, other] = [await sessions.create(login), await sessions.create(login)];
  await sessions.revoke(one.session.metadata.name);
  await settle();
  remove();
  await sessions.revoke(other.session.metadata.name);
  await settle();
  expect(received).toEqual([one.session.metadata.name]);
});

test('successful and failed requests of the session store leave no timer', async () => {
  const { clock, replica } = lab();
  const { sessions, client } = await replica();
  const before = clock.pending().length;
  const { session } = await sessions.create(login);
  client.before = failing('GET');
  await expect(sessions.revoke(session.metadata.name)).rejects.toMatchObject({ code: 503 });
  expect(clock.pending()).toHaveLength(before);
});
