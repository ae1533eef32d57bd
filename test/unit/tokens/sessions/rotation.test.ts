import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { newSessionID, RefreshTokens } from '../../../../src/tokens/refresh-tokens.ts';
import type { KubeRequest } from '../../../../src/cluster/client/client.ts';
import { unreachable } from '../../../../src/cluster/client/kube-error.ts';
import type { FoundRefreshToken } from '../../../../src/tokens/sessions/rotation.ts';
import type { Sessions } from '../../../../src/tokens/sessions/sessions.ts';
import { settle } from '../../../labs/cluster-fakes.ts';
import {
  granted,
  lab,
  lifetimes,
  login,
  minute,
  path,
  refresh,
  second,
  stored,
  tokens,
} from '../../../labs/sessions.ts';

async function find(sessions: Sessions, token: string, isRetry = false): Promise<FoundRefreshToken> {
  const found = await sessions.rotation.find(token, login.clientID, isRetry);
  if (typeof found === 'string') throw new Error(`not found: ${found}`);
  return found;
}

/** Refreshes a session so that the write succeeds and the response of the cluster is lost. */
async function lost() {
  const made = lab();
  const replicas = [await made.replica(), await made.replica()] as const;
  const [{ sessions, client }] = replicas;
  const { refreshToken } = await sessions.create(login);
  client.after = ({ method }) => {
    client.after = () => undefined;
    if (method === 'PUT') throw unreachable(new Error('reset'));
  };
  await expect(refresh(sessions, refreshToken)).rejects.toMatchObject({ code: 503 });
  await made.clock.advance(9 * minute);
  return { ...made, one: sessions, two: replicas[1].sessions, client, refreshToken };
}

describe('a refresh', () => {
  test('a refresh returns a new refresh token and extends the idle timeout', async () => {
    const { cluster, clock, replica } = lab();
    const { sessions } = await replica();
    const { session, refreshToken } = await sessions.create(login);
    await clock.advance(20 * minute);
    expect(await granted(sessions, refreshToken)).toBe(tokens.successor(refreshToken));
    await clock.advance(20 * minute);
    expect(await sessions.active(session.metadata.name)).toBeDefined();
    expect(stored(cluster)).toHaveLength(1);
  });

  test('a refresh that is repeated within the grace period returns the same new refresh token on any replica, and writes nothing', async () => {
    const { cluster, clock, replica } = lab();
    const [one, two] = [await replica(), await replica()];
    const { refreshToken } = await one.sessions.create(login);
    const successor = await granted(one.sessions, refreshToken);
    await settle();
    const before = stored(cluster);
    await clock.advance(lifetimes.refreshGrace);
    expect(await granted(one.sessions, refreshToken)).toBe(successor);
    expect(await granted(two.sessions, refreshToken)).toBe(successor);
    expect(stored(cluster)).toEqual(before);
    expect(await granted(two.sessions, successor)).toBe(tokens.successor(successor));
  });

  test.each([
    ['the watch has sent', false],
    ['the watch has not sent yet', true],
  ])(
    'a refresh without a grace period rotates the token of a session that %s, and does not revoke the session',
    async (_what, isUnknown) => {
      const { cluster, clock, replica } = lab({ ...lifetimes, refreshGrace: 0 });
      const [one, two] = [await replica(), await replica()];
      if (isUnknown) two.client.holdWatches();
      const { refreshToken } = await one.sessions.create(login);
      await settle();
      two.client.after = async ({ method }) => {
        if (method === 'PUT') await clock.advance(1);
      };
      let token = refreshToken;
      for (let count = 0; count < 3; count += 1) {
        const next = await granted(two.sessions, token);
        expect(next).toBe(tokens.successor(token));
        token = next;
      }
      expect(stored(cluster).map(({ status }) => status.phase)).toEqual(['Active']);
    },
  );

  // evidence: refresh-reuse
  test('a refresh that is repeated after the grace period revokes the session on every replica', async () => {
    const { clock, replica } = lab();
    const [one, two] = [await replica(), await replica()];
    const { session, refreshToken } = await one.sessions.create(login);
    const successor = await granted(one.sessions, refreshToken);
    await clock.advance(lifetimes.refreshGrace + 1);
    expect(await refresh(two.sessions, refreshToken)).toBe('reused');
    await settle();
    for (const { sessions, ended } of [one, two]) {
      expect(await sessions.active(session.metadata.name)).toBeUndefined();
      expect(await refresh(sessions, successor)).toBe('ended');
      expect(ended).toEqual([session.metadata.name]);
    }
  });

  test('a refresh with a token that was replaced twice revokes the session, even within the grace period', async () => {
    const { replica } = lab();
    const { sessions } = await replica();
    const { session, refreshToken } = await sessions.create(login);
    const next = await granted(sessions, refreshToken);
    await granted(sessions, next);
    expect(await refresh(sessions, refreshToken)).toBe('reused');
    expect(await sessions.active(session.metadata.name)).toBeUndefined();
  });

  test('a refresh on a replica whose watch lags reads the session from the cluster', async () => {
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
    expect(await refresh(two.sessions, tokens.successor(fourth))).toBe('ended');
  });

  test('a refresh whose response was lost returns the same new refresh token when it is repeated', async () => {
    const { replica } = lab();
    const { sessions, client } = await replica();
    const { refreshToken } = await sessions.create(login);
    client.after = ({ method }) => {
      client.after = () => undefined;
      if (method === 'PUT') throw unreachable(new Error('reset'));
    };
    await expect(refresh(sessions, refreshToken)).rejects.toMatchObject({ code: 503 });
    expect(await granted(sessions, refreshToken)).toBe(tokens.successor(refreshToken));
  });

  describe('a refresh whose response was lost for longer than the grace period', () => {
    // evidence: refresh-lost-grace
    test('a refresh with a lost response can be repeated after the grace period on the same replica, and starts a new grace period', async () => {
      const { one, two, clock, refreshToken } = await lost();
      const successor = await granted(one, refreshToken);
      expect(successor).toBe(tokens.successor(refreshToken));
      await clock.advance(lifetimes.refreshGrace);
      for (const sessions of [one, two]) expect(await granted(sessions, refreshToken)).toBe(successor);
      await clock.advance(1);
      expect(await refresh(one, refreshToken)).toBe('reused');
      expect(await refresh(one, successor)).toBe('ended');
    });

    // evidence: refresh-lost-successor-used
    test('a refresh with a lost response that is repeated after the grace period revokes the session if the new refresh token was used', async () => {
      const { one, two, refreshToken } = await lost();
      await granted(two, tokens.successor(refreshToken));
      expect(await refresh(one, refreshToken)).toBe('reused');
    });

    // evidence: refresh-lost-other-replica
    test('a refresh with a lost response that is repeated on another replica, or after ten minutes, revokes the session', async () => {
      const elsewhere = await lost();
      expect(await refresh(elsewhere.two, elsewhere.refreshToken)).toBe('reused');
      const late = await lost();
      await late.clock.advance(minute + 1);
      expect(await refresh(late.one, late.refreshToken)).toBe('reused');
    });

    test('a refresh with a lost response can be repeated after the grace period, even after a lookup or a second lost response', async () => {
      const { one, client, clock, refreshToken } = await lost();
      expect(await one.rotation.inspect(refreshToken)).toMatchObject({ isCurrent: true });
      client.before = ({ method }) => {
        if (method !== 'PUT') return;
        client.before = () => undefined;
        throw unreachable(new Error('reset'));
      };
      await expect(refresh(one, refreshToken)).rejects.toMatchObject({ code: 503 });
      await clock.advance(30 * second);
      expect(await granted(one, refreshToken)).toBe(tokens.successor(refreshToken));
    });
  });

  test('a refresh gets 503 within the grace period if the cluster does not respond, so that the client can repeat the refresh', async () => {
    const { clock, replica } = lab();
    const { sessions, client } = await replica();
    const { refreshToken } = await sessions.create(login);
    client.json = <T>(_path: string, options?: KubeRequest): Promise<T> =>
      new Promise((_, reject) => {
        options?.signal?.addEventListener('abort', () => reject(unreachable(options.signal?.reason)));
      });
    const response = refresh(sessions, refreshToken).catch((error: unknown) => error);
    await settle();
    await clock.advance(lifetimes.refreshGrace / 2);
    expect(await Promise.race([response, settle()])).toMatchObject({ code: 503 });
  });

  test('a refresh token of another client is rejected as unknown and revokes nothing, even if the token was already used', async () => {
    const { cluster, clock, replica } = lab();
    const { sessions } = await replica();
    const { refreshToken } = await sessions.create(login);
    const successor = await granted(sessions, refreshToken);
    await clock.advance(lifetimes.refreshGrace + 1);
    const before = stored(cluster);
    for (const token of [refreshToken, successor])
      expect(await sessions.rotation.find(token, 'another', false)).toBe('unknown');
    expect(stored(cluster)).toEqual(before);
  });

  test('a lookup of a refresh token consumes nothing and does not read the cluster if the watch has sent the session', async () => {
    const { cluster, replica } = lab();
    const { sessions, client } = await replica();
    const { refreshToken } = await sessions.create(login);
    await settle();
    client.requests.length = 0;
    const before = stored(cluster);
    expect(await find(sessions, refreshToken)).toMatchObject({ session: {} });
    expect(client.requests).toEqual([]);
    expect(stored(cluster)).toEqual(before);
    await granted(sessions, refreshToken);
    expect(client.requests.map(({ method }) => method)).toEqual(['PUT']);
  });

  test('a refresh of a session that changed since the lookup must be retried, and the retry returns the same new refresh token', async () => {
    const { replica } = lab();
    const [one, two] = [await replica(), await replica()];
    const { refreshToken } = await one.sessions.create(login);
    await settle();
    const [first, other] = [await find(one.sessions, refreshToken), await find(two.sessions, refreshToken)];
    expect(await first.use()).toMatchObject({ refreshToken: tokens.successor(refreshToken) });
    expect(await other.use()).toBe('changed');
    const again = await find(two.sessions, refreshToken, true);
    expect(await again.use()).toMatchObject({ refreshToken: tokens.successor(refreshToken) });
  });

  test('a refresh with a used token revokes its session despite concurrent changes to the session', async () => {
    const { cluster, clock, replica } = lab();
    const { sessions, client } = await replica();
    const { session, refreshToken } = await sessions.create(login);
    await granted(sessions, refreshToken);
    await clock.advance(lifetimes.refreshGrace + 1);
    let left = 4;
    client.before = ({ method }) => {
      const current = cluster.get(path, session.metadata.name);
      if (method === 'PUT' && current !== undefined && left-- > 0) cluster.put(path, current);
    };
    expect(await refresh(sessions, refreshToken)).toBe('reused');
    expect(stored(cluster).map(({ status }) => status.phase)).toEqual(['Revoked']);
  });

  test('a refresh with a token that was never issued causes no read of the cluster', async () => {
    const { replica } = lab();
    const { sessions, client } = await replica();
    const { session } = await sessions.create(login);
    const foreign = new RefreshTokens(Buffer.alloc(32, 8));
    client.requests.length = 0;
    for (const token of ['', 'x', foreign.first(newSessionID()), foreign.first(session.metadata.name)])
      expect(await refresh(sessions, token)).toBe('unknown');
    expect(client.requests).toEqual([]);
    expect(await sessions.active(session.metadata.name)).toBeDefined();
  });

  test('concurrent repeated refreshes on two replicas all return the same new refresh token', async () => {
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

  test('a refresh gets 503 if the session is changed concurrently at every attempt', async () => {
    const { cluster, replica } = lab();
    const { sessions, client } = await replica();
    const { session, refreshToken } = await sessions.create(login);
    client.before = ({ method }) => {
      if (method !== 'PUT') return;
      const current = cluster.get(path, session.metadata.name);
      if (current !== undefined) cluster.put(path, current);
    };
    await expect(refresh(sessions, refreshToken)).rejects.toMatchObject({ code: 503 });
  });
});
