/** Requirements of RFC 6749, 6750 and 9068 for requests and responses, tested from outside. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readJWT } from '../fakes/jwt.ts';
import { asClient, issuer, login, nodes, startLab, type Lab } from '../labs/conformance/lab.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await startLab();
});
afterAll(() => lab.stop());

const kapis = nodes.replace('/apis', '/kapis');

describe('RFC 6749', () => {
  // evidence: token-response-plain-http
  test('RFC 6749 section 5.1: a login returns the fields and headers of a token response', async () => {
    const response = await lab.token({ ...login, scope: 'openid' });
    expect(response).toMatchObject({
      status: 200,
      headers: {
        'content-type': expect.stringMatching(/^application\/json/),
        'cache-control': 'no-store',
        pragma: 'no-cache',
      },
    });
    expect(response.json()).toEqual({
      access_token: expect.any(String),
      token_type: expect.stringMatching(/^bearer$/i),
      expires_in: expect.any(Number),
      refresh_token: expect.any(String),
      scope: 'openid',
      id_token: expect.any(String),
    });
  });

  test.each<[string, Record<string, string>, number, string]>([
    ['3.2', { ...login, grant_type: '' }, 400, 'invalid_request'],
    ['4.3.2', { ...login, username: '' }, 400, 'invalid_request'],
    ['4.3.2', { ...login, password: 'wrong' }, 400, 'invalid_grant'],
    ['5.2', { ...login, client_secret: 'wrong' }, 401, 'invalid_client'],
    ['5.2', { ...login, grant_type: 'magic' }, 400, 'unsupported_grant_type'],
    ['5.2', { ...login, scope: '"' }, 400, 'invalid_scope'],
    ['6', { grant_type: 'refresh_token', refresh_token: 'x', ...asClient }, 400, 'invalid_grant'],
  ])('RFC 6749 section %s: the request %j gets %d %s', async (_, fields, status, error) => {
    const response = await lab.token(fields);
    expect(response.status).toBe(status);
    expect(response.json()).toEqual({
      error,
      error_description: expect.stringMatching(/^[\x20\x21\x23-\x5b\x5d-\x7e]+$/),
    });
    expect(response.headers).toMatchObject({ 'cache-control': 'no-store', pragma: 'no-cache' });
    expect(response.headers['www-authenticate']?.startsWith('Basic ') ?? false).toBe(status === 401);
  });

  test('RFC 6749 section 6: a refresh token is exchanged for new tokens', async () => {
    const first = (await lab.token(login)).json();
    const fields = { grant_type: 'refresh_token', refresh_token: String(first['refresh_token']), ...asClient };
    const second = await lab.token(fields);
    expect(second.status).toBe(200);
    expect(second.json()['refresh_token']).not.toBe(first['refresh_token']);
  });
});

describe('RFC 6750', () => {
  test.each(['Bearer  ', 'bearer     ', 'BEARER '])(
    'RFC 6750 section 2.1 and RFC 9110 section 11.4: any number of spaces may follow the scheme: %j',
    async (scheme) => {
      const token = String((await lab.token({ ...login, scope: 'openid' })).json()['access_token']);
      for (const path of [kapis, '/oauth/userinfo'])
        expect(await lab.gateway(path, { headers: { authorization: `${scheme}${token}` } })).toMatchObject({
          status: 200,
        });
    },
  );

  test('RFC 6750 section 2.1: a token is accepted in the Authorization header', async () => {
    const token = String((await lab.token(login)).json()['access_token']);
    const response = await lab.gateway(kapis, { headers: { authorization: `Bearer ${token}` } });
    expect(response.status).toBe(200);
    expect(response.json()).toMatchObject({ kind: 'NodeList', totalItems: 3 });
  });

  // evidence: bearer-challenge
  test.each([
    [{}, 'Bearer realm="platform"'],
    [{ authorization: 'Basic eDp5' }, 'Bearer realm="platform"'],
    [{ authorization: 'Bearer x' }, 'Bearer realm="platform", error="invalid_token"'],
  ])('RFC 6750 section 3: a request with the headers %j gets a challenge', async (headers, challenge) => {
    const response = await lab.gateway(kapis, { headers });
    expect(response).toMatchObject({ status: 401, headers: { 'www-authenticate': challenge } });
  });

  test('RFC 6750 section 2.3: a token in the query is rejected', async () => {
    const token = String((await lab.token(login)).json()['access_token']);
    expect((await lab.gateway(`${kapis}?access_token=${token}`)).status).toBe(400);
  });
});

// evidence: access-token-claims
test('RFC 9068 section 2: an access token has the required header and claims', async () => {
  const before = Math.floor(Date.now() / 1_000);
  const body = (await lab.token({ ...login, scope: 'openid' })).json();
  const { header, claims } = readJWT(String(body['access_token']));
  expect(header).toMatchObject({ typ: 'at+jwt', alg: expect.stringMatching(/^(ES|RS)256$/), kid: expect.any(String) });
  for (const name of ['iss', 'sub', 'aud', 'client_id', 'jti', 'scope']) expect(claims).toHaveProperty(name);
  expect(claims).toMatchObject({ iss: issuer, aud: issuer, client_id: 'platform', scope: 'openid' });
  expect(Number(claims['iat'])).toBeGreaterThanOrEqual(before);
  expect(Number(claims['exp']) - Number(claims['iat'])).toBe(body['expires_in']);
});
