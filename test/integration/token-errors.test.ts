/** Errors of the token endpoint (docs/guides/tokens.md, "When it fails"). */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { aggregated, call, gateway, secureGateway, type HttpResponse } from '../labs/integration/http.ts';
import {
  basic,
  encode,
  login,
  passwordForm,
  platform,
  postForm,
  refreshForm,
  type OAuthProblem,
  type Tokens,
} from '../labs/integration/login.ts';
import { clientSecrets } from '../labs/integration/people.ts';

/** Requires a response according to RFC 6749 section 5.2 that is never cached. */
function expectProblem(response: HttpResponse, status: number, error: string): OAuthProblem {
  expect({ status: response.status, ...(response.json as OAuthProblem) }).toMatchObject({ status, error });
  expect(response.headers).toMatchObject({
    'content-type': 'application/json',
    'cache-control': 'no-store',
    pragma: 'no-cache',
    'audit-id': expect.any(String) as unknown,
  });
  const problem = response.json as OAuthProblem;
  expect(Object.keys(problem).toSorted()).toEqual(['error', 'error_description']);
  // RFC 6749 section 5.2 allows neither quotation marks nor backslashes nor non-ASCII characters.
  expect(problem.error_description).toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/);
  return problem;
}

const right = passwordForm('alice');
const { client_id: _id, client_secret: _secret, ...bare } = right;

const without = (name: string): Record<string, string> =>
  Object.fromEntries(Object.entries(right).filter(([key]) => key !== name));

describe('client authentication', () => {
  const challenge = { 'www-authenticate': expect.stringMatching(/^Basic realm="/) as unknown };

  test.each([
    ['no credentials at all', bare, {}],
    ['no secret', without('client_secret'), {}],
    ['no client_id', without('client_id'), {}],
    ['an empty secret', { ...right, client_secret: '' }, {}],
    ['an unknown client', { ...right, client_id: 'nobody' }, {}],
    ['a wrong secret', { ...right, client_secret: 'Platform' }, {}],
    ['an unknown client in Basic authentication', bare, basic('nobody', 'platform')],
    ['a wrong secret in Basic authentication', bare, basic('platform', 'wrong')],
    ['an empty secret in Basic authentication', bare, basic('platform', '')],
    [
      'Basic authentication without a colon',
      bare,
      { authorization: `Basic ${Buffer.from('platform').toString('base64')}` },
    ],
    ['Basic authentication that is not base64', bare, { authorization: 'Basic !!!!' }],
    ['Basic authentication without credentials', bare, { authorization: 'Basic ' }],
    ['a bearer token', bare, { authorization: 'Bearer abcdefgh' }],
    ['a wrong secret of a client with a hash', { ...bare, client_id: 'hashed', client_secret: 'x' }, {}],
    ['a wrong secret of a client with a Secret', { ...bare, client_id: 'referred', client_secret: 'x' }, {}],
    ['a public client that does not exist', { ...bare, client_id: 'platform-tv' }, {}],
    ['a public client with a secret', { ...bare, client_id: 'platform-cli', client_secret: 'x' }, {}],
  ])('client authentication with %s gets 401 invalid_client', async (_, form, headers) => {
    const response = await postForm(form, { headers });
    expectProblem(response, 401, 'invalid_client');
    expect(response.headers).toMatchObject(challenge);
  });

  test('client authentication fails in the same way for an unknown client and a wrong secret', async () => {
    const unknown = await postForm({ ...right, client_id: 'nobody' });
    const wrong = await postForm({ ...right, client_secret: 'wrong' });
    expect(unknown.json).toEqual(wrong.json);
  });

  test('a token request with credentials in both the form and Basic authentication gets 400 invalid_request', async () => {
    const headers = basic('platform', 'platform');
    expectProblem(await postForm(right, { headers }), 400, 'invalid_request');
    expectProblem(await postForm({ ...bare, client_id: 'hashed' }, { headers }), 400, 'invalid_request');
  });
});

describe('a token request', () => {
  test.each(['grant_type', 'username', 'password'])(
    'a token request without %s gets 400 with the name of the parameter',
    async (name) => {
      for (const form of [without(name), { ...right, [name]: '' }])
        expect(expectProblem(await postForm(form), 400, 'invalid_request').error_description).toContain(name);
    },
  );

  test('a token request without refresh_token gets 400 with the name of the parameter', async () => {
    const problem = expectProblem(await postForm({ grant_type: 'refresh_token', ...platform }), 400, 'invalid_request');
    expect(problem.error_description).toContain('refresh_token');
  });

  test.each(['grant_type', 'username', 'password', 'client_id', 'client_secret', 'scope', 'nonsense'])(
    'a token request that repeats %s gets 400 with the name of the parameter',
    async (name) => {
      const value = right[name] ?? 'openid';
      for (const more of [value, 'other', ''])
        expect(
          expectProblem(
            await postForm([...Object.entries({ [name]: value, ...right }), [name, more]] as [string, string][]),
            400,
            'invalid_request',
          ).error_description,
        ).toContain(name);
    },
  );

  test('a token request that repeats refresh_token gets 400 with the name of the parameter', async () => {
    const form = [...Object.entries(refreshForm('a')), ['refresh_token', 'b']] as [string, string][];
    expect(expectProblem(await postForm(form), 400, 'invalid_request').error_description).toContain('refresh_token');
  });

  test.each([
    'authorization_code',
    'client_credentials',
    'urn:ietf:params:oauth:grant-type:device_code',
    'urn:ietf:params:oauth:grant-type:token-exchange',
  ])(
    'a token request with the supported grant_type %s gets 400 unauthorized_client if the client lacks this grant',
    async (grantType) => {
      expectProblem(await postForm({ ...right, grant_type: grantType }), 400, 'unauthorized_client');
    },
  );

  test.each(['Password', 'password ', 'nonsense', 'constructor', '__proto__'])(
    'a token request with the unsupported grant_type %j gets 400 unsupported_grant_type',
    async (grantType) => {
      expectProblem(await postForm({ ...right, grant_type: grantType }), 400, 'unsupported_grant_type');
    },
  );

  test('a token request with the grant_type password gets 400 unauthorized_client if the client lacks this grant', async () => {
    const form = { ...bare, client_id: 'refresh-only', client_secret: clientSecrets['refresh-only'] };
    expectProblem(await postForm(form), 400, 'unauthorized_client');
  });

  test.each([' openid', 'openid ', 'openid  profile', 'open"id', 'open\\id', 'öpenid', '\n', `x${'y'.repeat(1_000)}`])(
    'a token request with scope %j gets 400 invalid_scope',
    async (scope) => {
      expectProblem(await postForm({ ...right, scope }), 400, 'invalid_scope');
    },
  );
});

describe('a login of a user', () => {
  test.each([
    ['of an unknown user', 'nobody', 'some password'],
    ['with a wrong password', 'alice', 'Alice keeps 7431 bees'],
    ['of a disabled user', 'dave', undefined],
    ['with the name in capitals', 'ALICE', 'alice keeps 7431 bees'],
    ['with white space in the name', 'alice ', 'alice keeps 7431 bees'],
    ['with the name of a JavaScript property', '__proto__', 'some password'],
    ['with a name of 10,000 letters', 'a'.repeat(10_000), 'some password'],
    ['with a password of 10,000 letters', 'bob', 'p'.repeat(10_000)],
    ['with NUL in the password', 'bob', 'alice keeps 7431 bees\0'],
  ])('a login %s gets 400 invalid_grant with the same message', async (_, username, password) => {
    const problem = expectProblem(await postForm(passwordForm(username, password)), 400, 'invalid_grant');
    // Uses a new username for each login, because failures are limited per username.
    const stranger = passwordForm(`stranger-${randomUUID()}`, 'wrong');
    expect(problem).toEqual(expectProblem(await postForm(stranger), 400, 'invalid_grant'));
    // A successful login resets the count of failures.
    if (username === 'alice' || username === 'bob') await login(username);
  });
});

describe('an invalid refresh token', () => {
  test.each([
    'x',
    'a.b.c',
    `${'0'.repeat(32)}.${'A'.repeat(43)}`,
    `${'0'.repeat(32)}.${'A'.repeat(43)}.${'A'.repeat(22)}`,
  ])('an invalid refresh token %s gets 400 invalid_grant', async (token) => {
    expectProblem(await postForm(refreshForm(token)), 400, 'invalid_grant');
  });

  test('an access token in place of a refresh token gets 400 invalid_grant', async () => {
    const { access_token: token } = await login('alice');
    expectProblem(await postForm(refreshForm(token)), 400, 'invalid_grant');
  });

  test('a refresh token of another client gets 400 invalid_grant and stays valid', async () => {
    const first = await login('alice');
    const form = { ...refreshForm(first.refresh_token), client_id: 'hashed', client_secret: clientSecrets.hashed };
    expectProblem(await postForm(form), 400, 'invalid_grant');
    expect((await postForm(refreshForm(first.refresh_token))).status).toBe(200);
  });

  test('a refresh with a wider scope than granted gets 400 invalid_scope and leaves the refresh token valid', async () => {
    const first = (await postForm({ ...right, scope: 'profile' })).json as Tokens;
    const form = { ...refreshForm(first.refresh_token), scope: 'profile openid' };
    expectProblem(await postForm(form), 400, 'invalid_scope');
    expect((await postForm(refreshForm(first.refresh_token))).status).toBe(200);
  });
});

describe('a malformed token request', () => {
  test.each([
    ['JSON', 'application/json', JSON.stringify(right)],
    ['multipart', 'multipart/form-data; boundary=x', '--x--'],
    ['plain text', 'text/plain', encode(right)],
    ['a media type with the same prefix', 'application/x-www-form-urlencodedx', encode(right)],
    ['a malformed media type', ';', encode(right)],
  ])('a malformed token request with %s gets 415', async (_, type, body) => {
    expectProblem(await postForm(body, { headers: { 'content-type': type } }), 415, 'invalid_request');
  });

  test('a malformed token request without a media type or a body gets 415', async () => {
    expectProblem(await call(`${gateway()}/oauth/token`, { method: 'POST' }), 415, 'invalid_request');
    expectProblem(
      await call(`${gateway()}/oauth/token`, { method: 'POST', body: encode(right) }),
      415,
      'invalid_request',
    );
  });

  test.each(['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    'a token request with the method %s gets 405 with the allowed methods',
    async (method) => {
      const response = await call(`${gateway()}/oauth/token`, {
        method,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: encode(right),
      });
      expectProblem(response, 405, 'invalid_request');
      expect(response.headers.allow).toBe('POST');
    },
  );

  test('a token request with the method HEAD gets 405 without a body', async () => {
    const response = await call(`${gateway()}/oauth/token`, { method: 'HEAD' });
    expect(response).toMatchObject({ status: 405, body: Buffer.alloc(0), headers: { allow: 'POST' } });
  });

  test.each(['?grant_type=password', '?x', '?client_id=platform&client_secret=platform'])(
    'a token request with the query %s gets 400',
    async (query) => {
      const response = await call(`${gateway()}/oauth/token${query}`, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: encode(right),
      });
      expectProblem(response, 400, 'invalid_request');
    },
  );

  test('a token request with an access_token in the query gets 400', async () => {
    const response = await call(`${gateway()}/oauth/token?access_token=this-token-is-nobodys`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: encode(right),
    });
    expectProblem(response, 400, 'invalid_request');
  });

  test.each([
    ['an invalid percent-encoding', 'grant_type=password&username=%zz'],
    ['an incomplete percent-encoding', 'grant_type=password&username=%e'],
    ['invalid UTF-8 that is percent-encoded', 'grant_type=password&username=%ff%fe'],
    ['invalid UTF-8 that is not encoded', Buffer.from('grant_type=password&username=\xff\xfe', 'latin1')],
    ['an unpaired surrogate', 'grant_type=password&username=%ed%a0%80'],
  ])('a malformed token request with %s gets 400 invalid_request', async (_, form) => {
    const body = Buffer.concat([Buffer.from(`${encode(platform)}&`), Buffer.from(form as string)]);
    const response = await call(`${gateway()}/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body,
    });
    expectProblem(response, 400, 'invalid_request');
  });

  test.each(['utf-7', 'utf-16', 'nonsense', 'iso-8859-1'])(
    'a token request in the charset %s gets 415',
    async (charset) => {
      const type = `application/x-www-form-urlencoded; charset=${charset}`;
      expectProblem(await postForm(right, { headers: { 'content-type': type } }), 415, 'invalid_request');
    },
  );

  test('a token request with a body above the size limit gets 413', async () => {
    const response = await postForm(`${encode(right)}&x=${'y'.repeat(200_000)}`);
    expectProblem(response, 413, 'invalid_request');
  });

  test.each(['gzip', 'nonsense'])('a token request compressed with %s gets 415', async (encoding) => {
    const response = await postForm(right, { headers: { 'content-encoding': encoding } });
    expectProblem(response, 415, 'invalid_request');
  });
});

describe('the token endpoint', () => {
  // evidence: token-errors-tls
  test('the token endpoint returns the same errors over TLS', async () => {
    expectProblem(await postForm({ ...right, client_id: 'nobody' }, { base: secureGateway() }), 401, 'invalid_client');
  });

  test('the token endpoint does not exist on the aggregated listener, which returns 401 as for any unknown path', async () => {
    expect((await postForm(right, { base: aggregated() })).status).toBe(401);
  });

  test('an unknown path below /oauth gets 404', async () => {
    for (const path of ['/oauth/nothing', '/oauth/Token', '/oauth/'])
      expectProblem(await call(`${gateway()}${path}`, { method: 'POST' }), 404, 'invalid_request');
  });
});
