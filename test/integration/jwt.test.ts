/** Access tokens and id_tokens: RFC 9068 and OpenID Connect Core. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createHmac } from 'node:crypto';
import { configure } from '../labs/integration/configure.ts';
import { call, gateway, nodesPath } from '../labs/integration/http.ts';
import { assemble, decodeToken, forge, publicKey, signingKey, thumbprint, verifies } from '../labs/integration/jwt.ts';
import { adminToken, login, passwordForm, tokens } from '../labs/integration/login.ts';

const issuer = 'https://platform-apiserver.platform-system.svc';
const uuid = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/) as unknown;

const statusWith = async (token: string, replica: 0 | 1 = 0): Promise<number> =>
  (await call(`${gateway(replica)}${nodesPath}?limit=0`, { token })).status;

describe('an access token', () => {
  test('an access token is a JWT of type at+jwt signed with ES256, and verifies with the public key of the Secret', async () => {
    const { access_token: token } = await login('alice');
    const key = await publicKey('ES256');
    expect(decodeToken(token).header).toEqual({ alg: 'ES256', typ: 'at+jwt', kid: thumbprint(key) });
    expect(verifies(token, key)).toBe(true);
  });

  test('an access token has the claims of RFC 9068 and the additional claims of this server', async () => {
    const before = Math.floor(Date.now() / 1_000);
    const { access_token: token } = await tokens({ ...passwordForm('alice'), scope: 'openid' });
    const { claims } = decodeToken(token);
    expect(claims).toEqual({
      iss: issuer,
      aud: issuer,
      sub: uuid,
      exp: expect.any(Number),
      iat: expect.any(Number),
      jti: expect.any(String),
      sid: expect.any(String),
      client_id: 'platform',
      scope: 'openid',
      username: 'alice',
      groups: ['keepers', 'staff'],
    });
    expect(Number(claims['exp']) - Number(claims['iat'])).toBe(7200);
    expect(claims['iat']).toBeGreaterThanOrEqual(before - 1);
  });

  test('the access tokens of two logins at different replicas name the same user and different sessions', async () => {
    const [first, second] = await Promise.all([login('alice'), login('alice', gateway(1))]);
    const [a, b] = [decodeToken(first.access_token).claims, decodeToken(second.access_token).claims];
    expect(a['sub']).toBe(b['sub']);
    expect(a['sid']).not.toBe(b['sid']);
    expect(a['jti']).not.toBe(b['jti']);
    expect(decodeToken((await login('bob')).access_token).claims['sub']).not.toBe(a['sub']);
  });
});

describe('an id_token', () => {
  test('an id_token is a JWT signed with RS256 for the client, with the claims of its scope', async () => {
    const { id_token: token = '' } = await tokens({ ...passwordForm('alice'), scope: 'openid profile email groups' });
    const key = await publicKey('RS256');
    const { header, claims } = decodeToken(token);
    expect(header).toEqual({ alg: 'RS256', typ: 'JWT', kid: thumbprint(key) });
    expect(verifies(token, key)).toBe(true);
    expect(claims).toMatchObject({
      iss: issuer,
      aud: 'platform',
      sub: uuid,
      auth_time: expect.any(Number) as unknown,
      preferred_username: 'alice',
      name: 'Alice Ö. Liddell',
      email: 'alice@example.com',
      email_verified: true,
      groups: ['keepers', 'staff'],
    });
  });

  test('an id_token has no claims beyond its scope', async () => {
    const { id_token: token = '' } = await tokens({ ...passwordForm('alice'), scope: 'openid' });
    for (const claim of ['preferred_username', 'name', 'email', 'email_verified', 'groups'])
      expect(decodeToken(token).claims).not.toHaveProperty(claim);
  });
});

describe('a bearer token', () => {
  test('an access token is accepted as a bearer token on each replica', async () => {
    const token = await adminToken();
    expect(await statusWith(token)).toBe(200);
    expect(await statusWith(token, 1)).toBe(200);
  });

  // evidence: other-tokens-as-bearer-replicas
  test('a bearer token that is forged, or is not an access token, is rejected', async () => {
    const {
      access_token: good,
      refresh_token: refresh,
      id_token: identity = '',
    } = await tokens({
      ...passwordForm('admin'),
      scope: 'openid',
    });
    const { header, claims } = decodeToken(good);
    const key = await signingKey('ES256');
    const [head, body, signature = ''] = good.split('.');
    const publicPem = (await publicKey('ES256')).export({ type: 'spki', format: 'pem' }).toString();
    const hs256 = assemble({ ...header, alg: 'HS256' }, claims).slice(0, -1);
    const forged = {
      refresh,
      identity,
      'alg none': assemble({ ...header, alg: 'none' }, claims),
      'alg none with a signature': assemble({ ...header, alg: 'none' }, claims, signature),
      'no signature': `${head}.${body}.`,
      'a truncated signature': good.slice(0, -2),
      'another signature': `${head}.${body}.${'A'.repeat(signature.length)}`,
      'HS256 with the public key': `${hs256}.${createHmac('sha256', publicPem).update(hs256).digest('base64url')}`,
      'more rights': `${head}.${assemble({}, { ...claims, groups: ['system:masters'] }).split('.')[1]}.${signature}`,
      'typ JWT': forge({ ...header, typ: 'JWT' }, claims, key),
      'no typ': forge({ alg: 'ES256', kid: header['kid'] }, claims, key),
      'no kid': forge({ alg: 'ES256', typ: 'at+jwt' }, claims, key),
      'an unknown kid': forge({ ...header, kid: 'unknown' }, claims, key),
      'a kid that is not a string': forge({ ...header, kid: 7 }, claims, key),
      'another issuer': forge(header, { ...claims, iss: 'https://elsewhere.example.com' }, key),
      'another audience': forge(header, { ...claims, aud: 'kubernetes' }, key),
      'no exp': forge(header, { ...claims, exp: undefined }, key),
      'an exp in the past': forge(header, { ...claims, exp: Math.floor(Date.now() / 1_000) - 60 }, key),
      'an nbf in the future': forge(header, { ...claims, nbf: Math.floor(Date.now() / 1_000) + 600 }, key),
      'no sid': forge(header, { ...claims, sid: undefined }, key),
      'an unknown sid': forge(header, { ...claims, sid: '0'.repeat(32) }, key),
      'a sid that is a path': forge(header, { ...claims, sid: '../../../api/v1/secrets' }, key),
      'another sub': forge(header, { ...claims, sub: '00000000-0000-5000-8000-000000000000' }, key),
      'another user': forge(header, { ...claims, username: 'alice' }, key),
      'another client': forge(header, { ...claims, client_id: 'hashed' }, key),
      'claims that are not an object': forge(header, [1], key),
    };
    const responses: Record<string, number> = {};
    for (const [name, token] of Object.entries(forged)) responses[name] = await statusWith(token);
    expect(responses).toEqual(Object.fromEntries(Object.keys(forged).map((name) => [name, 401])));
    expect(await statusWith(good)).toBe(200);
  });

  // evidence: token-groups-replicas
  test('a caller has the groups of the configuration, not the groups in the bearer token', async () => {
    const { access_token: token } = await login('alice');
    const { header, claims } = decodeToken(token);
    const masters = forge(header, { ...claims, groups: ['system:masters'] }, await signingKey('ES256'));
    expect(await statusWith(masters)).toBe(403);
  });
});

describe('the token settings', () => {
  let restore: () => Promise<void>;
  beforeAll(async () => {
    restore = await configure(({ authentication }) => {
      authentication['signingAlgorithm'] = 'RS256';
      authentication['accessTokenMaxAge'] = '30m';
      authentication['sessionMaxAge'] = '20m';
    });
  });
  afterAll(() => restore());

  test('the token settings can change the signing algorithm of new tokens, and old tokens stay valid', async () => {
    const { access_token: token } = await login('admin');
    expect(decodeToken(token).header).toMatchObject({ alg: 'RS256', typ: 'at+jwt' });
    expect(verifies(token, await publicKey('RS256'))).toBe(true);
    expect(await statusWith(token)).toBe(200);
    expect(await statusWith(await adminToken())).toBe(200);
  });

  test('the token settings limit the lifetime of a token to the lifetime of its session', async () => {
    const { access_token: token, expires_in: life } = await login('alice');
    const { exp, iat } = decodeToken(token).claims;
    expect(Number(exp) - Number(iat)).toBe(life);
    expect(life).toBeGreaterThan(1_190);
    expect(life).toBeLessThanOrEqual(1_200);
  });
});
