import { describe, expect, test } from '@jest/globals';
import { gzipSync } from 'node:zlib';
import { unreachable } from '../../../../src/cluster/client/kube-error.ts';
import { allRecorded } from '../../../../src/http/records.ts';
import { sendRequest, type AppResponse } from '../../../fakes/request.ts';
import { readJWT } from '../../../fakes/jwt.ts';
import { logOfLines } from '../../../fakes/log.ts';
import { rightPassword } from '../../../labs/accounts.ts';
import { settle } from '../../../labs/cluster-fakes.ts';
import {
  asClient,
  createLab,
  login,
  overtakeNextWrite,
  refreshWith,
  type Fields,
  type Lab,
} from '../../../labs/oauth.ts';

/** Checks the headers that every token response and every error has (RFC 6749 section 5.1). */
function expectUncached({ headers }: AppResponse): void {
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    'cache-control': 'no-store',
    pragma: 'no-cache',
    'x-content-type-options': 'nosniff',
    'audit-id': expect.any(String),
  });
}

/** Checks that a response is an error in the format of RFC 6749 section 5.2. */
function expectRefused(response: AppResponse, status: number, error: string, description: RegExp = /./): void {
  expectUncached(response);
  expect(response.json()).toEqual({ error, error_description: expect.stringMatching(description) });
  expect(response.status).toBe(status);
  expect(response.json()['error_description']).toMatch(/^[\x20\x21\x23-\x5b\x5d-\x7e]+$/);
}

const clients = [
  { name: 'platform', secret: 'platform', grantTypes: ['password', 'refresh_token'] },
  { name: 'short', secret: 'short', grantTypes: ['password'] },
];
const asShort = { client_id: 'short', client_secret: 'short' };

describe('a login at the token endpoint', () => {
  // evidence: token-response-members
  test('a login at the token endpoint returns exactly the fields of RFC 6749 section 5.1', async () => {
    const response = await (await createLab()).token(login);
    expect(response.status).toBe(200);
    expectUncached(response);
    expect(response.json()).toEqual({
      access_token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
      token_type: 'Bearer',
      refresh_token: expect.any(String),
      expires_in: 7200,
    });
  });

  // evidence: scope-granted
  test.each([
    ['an id_token', 'openid', 'openid'],
    ['no id_token', 'groups', 'groups'],
    ['an id_token', 'openid profile unknown', 'openid profile'],
  ])('a login at the token endpoint gets %s for the scope %j, and is granted %j', async (outcome, scope, granted) => {
    const body = (await (await createLab()).token({ ...login, scope })).json();
    expect(body['scope']).toBe(granted);
    expect(readJWT(String(body['access_token'])).claims['scope']).toBe(granted);
    expect('id_token' in body).toBe(outcome === 'an id_token');
  });

  test('a login at the token endpoint for a client that cannot refresh gets no refresh token', async () => {
    const { token } = await createLab({ clients });
    const response = await token({ ...login, ...asShort });
    expect(response.status).toBe(200);
    expect(response.json()).not.toHaveProperty('refresh_token');
  });

  test('a login at the token endpoint can authenticate its client by HTTP Basic', async () => {
    const { token } = await createLab();
    const authorization = `Basic ${Buffer.from('platform:platform').toString('base64')}`;
    const fields = { ...login, client_id: undefined, client_secret: undefined };
    expect((await token(fields, { headers: { authorization } })).status).toBe(200);
  });

  test("a login at the token endpoint revokes the user's other sessions if multipleLogin is disabled", async () => {
    const { token, tokens, sessions } = await createLab({ multipleLogin: false });
    const sid = async (): Promise<string> =>
      tokens.verifyAccess(String((await token(login)).json()['access_token']))?.sid ?? '';
    const [first, second] = [await sid(), await sid()];
    expect(await sessions.active(first)).toBeUndefined();
    expect(await sessions.active(second)).toBeDefined();
  });
});

describe('a rejected token request', () => {
  const both = `Basic ${Buffer.from('platform:platform').toString('base64')}`;

  const refusals: [string, Fields, number, string, RegExp?][] = [
    ['without a client', { ...login, client_id: undefined, client_secret: undefined }, 401, 'invalid_client'],
    ['with an empty client secret', { ...login, client_secret: '' }, 401, 'invalid_client'],
    [
      'of an unknown client',
      { ...login, client_id: 'nobody' },
      401,
      'invalid_client',
      /unknown client or incorrect secret/,
    ],
    [
      'with a wrong client secret',
      { ...login, client_secret: 'x' },
      401,
      'invalid_client',
      /unknown client or incorrect secret/,
    ],
    ['without a grant type', { ...login, grant_type: undefined }, 400, 'invalid_request', /grant_type/],
    ['with an empty grant type', { ...login, grant_type: '' }, 400, 'invalid_request', /grant_type/],
    ['with an unsupported grant type', { ...login, grant_type: 'magic' }, 400, 'unsupported_grant_type', /password/],
    ['with a grant type in the wrong case', { ...login, grant_type: 'Password' }, 400, 'unsupported_grant_type'],
    [
      'with a grant type that its client is not allowed to use',
      { grant_type: 'refresh_token', refresh_token: 'x', ...asShort },
      400,
      'unauthorized_client',
      /short/,
    ],
    ['without a username', { ...login, username: undefined }, 400, 'invalid_request', /username/],
    ['with an empty username', { ...login, username: '' }, 400, 'invalid_request', /username/],
    ['without a password', { ...login, password: undefined }, 400, 'invalid_request', /password/],
    ['with an invalid scope', { ...login, scope: 'a  b' }, 400, 'invalid_scope'],
    ['without a refresh token', { ...refreshWith(''), refresh_token: '' }, 400, 'invalid_request', /refresh_token/],
    ['with a malformed refresh token', refreshWith('x'), 400, 'invalid_grant'],
    ['with an unknown refresh token', refreshWith(`${'0'.repeat(32)}.${'A'.repeat(43)}`), 400, 'invalid_grant'],
    ['of an unknown user', { ...login, username: 'nobody' }, 400, 'invalid_grant'],
    ['with a wrong password', { ...login, password: 'wrong horse' }, 400, 'invalid_grant'],
    ['of a disabled user', { ...login, username: 'mallory' }, 400, 'invalid_grant'],
  ];
  // evidence: token-endpoint-errors
  test.each(refusals.map(([how, fields, status, error, reason = /./]) => ({ how, fields, status, error, reason })))(
    'a token request $how is rejected',
    async ({ fields, status, error, reason }) => {
      const users = [{ username: 'alice' }, { username: 'mallory', state: 'Disabled' }];
      const response = await (await createLab({ clients, users })).token(fields);
      expectRefused(response, status, error, reason);
      const challenge = error === 'invalid_client' ? 'Basic realm="platform", charset="UTF-8"' : undefined;
      expect(response.headers['www-authenticate']).toBe(challenge);
    },
  );

  // evidence: token-repeated-parameter
  test.each(['grant_type', 'username', 'password', 'client_id', 'client_secret', 'scope', 'other'])(
    'a token request that repeats the parameter %s is rejected',
    async (name) => {
      const { token } = await createLab();
      const body = `${new URLSearchParams({ scope: 'openid', other: 'x', ...login }).toString()}&${name}=again`;
      expectRefused(await token({}, { body }), 400, 'invalid_request', new RegExp(`'${name}' is repeated`));
    },
  );

  const short = { grant_type: 'refresh_token', ...asShort };
  test.each<[string, string, Fields]>([
    ['a wrong secret, before a missing grant type', 'invalid_client', { ...asClient, client_secret: 'x' }],
    ['a missing grant type, before a wrong audience', 'invalid_request', { ...asClient, audience: 'x' }],
    [
      'an unsupported grant type, before a wrong audience',
      'unsupported_grant_type',
      { ...login, grant_type: 'x', audience: 'x' },
    ],
    [
      'a grant type that the client is not allowed to use, before a wrong audience',
      'unauthorized_client',
      { ...short, audience: 'x' },
    ],
    [
      'a wrong audience, before missing parameters of the grant',
      'invalid_target',
      { ...refreshWith(''), audience: 'x' },
    ],
  ])('a token request is rejected for its first problem: %s', async (_, error, fields) => {
    const { token } = await createLab({ clients });
    expect((await token(fields)).json()['error']).toBe(error);
  });

  test('a token request that repeats a parameter is rejected before its client is authenticated', async () => {
    const { token } = await createLab();
    expectRefused(await token({}, { body: 'scope=a&scope=a' }), 400, 'invalid_request', /repeated/);
  });

  test('the error for a token request names every missing parameter of the grant', async () => {
    const { token } = await createLab();
    const { error_description } = (await token({ ...asClient, grant_type: 'password' })).json();
    expect(error_description).toBe("the parameter 'username' is missing; the parameter 'password' is missing");
  });

  test('a token request that authenticates its client twice is rejected', async () => {
    const { token } = await createLab();
    expectRefused(await token(login, { headers: { authorization: both } }), 400, 'invalid_request', /twice/);
  });

  test.each([
    ['a JSON body', { headers: { 'content-type': 'application/json' }, body: JSON.stringify(login) }, 415],
    ['no body', { headers: { 'content-type': '' }, body: '' }, 415],
    ['a body that is too large', { body: `a=${'x'.repeat(70_000)}` }, 413],
    ['a broken encoding', { body: 'a=%' }, 400],
    ['an unknown compression', { headers: { 'content-encoding': 'magic' }, body: 'a=1' }, 415],
    ['a compressed form', { headers: { 'content-encoding': 'gzip' }, body: gzipSync('a=1') }, 415],
  ])('a token request that has %s is rejected', async (_, options, status) => {
    expectRefused(await (await createLab()).token({}, options), status, 'invalid_request');
  });

  // evidence: token-method
  test.each(['GET', 'PUT', 'DELETE', 'PATCH'])(
    'a token request with the method %s is rejected with a 405 that names POST',
    async (method) => {
      const { token } = await createLab();
      const response = await token({}, { method, body: '' });
      expectRefused(response, 405, 'invalid_request');
      expect(response.headers.allow).toBe('POST');
    },
  );

  // evidence: token-url-parameters
  test.each(['?grant_type=password', '?access_token=x', '?x'])(
    'a token request with parameters in the URL is rejected: %s',
    async (query) => {
      const { app } = await createLab();
      const response = await sendRequest(app, `/oauth/token${query}`, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams(login).toString(),
      });
      expectRefused(response, 400, 'invalid_request');
    },
  );

  test('a token request gets 503 while the cluster accepts no writes, so that the client retries', async () => {
    const { token, client } = await createLab();
    client.before = () => {
      throw unreachable(new Error('the socket hung up'));
    };
    const response = await token(login);
    expectRefused(response, 503, 'temporarily_unavailable');
    expect(response.headers['retry-after']).toBe('1');
    expect(response.text).not.toContain('socket');
  });

  test('a token request gets 500 after an internal error, and the response does not contain the cause', async () => {
    const { token, hashes } = await createLab();
    hashes.failure = new Error('out of memory at /srv/hash.js');
    const response = await token(login);
    expectRefused(response, 500, 'server_error');
    expect(response.text).not.toContain('memory');
  });
});

describe('token responses for failed logins', () => {
  // evidence: password-login-equal-work
  test('the token endpoint responds to an unknown user, a wrong password and a disabled user with the same bytes and work', async () => {
    const users = [{ username: 'alice' }, { username: 'mallory', state: 'Disabled' }];
    const seen: unknown[] = [];
    for (const fields of [
      { username: 'nobody' },
      { password: 'wrong horse' },
      { username: 'mallory' },
      { username: 'mallory', password: 'wrong horse' },
    ]) {
      const { token, hashes } = await createLab({ users });
      const before = hashes.verified.length;
      const { status, text, headers } = await token({ ...login, ...fields });
      seen.push({ status, text, names: Object.keys(headers), work: hashes.verified.slice(before) });
    }
    expect(new Set(seen.map((one) => JSON.stringify(one))).size).toBe(1);
  });
});

describe('after too many failed logins', () => {
  const loginLimit = { maxTries: 3, within: '10m', perAddress: 100, perClient: 1000 };

  // evidence: password-login-limit
  test.each(['alice', 'nobody'])(
    'a login as %s after too many failures gets 429 without a hash computation, even with the right password',
    async (username) => {
      const { token, hashes } = await createLab({ loginLimit });
      for (let time = 0; time < 3; time += 1)
        expectRefused(await token({ ...login, username, password: 'wrong horse' }), 400, 'invalid_grant');
      const before = hashes.verified.length;
      const response = await token({ ...login, username });
      expectRefused(response, 429, 'invalid_grant');
      expect(Number(response.headers['retry-after'])).toBeGreaterThan(0);
      expect(hashes.verified).toHaveLength(before);
    },
  );

  // evidence: password-login-concurrent
  test.each(['alice', 'nobody'])(
    'concurrent guesses at the password of %s cause no more hashes than the limit allows',
    async (username) => {
      const { token, hashes } = await createLab({ loginLimit });
      const before = hashes.verified.length;
      const guess = (): Promise<AppResponse> => token({ ...login, username, password: 'wrong horse' });
      const responses = await Promise.all(Array.from({ length: 64 }, guess));
      expect(responses.filter(({ status }) => status === 400)).toHaveLength(3);
      expect(responses.filter(({ status }) => status === 429)).toHaveLength(61);
      expect(hashes.verified.slice(before)).toHaveLength(3);
    },
  );

  test('concurrent logins with the right password all succeed', async () => {
    const { token } = await createLab({ loginLimit });
    const responses = await Promise.all(Array.from({ length: 40 }, () => token(login)));
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
  });

  test('a login is allowed again after the time in a 429 response', async () => {
    const { token, clock } = await createLab({ loginLimit });
    for (let time = 0; time < 3; time += 1) await token({ ...login, password: 'wrong horse' });
    const { headers } = await token(login);
    await clock.advance(Number(headers['retry-after']) * 1_000);
    expect((await token(login)).status).toBe(200);
  });

  test('a login from another address succeeds after too many failures and the subsequent delay for the user', async () => {
    const { token, clock } = await createLab({ loginLimit });
    for (let time = 0; time < 3; time += 1) await token({ ...login, password: 'wrong horse' }, { from: '192.0.2.9' });
    await clock.advance(5_000);
    expect((await token(login, { from: '192.0.2.9' })).status).toBe(429);
    expect((await token(login, { from: '192.0.2.10' })).status).toBe(200);
  });
});

async function tokensOf(made: Lab, fields: Fields = login): Promise<{ access: string; refresh: string }> {
  const body = (await made.token(fields)).json();
  return { access: String(body['access_token']), refresh: String(body['refresh_token']) };
}

describe('a token refresh', () => {
  test('a token refresh returns new tokens for the same session', async () => {
    const made = await createLab();
    const first = await tokensOf(made);
    const second = await tokensOf(made, refreshWith(first.refresh));
    expect(second.refresh).not.toBe(first.refresh);
    expect(readJWT(second.access).claims['sid']).toBe(readJWT(first.access).claims['sid']);
    expect(made.tokens.verifyAccess(second.access)).toBeDefined();
  });

  // evidence: refresh-narrower-scope
  test('a token refresh can request a narrower scope, and a later refresh can request the full scope again', async () => {
    const made = await createLab();
    const first = await tokensOf(made, { ...login, scope: 'openid profile groups' });
    const narrowed = (await made.token({ ...refreshWith(first.refresh), scope: 'openid' })).json();
    expect(narrowed['scope']).toBe('openid');
    expect(readJWT(String(narrowed['access_token'])).claims['scope']).toBe('openid');
    expect(readJWT(String(narrowed['id_token'])).claims).not.toHaveProperty('groups');
    const whole = (await made.token(refreshWith(narrowed['refresh_token']))).json();
    expect(whole['scope']).toBe('openid profile groups');
  });

  // evidence: refresh-wider-scope
  test('a token refresh for a wider scope gets 400 invalid_scope and does not consume the token', async () => {
    const made = await createLab();
    const { refresh } = await tokensOf(made, { ...login, scope: 'openid' });
    expectRefused(await made.token({ ...refreshWith(refresh), scope: 'openid groups' }), 400, 'invalid_scope');
    expect((await made.token(refreshWith(refresh))).status).toBe(200);
  });

  test('a token refresh returns tokens even if its session is changed concurrently', async () => {
    const made = await createLab();
    const { refresh } = await tokensOf(made);
    overtakeNextWrite(made);
    expect((await made.token(refreshWith(refresh))).status).toBe(200);
  });

  test('a token refresh reads the cluster only if another request changed the session', async () => {
    const made = await createLab();
    const methods = async (token: string): Promise<[string, string[]]> => {
      await settle();
      made.client.requests.length = 0;
      const { refresh } = await tokensOf(made, refreshWith(token));
      return [refresh, made.client.requests.map(({ method }) => method)];
    };
    const [second, first] = await methods((await tokensOf(made)).refresh);
    expect(first).toEqual(['PUT']);
    overtakeNextWrite(made);
    expect((await methods(second))[1]).toEqual(['PUT', 'GET', 'PUT']);
  });

  // evidence: refresh-reuse-grace
  test('a token refresh with a used token revokes the session after the grace period', async () => {
    const made = await createLab({ refreshGrace: '10s' });
    const { refresh } = await tokensOf(made);
    const next = await tokensOf(made, refreshWith(refresh));
    await made.clock.advance(10_001);
    expectRefused(await made.token(refreshWith(refresh)), 400, 'invalid_grant');
    expectRefused(await made.token(refreshWith(next.refresh)), 400, 'invalid_grant');
  });

  // evidence: refresh-validation
  test.each<[string, (made: Lab) => void | Promise<void>]>([
    ['a user who was disabled', (made) => made.configure({ users: [{ username: 'alice', state: 'Disabled' }] })],
    ['a user who was deleted', (made) => made.configure({ users: [] })],
    [
      'a user whose password was changed',
      (made) =>
        made.configure({ users: [{ username: 'alice', passwordHash: made.hashes.of('new horse', 'bcrypt:4') }] }),
    ],
    ['a session that has expired', (made) => made.clock.advance(61 * 60_000)],
    ['a session that was idle for too long', (made) => made.clock.advance(31 * 60_000)],
  ])('a token refresh for %s gets 400 invalid_grant', async (_, change) => {
    const made = await createLab({ refreshTokenIdle: '30m', sessionMaxAge: '1h' });
    const { refresh } = await tokensOf(made);
    await change(made);
    expectRefused(await made.token(refreshWith(refresh)), 400, 'invalid_grant');
  });

  // evidence: refresh-client-binding
  test('a token refresh by another client gets 400 invalid_grant, and the token stays valid for its own client', async () => {
    const made = await createLab({
      clients: [...clients, { name: 'other', secret: 'x', grantTypes: ['refresh_token'] }],
    });
    const { refresh } = await tokensOf(made);
    const stolen = { ...refreshWith(refresh), client_id: 'other', client_secret: 'x' };
    expectRefused(await made.token(stolen), 400, 'invalid_grant');
    // The grace period for used refresh tokens has passed.
    await made.clock.advance(10_001);
    expect((await made.token(refreshWith(refresh))).status).toBe(200);
  });
});

test('no error response and no log line of the token endpoint contains a secret of the request', async () => {
  const { log, lines } = logOfLines();
  const made = await createLab({ clients }, { log });
  const secrets = [rightPassword, 'wrong-secret-horse', 'a-client-secret'];
  const { access_token: access, refresh_token: refresh } = (await made.token(login)).json();
  await made.token(refreshWith(refresh));
  const refusals = [
    await made.token({ ...login, password: 'wrong-secret-horse' }),
    await made.token({ ...login, ...asClient, client_secret: 'a-client-secret' }),
    await made.token(refreshWith('a-client-secret')),
    await sendRequest(
      made.app,
      `/oauth/token?password=wrong-secret-horse&refresh_token=${String(refresh)}&client_assertion=a-client-secret`,
    ),
  ];
  await allRecorded();
  const written = [...lines(), ...refusals.map(({ text }) => text)].join('\n');
  expect(lines().length).toBeGreaterThan(4);
  for (const secret of [...secrets, access, refresh])
    for (const shape of [String(secret), String(secret).replaceAll(' ', '+')]) expect(written).not.toContain(shape);
});
