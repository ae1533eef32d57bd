/** Refresh tokens with two replicas: rotation, grace period, reuse (docs/security.md). */
import { afterEach, describe, expect, test } from '@jest/globals';
import { configure, type Configuration } from '../labs/integration/configure.ts';
import { eventually } from '../labs/integration/eventually.ts';
import { call, gateway, nodesPath } from '../labs/integration/http.ts';
import { decodeToken } from '../labs/integration/jwt.ts';
import { get, kube, releasePath } from '../labs/integration/kube.ts';
import { login, postForm, refreshForm, tokens, type OAuthProblem, type Tokens } from '../labs/integration/login.ts';

const [a, b] = [0, 1].map((replica) => gateway(replica as 0 | 1)) as [string, string];

let restore: (() => Promise<void>) | undefined;
afterEach(async () => {
  await restore?.();
  restore = undefined;
});

async function set(change: (authentication: Configuration['authentication']) => void): Promise<void> {
  await restore?.();
  restore = await configure(({ authentication }) => change(authentication));
}

const refresh = (token: string, base: string): Promise<Tokens> => tokens(refreshForm(token), base);

const statusWith = async (token: string, base: string): Promise<number> =>
  (await call(`${base}${nodesPath}?limit=0`, { token })).status;

async function expectRefused(token: string, base: string): Promise<void> {
  const response = await postForm(refreshForm(token), { base });
  expect({ status: response.status, error: (response.json as OAuthProblem).error }).toEqual({
    status: 400,
    error: 'invalid_grant',
  });
}

/** Expects that both replicas reject an access token. */
const expectEnded = (token: string): Promise<void> =>
  eventually('the access token is rejected', async () => {
    expect([await statusWith(token, a), await statusWith(token, b)]).toEqual([401, 401]);
  });

const sessionOf = (token: string): string =>
  `${releasePath.replace('/api/v1', '/apis/iam.platform.io/v1alpha2')}/sessions/${String(decodeToken(token).claims['sid'])}`;

describe('a session', () => {
  test('a session started at one replica can be used and refreshed at the other', async () => {
    const first = await login('admin', a);
    expect(await statusWith(first.access_token, b)).toBe(200);
    const second = await refresh(first.refresh_token, b);
    expect(second.refresh_token).not.toBe(first.refresh_token);
    expect(decodeToken(second.access_token).claims['sid']).toBe(decodeToken(first.access_token).claims['sid']);
    expect(await statusWith(second.access_token, a)).toBe(200);
    const third = await refresh(second.refresh_token, a);
    expect(await statusWith(third.access_token, b)).toBe(200);
    // Access tokens stay valid until they expire.
    expect(await statusWith(first.access_token, a)).toBe(200);
  });

  // evidence: refresh-token-storage-replicas
  test('a session stores only hashes of its tokens in the cluster', async () => {
    const first = await login('admin');
    const second = await refresh(first.refresh_token, b);
    const session = JSON.stringify(await get(sessionOf(first.access_token)));
    for (const token of [first, second].flatMap((all) => [all.access_token, all.refresh_token]))
      for (const part of token.split('.').filter((text) => text.length > 20 && !session.includes(`"name":"${text}"`)))
        expect(session).not.toContain(part);
  });

  test('a session is invalid on all replicas after its object is deleted', async () => {
    const { access_token: token, refresh_token: next } = await login('admin');
    expect(await statusWith(token, b)).toBe(200);
    await kube().json(sessionOf(token), { method: 'DELETE' });
    await expectEnded(token);
    await expectRefused(next, a);
    await expectRefused(next, b);
  });

  test('a session is invalid on all replicas after its object is marked as revoked', async () => {
    const { access_token: token, refresh_token: next } = await login('admin');
    const session = await get<{ status: object }>(sessionOf(token));
    await kube().json(sessionOf(token), {
      method: 'PUT',
      body: { ...session, status: { ...session.status, phase: 'Revoked' } },
    });
    await expectEnded(token);
    await expectRefused(next, b);
  });
});

describe('within the grace period', () => {
  test('every retry of a refresh within the grace period gets the same new refresh token on any replica', async () => {
    await set((authentication) => {
      authentication['refreshGrace'] = '10m';
    });
    const { refresh_token: token } = await login('admin', a);
    const all = await Promise.all(Array.from({ length: 8 }, (_, index) => refresh(token, index % 2 === 0 ? a : b)));
    const successors = new Set(all.map(({ refresh_token: successor }) => successor));
    expect(successors.size).toBe(1);
    for (const { access_token: access } of all) expect(await statusWith(access, b)).toBe(200);
    const [successor = ''] = successors;
    expect((await refresh(token, b)).refresh_token).toBe(successor);
    await refresh(successor, a);
  });

  test('a retry of a refresh is detected as reuse after the new refresh token was used', async () => {
    await set((authentication) => {
      authentication['refreshGrace'] = '10m';
    });
    const first = await login('admin', a);
    const second = await refresh(first.refresh_token, b);
    const third = await refresh(second.refresh_token, a);
    await expectRefused(first.refresh_token, b);
    await expectEnded(third.access_token);
    await expectRefused(third.refresh_token, a);
    await expectRefused(third.refresh_token, b);
  });
});

describe('after the grace period', () => {
  // evidence: refresh-reuse-replicas
  test('a refresh token that is used again after the grace period revokes its session on every replica', async () => {
    await set((authentication) => {
      authentication['refreshGrace'] = '0s';
    });
    const other = await login('admin', a);
    const first = await login('admin', a);
    const second = await refresh(first.refresh_token, a);
    // Reuses the refresh token in a later millisecond than the refresh.
    await new Promise((resolve) => setTimeout(resolve, 20));
    await expectRefused(first.refresh_token, b);
    await expectEnded(first.access_token);
    await expectEnded(second.access_token);
    await expectRefused(second.refresh_token, a);
    // Another login of the same user has a separate session.
    expect(await statusWith(other.access_token, b)).toBe(200);
    await refresh(other.refresh_token, b);
  });
});

describe('the session settings', () => {
  test('a session that is not refreshed for the duration refreshTokenIdle expires', async () => {
    const idle = await login('admin');
    await set((authentication) => {
      authentication['refreshTokenIdle'] = '1s';
    });
    await eventually('the idle session has expired', () => expectRefused(idle.refresh_token, b));
    await expectEnded(idle.access_token);
  });

  test("a login revokes the user's other sessions if only one session is allowed", async () => {
    await set((authentication) => {
      authentication['multipleLogin'] = false;
    });
    const alice = await login('alice', a);
    const before = await login('admin', a);
    const after = await login('admin', b);
    await expectEnded(before.access_token);
    await expectRefused(before.refresh_token, a);
    expect(await statusWith(after.access_token, a)).toBe(200);
    // The token is valid, but the user has no rights: 403.
    expect(await statusWith(alice.access_token, a)).toBe(403);
  });

  test('one of several simultaneous logins at both replicas keeps its session if only one session is allowed', async () => {
    await set((authentication) => {
      authentication['multipleLogin'] = false;
    });
    for (let round = 0; round < 5; round += 1) {
      const started = await Promise.all([a, b, a, b].map((at) => login('alice', at)));
      await eventually('the other sessions have ended', async () => {
        for (const at of [a, b]) {
          const statuses = await Promise.all(started.map(({ access_token }) => statusWith(access_token, at)));
          // The token is valid, but the user has no rights: 403.
          expect(statuses.toSorted((x, y) => x - y)).toEqual([401, 401, 401, 403]);
        }
      });
    }
  });

  test('a client without the refresh grant gets no refresh token', async () => {
    await set(({ clients }) => {
      for (const client of clients) if (client.name === 'platform') client['grantTypes'] = ['password'];
    });
    expect(await login('alice')).not.toHaveProperty('refresh_token');
  });
});
