import { describe, expect, test } from '@jest/globals';
import { newSessionID } from '../../../../src/tokens/refresh-tokens.ts';
import { KubeError, unreachable } from '../../../../src/cluster/client/kube-error.ts';
import { logOfLines } from '../../../fakes/log.ts';
import { settle } from '../../../labs/cluster-fakes.ts';
import {
  failing,
  granted,
  lab,
  lifetimes,
  login,
  minute,
  namesIn,
  refresh,
  second,
  stored,
  tokens,
} from '../../../labs/sessions.ts';

describe('a new session', () => {
  test('a new session is stored in the cluster before the login returns, and the stored object contains no token', async () => {
    const { cluster, clock, replica } = lab();
    const { sessions } = await replica();
    const { session, refreshToken } = await sessions.create({ ...login, scope: 'openid' });
    expect(stored(cluster)).toEqual([session]);
    expect(session.spec).toEqual({
      ...login,
      scope: 'openid',
      createdAt: new Date(clock.now()).toISOString(),
      expiresAt: new Date(clock.now() + lifetimes.sessionMaxAge).toISOString(),
    });
    expect(session.status.phase).toBe('Active');
    expect(session.metadata.name).toBe(tokens.sessionOf(refreshToken));
    expect(JSON.stringify(stored(cluster))).not.toContain(refreshToken.split('.')[1]);
  });

  test('a new session is valid before any watch event: at once on its own replica, and after one read on another replica', async () => {
    const { replica } = lab();
    const [one, two] = [await replica(), await replica()];
    for (const { client } of [one, two]) client.holdWatches();
    const { session } = await one.sessions.create(login);
    const sid = session.metadata.name;
    expect(await one.sessions.active(sid)).toEqual(session);
    expect(one.client.requestsTo('GET', sid)).toHaveLength(0);
    expect(await two.sessions.active(sid)).toEqual(session);
    expect(two.client.requestsTo('GET', sid)).toHaveLength(1);
  });

  test('concurrent requests for an unknown session cause one read, which is not repeated for a short time', async () => {
    const { replica } = lab();
    const { sessions, client } = await replica();
    const sid = newSessionID();
    const responses = await Promise.all(Array.from({ length: 50 }, () => sessions.active(sid)));
    expect(responses).toEqual(Array.from({ length: 50 }, () => undefined));
    await sessions.active(sid);
    expect(client.requestsTo('GET', sid)).toHaveLength(1);
  });

  test('creating, reading or refreshing a session fails with 503 when kube-apiserver is unreachable or responds with 403', async () => {
    const { replica } = lab();
    const { sessions, client } = await replica();
    for (const failure of [unreachable(new Error('reset')), new KubeError(403, { message: 'forbidden' })]) {
      client.before = () => {
        throw failure;
      };
      const refused = { code: 503, reason: 'ServiceUnavailable', cause: failure };
      await expect(sessions.create(login)).rejects.toMatchObject(refused);
      await expect(sessions.active(newSessionID())).rejects.toMatchObject(refused);
      await expect(refresh(sessions, tokens.first(newSessionID()))).rejects.toMatchObject(refused);
    }
  });
});

test.each([
  ['the API is not served', new KubeError(404, { message: '404 page not found' }), /sessions\.iam\.platform\.io/],
  ['the name is taken', new KubeError(409, { message: 'exists' }), /exists/],
])('a login whose session cannot be stored because %s gets 503, and the reason is logged', async (_, failure, why) => {
  const { log, lines } = logOfLines();
  const { sessions, client } = await lab(lifetimes, log).replica();
  client.before = failing('POST', failure);
  const error: unknown = await sessions.create(login).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 503, reason: 'ServiceUnavailable', cause: failure });
  expect(`${lines().join('\n')} ${String((error as Error).cause)}`).toMatch(why);
});

describe('the sessions of one user', () => {
  const max = 100;
  const bob = { ...login, userName: 'bob', userUID: 'uid-bob' };

  // evidence: session-limit
  test('the sessions of one user are limited to a hundred, and a further login revokes the least recently used session', async () => {
    const { cluster, clock, replica } = lab();
    const [one, two] = [await replica(), await replica()];
    const { session: other } = await one.sessions.create(bob);
    const started = [];
    for (let index = 0; index < max; index += 1) {
      started.push(await (index % 2 === 0 ? one : two).sessions.create(login));
      await clock.advance(second);
    }
    const [refreshed, oldest] = started;
    await granted(one.sessions, refreshed?.refreshToken ?? '');
    await settle();
    expect(stored(cluster)).toHaveLength(max + 1);
    const { session } = await two.sessions.create(login);
    await settle();
    const names = namesIn(cluster);
    expect(names).toHaveLength(max + 1);
    for (const kept of [other, session, refreshed?.session]) expect(names).toContain(kept?.metadata.name);
    expect(names).not.toContain(oldest?.session.metadata.name);
    for (const { ended } of [one, two]) expect(ended).toEqual([oldest?.session.metadata.name]);
  });

  test('the oldest session of a user beyond the limit is revoked at once on the replica of the login, before any watch event', async () => {
    const { clock, replica } = lab();
    const { sessions, client } = await replica();
    const { session: oldest } = await sessions.create(login);
    for (let index = 1; index < max; index += 1) {
      await clock.advance(1);
      await sessions.create(login);
    }
    client.holdWatches();
    await sessions.create(login);
    expect(await sessions.active(oldest.metadata.name)).toBeUndefined();
  });

  test('a session that is refreshed concurrently is not evicted', async () => {
    const { log, lines } = logOfLines();
    const { clock, cluster, replica } = lab(lifetimes, log);
    const [one, two] = [await replica(), await replica()];
    const { session: oldest, refreshToken } = await one.sessions.create(login);
    for (let index = 1; index < max; index += 1) {
      await clock.advance(1);
      await one.sessions.create(login);
    }
    one.client.before = async ({ method }) => {
      if (method === 'DELETE') await granted(two.sessions, refreshToken);
    };
    await one.sessions.create(login);
    expect(namesIn(cluster)).toContain(oldest.metadata.name);
    for (const { sessions } of [one, two]) expect(await sessions.active(oldest.metadata.name)).toBeDefined();
    expect(lines().filter((line) => line.includes('"warn"'))).toEqual([]);
  });

  test('the sessions of one user are kept if the new session cannot be stored or the oldest session cannot be revoked', async () => {
    const { log, lines } = logOfLines();
    const { cluster, clock, replica } = lab(lifetimes, log);
    const { sessions, client } = await replica();
    for (let index = 0; index < max; index += 1) await sessions.create(login);
    await clock.advance(second);
    const before = namesIn(cluster);
    client.before = failing('POST');
    await expect(sessions.create(login)).rejects.toMatchObject({ code: 503 });
    expect(namesIn(cluster)).toEqual(before);
    client.before = failing('DELETE');
    await sessions.create(login);
    expect(namesIn(cluster)).toHaveLength(max + 1);
    expect(lines().filter((line) => line.includes('"warn"'))).toHaveLength(1);
    client.before = () => undefined;
    await sessions.create(login);
    expect(namesIn(cluster)).toHaveLength(max);
  });
});

describe('the session limits of codes, clients and ServiceAccounts', () => {
  test('pending codes are limited to 20 per user, and evict no session', async () => {
    const { cluster, replica } = lab();
    const { sessions } = await replica();
    const { session } = await sessions.create(login);
    for (let index = 0; index < 25; index += 1) await sessions.codes.create({ ...login, code: {} }, minute, true);
    await settle();
    expect(namesIn(cluster)).toHaveLength(21);
    expect(namesIn(cluster)).toContain(session.metadata.name);
  });

  test.each(['Client', 'ServiceAccount'] as const)('a %s can have more sessions than a user', async (subjectKind) => {
    const { cluster, replica } = lab();
    const { sessions } = await replica();
    for (let index = 0; index < 110; index += 1) await sessions.createFixed({ ...login, subjectKind });
    expect(namesIn(cluster)).toHaveLength(110);
  });
});
