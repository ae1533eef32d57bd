/** Errors of the token endpoint (docs/tokens.md, "When it fails"). */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { aggregated, call, gateway, secureGateway, type Answer } from '../labs/integration/http.ts';
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

/** RFC 6749 section 5.2, and never a cache. */
function expectProblem(answer: Answer, status: number, error: string): OAuthProblem {
  expect({ status: answer.status, ...(answer.json as OAuthProblem) }).toMatchObject({ status, error });
  expect(answer.headers).toMatchObject({
    'content-type': 'application/json',
    'cache-control': 'no-store',
    pragma: 'no-cache',
    'audit-id': expect.any(String) as unknown,
  });
  const problem = answer.json as OAuthProblem;
  expect(Object.keys(problem).toSorted()).toEqual(['error', 'error_description']);
  // RFC 6749 section 5.2: no quotation mark and no backslash is allowed there, nor anything outside ASCII.
  expect(problem.error_description).toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/);
  return problem;
}

const right = passwordForm('alice');
const { client_id: _id, client_secret: _secret, ...bare } = right;

const without = (name: string): Record<string, string> =>
  Object.fromEntries(Object.entries(right).filter(([key]) => key !== name));

describe('a client that does not authenticate', () => {
  const challenge = { 'www-authenticate': expect.stringMatching(/^Basic realm="/) as unknown };

  test.each([
    ['no credentials at all', bare, {}],
    ['no secret', without('client_secret'), {}],
    ['no client_id', without('client_id'), {}],
    ['an empty secret', { ...right, client_secret: '' }, {}],
    ['an unknown client', { ...right, client_id: 'nobody' }, {}],
    ['a wrong secret', { ...right, client_secret: 'Platform' }, {}],
    ['an unknown client by Basic', bare, basic('nobody', 'platform')],
    ['a wrong secret by Basic', bare, basic('platform', 'wrong')],
    ['an empty secret by Basic', bare, basic('platform', '')],
    ['Basic without a colon', bare, { authorization: `Basic ${Buffer.from('platform').toString('base64')}` }],
    ['Basic that is no base64', bare, { authorization: 'Basic !!!!' }],
    ['Basic without anything', bare, { authorization: 'Basic ' }],
    ['a bearer token', bare, { authorization: 'Bearer abcdefgh' }],
    ['a wrong secret of a client with a hash', { ...bare, client_id: 'hashed', client_secret: 'x' }, {}],
    ['a wrong secret of a client with a Secret', { ...bare, client_id: 'referred', client_secret: 'x' }, {}],
    ['a public client that does not exist here', { ...bare, client_id: 'platform-tv' }, {}],
    ['a public client with a secret', { ...bare, client_id: 'platform-cli', client_secret: 'x' }, {}],
  ])('%s: 401 invalid_client', async (_, form, headers) => {
    const answer = await postForm(form, { headers });
    expectProblem(answer, 401, 'invalid_client');
    expect(answer.headers).toMatchObject(challenge);
  });

  test('an unknown client and a wrong secret cannot be told apart', async () => {
    const unknown = await postForm({ ...right, client_id: 'nobody' });
    const wrong = await postForm({ ...right, client_secret: 'wrong' });
    expect(unknown.json).toEqual(wrong.json);
  });

  test('twice, by form and Basic: 400 invalid_request', async () => {
    const headers = basic('platform', 'platform');
    expectProblem(await postForm(right, { headers }), 400, 'invalid_request');
    expectProblem(await postForm({ ...bare, client_id: 'hashed' }, { headers }), 400, 'invalid_request');
  });
});

describe('parameters', () => {
  test.each(['grant_type', 'username', 'password'])('without %s: 400 naming it', async (name) => {
    for (const form of [without(name), { ...right, [name]: '' }])
      expect(expectProblem(await postForm(form), 400, 'invalid_request').error_description).toContain(name);
  });

  test('without refresh_token: 400 naming it', async () => {
    const problem = expectProblem(await postForm({ grant_type: 'refresh_token', ...platform }), 400, 'invalid_request');
    expect(problem.error_description).toContain('refresh_token');
  });

  test.each(['grant_type', 'username', 'password', 'client_id', 'client_secret', 'scope', 'nonsense'])(
    '%s twice: 400 naming it',
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

  test('refresh_token twice: 400 naming it', async () => {
    const form = [...Object.entries(refreshForm('a')), ['refresh_token', 'b']] as [string, string][];
    expect(expectProblem(await postForm(form), 400, 'invalid_request').error_description).toContain('refresh_token');
  });

  test.each([
    'authorization_code',
    'client_credentials',
    'urn:ietf:params:oauth:grant-type:device_code',
    'urn:ietf:params:oauth:grant-type:token-exchange',
  ])('grant_type %s, which the client "platform" may not use: 400 unauthorized_client', async (grantType) => {
    expectProblem(await postForm({ ...right, grant_type: grantType }), 400, 'unauthorized_client');
  });

  test.each(['Password', 'password ', 'nonsense', 'constructor', '__proto__'])(
    'grant_type %s: 400 unsupported_grant_type',
    async (grantType) => {
      expectProblem(await postForm({ ...right, grant_type: grantType }), 400, 'unsupported_grant_type');
    },
  );

  test('a grant that the client may not use: 400 unauthorized_client', async () => {
    const form = { ...bare, client_id: 'refresh-only', client_secret: clientSecrets['refresh-only'] };
    expectProblem(await postForm(form), 400, 'unauthorized_client');
  });

  test.each([' openid', 'openid ', 'openid  profile', 'open"id', 'open\\id', 'öpenid', '\n', `x${'y'.repeat(1_000)}`])(
    'scope %j: 400 invalid_scope',
    async (scope) => {
      expectProblem(await postForm({ ...right, scope }), 400, 'invalid_scope');
    },
  );
});

describe('a person who may not log in', () => {
  test.each([
    ['unknown', 'nobody', 'some password'],
    ['with a wrong password', 'alice', 'Alice keeps 7431 bees'],
    ['disabled', 'dave', undefined],
    ['named in capitals', 'ALICE', 'alice keeps 7431 bees'],
    ['named with white space', 'alice ', 'alice keeps 7431 bees'],
    ['named like a property', '__proto__', 'some password'],
    ['with a name of 10,000 letters', 'a'.repeat(10_000), 'some password'],
    ['with a password of 10,000 letters', 'bob', 'p'.repeat(10_000)],
    ['with NUL in the password', 'bob', 'alice keeps 7431 bees\0'],
  ])('%s: 400 invalid_grant, always in the same words', async (_, username, password) => {
    const problem = expectProblem(await postForm(passwordForm(username, password)), 400, 'invalid_grant');
    // A new name each time: failures are limited for every name.
    const stranger = passwordForm(`stranger-${randomUUID()}`, 'wrong');
    expect(problem).toEqual(expectProblem(await postForm(stranger), 400, 'invalid_grant'));
    // A failure counts, and a success forgives.
    if (username === 'alice' || username === 'bob') await login(username);
  });
});

describe('a refresh token that is none', () => {
  test.each([
    'x',
    'a.b.c',
    `${'0'.repeat(32)}.${'A'.repeat(43)}`,
    `${'0'.repeat(32)}.${'A'.repeat(43)}.${'A'.repeat(22)}`,
  ])('%s: 400 invalid_grant', async (token) => {
    expectProblem(await postForm(refreshForm(token)), 400, 'invalid_grant');
  });

  test('an access token: 400 invalid_grant', async () => {
    const { access_token: token } = await login('alice');
    expectProblem(await postForm(refreshForm(token)), 400, 'invalid_grant');
  });

  test("another client's: 400 invalid_grant, and it is not spent", async () => {
    const first = await login('alice');
    const form = { ...refreshForm(first.refresh_token), client_id: 'hashed', client_secret: clientSecrets.hashed };
    expectProblem(await postForm(form), 400, 'invalid_grant');
    expect((await postForm(refreshForm(first.refresh_token))).status).toBe(200);
  });

  test('asked for a wider scope: 400 invalid_scope, and it is not spent', async () => {
    const first = (await postForm({ ...right, scope: 'profile' })).json as Tokens;
    const form = { ...refreshForm(first.refresh_token), scope: 'profile openid' };
    expectProblem(await postForm(form), 400, 'invalid_scope');
    expect((await postForm(refreshForm(first.refresh_token))).status).toBe(200);
  });
});

describe('a request that is no form', () => {
  test.each([
    ['JSON', 'application/json', JSON.stringify(right)],
    ['multipart', 'multipart/form-data; boundary=x', '--x--'],
    ['plain text', 'text/plain', encode(right)],
    ['a media type that begins alike', 'application/x-www-form-urlencodedx', encode(right)],
    ['a media type that is none', ';', encode(right)],
  ])('%s: 415', async (_, type, body) => {
    expectProblem(await postForm(body, { headers: { 'content-type': type } }), 415, 'invalid_request');
  });

  test('no media type, no body: 415', async () => {
    expectProblem(await call(`${gateway()}/oauth/token`, { method: 'POST' }), 415, 'invalid_request');
    expectProblem(
      await call(`${gateway()}/oauth/token`, { method: 'POST', body: encode(right) }),
      415,
      'invalid_request',
    );
  });

  test.each(['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('%s: 405 and what is allowed', async (method) => {
    const answer = await call(`${gateway()}/oauth/token`, {
      method,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: encode(right),
    });
    expectProblem(answer, 405, 'invalid_request');
    expect(answer.headers.allow).toBe('POST');
  });

  test('HEAD: 405 and no body', async () => {
    const answer = await call(`${gateway()}/oauth/token`, { method: 'HEAD' });
    expect(answer).toMatchObject({ status: 405, body: Buffer.alloc(0), headers: { allow: 'POST' } });
  });

  test.each(['?grant_type=password', '?x', '?client_id=platform&client_secret=platform'])('%s: 400', async (query) => {
    const answer = await call(`${gateway()}/oauth/token${query}`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: encode(right),
    });
    expectProblem(answer, 400, 'invalid_request');
  });

  test('an access_token in the query: 400', async () => {
    const answer = await call(`${gateway()}/oauth/token?access_token=this-token-is-nobodys`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: encode(right),
    });
    expectProblem(answer, 400, 'invalid_request');
  });

  test.each([
    ['a bad percent-encoding', 'grant_type=password&username=%zz'],
    ['half a percent-encoding', 'grant_type=password&username=%e'],
    ['bad UTF-8, encoded', 'grant_type=password&username=%ff%fe'],
    ['bad UTF-8, bare', Buffer.from('grant_type=password&username=\xff\xfe', 'latin1')],
    ['half a surrogate', 'grant_type=password&username=%ed%a0%80'],
  ])('%s: 400 invalid_request', async (_, form) => {
    const body = Buffer.concat([Buffer.from(`${encode(platform)}&`), Buffer.from(form as string)]);
    const answer = await call(`${gateway()}/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body,
    });
    expectProblem(answer, 400, 'invalid_request');
  });

  test.each(['utf-7', 'utf-16', 'nonsense', 'iso-8859-1'])('in %s: 415', async (charset) => {
    const type = `application/x-www-form-urlencoded; charset=${charset}`;
    expectProblem(await postForm(right, { headers: { 'content-type': type } }), 415, 'invalid_request');
  });

  test('longer than any form: 413', async () => {
    const answer = await postForm(`${encode(right)}&x=${'y'.repeat(200_000)}`);
    expectProblem(answer, 413, 'invalid_request');
  });

  test.each(['gzip', 'nonsense'])('said to be compressed by %s: 415', async (encoding) => {
    const answer = await postForm(right, { headers: { 'content-encoding': encoding } });
    expectProblem(answer, 415, 'invalid_request');
  });
});

describe('elsewhere', () => {
  // evidence: token-errors-tls
  test('the same over TLS', async () => {
    expectProblem(await postForm({ ...right, client_id: 'nobody' }, { base: secureGateway() }), 401, 'invalid_client');
  });

  test('no token endpoint where only kube-apiserver calls: as on each path without a route, 401', async () => {
    expect((await postForm(right, { base: aggregated() })).status).toBe(401);
  });

  test('no other endpoint yet: 404', async () => {
    for (const path of ['/oauth/nothing', '/oauth/Token', '/oauth/'])
      expectProblem(await call(`${gateway()}${path}`, { method: 'POST' }), 404, 'invalid_request');
  });
});
