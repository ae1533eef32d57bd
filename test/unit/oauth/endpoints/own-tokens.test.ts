/** Tests revocation (RFC 7009), introspection (RFC 7662) and userinfo (OpenID Connect Core 5.3). */
import { describe, expect, test } from '@jest/globals';
import { unreachable } from '../../../../src/cluster/client/kube-error.ts';
import { allRecorded } from '../../../../src/http/records.ts';
import { sendRequest, type AppResponse } from '../../../fakes/request.ts';
import { issuer } from '../../../fakes/configuration.ts';
import { craftJWT, readJWT } from '../../../fakes/jwt.ts';
import { logOfLines } from '../../../fakes/log.ts';
import { asClient, createLab, login, refreshWith, type Fields, type Lab } from '../../../labs/oauth.ts';

const grantTypes = ['password', 'refresh_token'];
const clients = [
  { name: 'platform', secret: 'platform', grantTypes },
  { name: 'other', secret: 'other', grantTypes },
  { name: 'resource', secret: 'resource', grantTypes: [], introspection: true },
];
const by = (name: string): Fields => ({ client_id: name, client_secret: name });
const users = [
  { username: 'alice', groups: ['a'], displayName: 'Alice Ö.', email: 'alice@example.com' },
  { username: 'mallory' },
];

interface LoggedIn extends Lab {
  readonly access: string;
  readonly refresh: string;
  readonly identity: string;
}

async function logIn(fields: Fields = {}, options?: Parameters<typeof createLab>[1]): Promise<LoggedIn> {
  const made = await createLab({ clients, users }, options);
  const body = (await made.token({ ...login, scope: 'openid profile', ...fields })).json();
  const [access, refresh, identity] = ['access_token', 'refresh_token', 'id_token'].map((name) => String(body[name]));
  return { ...made, access: access ?? '', refresh: refresh ?? '', identity: identity ?? '' };
}

const userinfo = (lab: Lab, token: string): Promise<AppResponse> =>
  sendRequest(lab.app, '/oauth/userinfo', { headers: { authorization: `Bearer ${token}` } });

/** Reports whether the access token and the refresh token of a login are still accepted. */
async function accepted(lab: LoggedIn): Promise<readonly [boolean, boolean]> {
  const isKnown = (await userinfo(lab, lab.access)).status === 200;
  return [isKnown, (await lab.token(refreshWith(lab.refresh))).status === 200];
}

const revoke = (lab: Lab, token: string, fields: Fields = asClient): Promise<AppResponse> =>
  lab.post('/oauth/revoke', { token, ...fields });

const introspect = (lab: Lab, token: string, fields: Fields = asClient): Promise<AppResponse> =>
  lab.post('/oauth/introspect', { token, ...fields });

const inactive = { active: false };

describe('revocation', () => {
  // evidence: revocation-ends-session
  test.each(['access', 'refresh'] as const)('revocation of the %s token revokes the session', async (kind) => {
    const lab = await logIn();
    const response = await revoke(lab, lab[kind]);
    expect(response).toMatchObject({
      status: 200,
      text: '',
      headers: { 'cache-control': 'no-store', pragma: 'no-cache' },
    });
    expect(await accepted(lab)).toEqual([false, false]);
  });

  // evidence: revocation-hint
  test('revocation accepts any token_type_hint', async () => {
    for (const hint of ['access_token', 'refresh_token', 'nonsense']) {
      const lab = await logIn();
      expect((await revoke(lab, lab.refresh, { ...asClient, token_type_hint: hint })).status).toBe(200);
      expect(await accepted(lab)).toEqual([false, false]);
    }
  });

  test('revocation of a used refresh token revokes the session', async () => {
    const lab = await logIn();
    await lab.token(refreshWith(lab.refresh));
    await revoke(lab, lab.refresh);
    expect(await accepted(lab)).toEqual([false, false]);
  });

  test('revocation succeeds for a client that is allowed to introspect', async () => {
    const lab = await logIn();
    await revoke(lab, lab.access, by('resource'));
    expect(await accepted(lab)).toEqual([false, false]);
  });

  // evidence: revocation-unknown-token
  test.each<[string, (lab: LoggedIn) => string, Fields]>([
    ['an unknown token', () => 'x', asClient],
    ['an id_token', ({ identity }) => identity, asClient],
    ["another client's access token", ({ access }) => access, by('other')],
    ["another client's refresh token", ({ refresh }) => refresh, by('other')],
    ['a forged access token', ({ access }) => craftJWT(readJWT(access).header, readJWT(access).claims), asClient],
  ])(
    'revocation of %s revokes nothing and gets the same response as a successful revocation',
    async (_, token, client) => {
      const lab = await logIn();
      expect(await revoke(lab, token(lab), client)).toMatchObject({ status: 200, text: '' });
      expect(await accepted(lab)).toEqual([true, true]);
    },
  );

  test('a public client can revoke its own tokens without a secret', async () => {
    const lab = await logIn();
    const asCLI = { client_id: 'platform-cli' };
    const refused = await revoke(lab, lab.access, asCLI);
    expect({ status: refused.status, accepted: await accepted(lab) }).toEqual({ status: 200, accepted: [true, true] });
    const { username: userName = '', uid: userUID = '', credentialID = '' } = lab.directory.account('alice') ?? {};
    const { session, refreshToken } = await lab.sessions.create({
      userName,
      userUID,
      credentialID,
      clientID: 'platform-cli',
    });
    expect((await revoke(lab, refreshToken, asCLI)).status).toBe(200);
    expect(await lab.sessions.active(session.metadata.name)).toBeUndefined();
  });

  // evidence: revocation-twice
  test('revocation of a token that is already revoked succeeds', async () => {
    const lab = await logIn();
    for (let time = 0; time < 2; time += 1) expect((await revoke(lab, lab.refresh)).status).toBe(200);
  });

  // evidence: revocation-unavailable
  test('a revocation that cannot be stored gets 503, so that the client retries', async () => {
    const lab = await logIn();
    lab.client.before = ({ method }) => {
      if (method === 'PUT') throw unreachable(new Error('reset'));
    };
    const response = await revoke(lab, lab.access);
    expect(response).toMatchObject({ status: 503, headers: { 'retry-after': '1', 'cache-control': 'no-store' } });
    expect(response.json()['error']).toBe('temporarily_unavailable');
  });

  test('revocation does not log the token', async () => {
    const { log, lines } = logOfLines();
    const lab = await logIn({}, { log });
    await revoke(lab, lab.refresh);
    await revoke(lab, lab.access, by('other'));
    await allRecorded();
    const text = lines().join('\n');
    expect(text).toContain('session revoked');
    for (const secret of [lab.access, lab.refresh, 'correct horse']) expect(text).not.toContain(secret);
  });
});

describe('introspection', () => {
  // evidence: introspection-active
  test.each([asClient, by('resource')])(
    'introspection of an access token by a client with the parameters %j returns the properties of the token',
    async (client) => {
      const lab = await logIn();
      const { claims } = readJWT(lab.access);
      const response = await introspect(lab, lab.access, client);
      expect(response.headers).toMatchObject({ 'cache-control': 'no-store', 'content-type': 'application/json' });
      const { iat, exp, jti, sub } = claims;
      expect(response.json()).toEqual({
        active: true,
        token_type: 'Bearer',
        client_id: 'platform',
        scope: 'openid profile',
        iss: issuer,
        aud: issuer,
        iat,
        exp,
        jti,
        sub,
        username: 'alice',
        groups: ['a'],
      });
    },
  );

  test.each<[string, Fields, Record<string, string>]>([
    ['in the form', { client_id: 'platform-cli' }, {}],
    ['in the form with an empty secret', { client_id: 'platform-cli', client_secret: '' }, {}],
    ['in HTTP Basic', {}, { authorization: `Basic ${btoa('platform-cli:')}` }],
  ])('introspection is not available to a public client that is named %s', async (_, fields, headers) => {
    const lab = await logIn();
    const response = await lab.post('/oauth/introspect', { token: lab.access, ...fields }, { headers });
    expect({ status: response.status, error: response.json()['error'] }).toEqual({
      status: 401,
      error: 'invalid_client',
    });
  });

  test('introspection returns the current groups of the user instead of the groups at the login', async () => {
    const lab = await logIn();
    lab.configure({ clients, users: [{ username: 'alice', groups: ['b'] }] });
    expect((await introspect(lab, lab.access)).json()['groups']).toEqual(['b']);
  });

  test('introspection of a refresh token returns only that the token is active', async () => {
    const lab = await logIn();
    const body = (await introspect(lab, lab.refresh)).json();
    const iat = Math.floor(lab.clock.now() / 1_000);
    // 720 hours, the default of sessionMaxAge.
    expect(body).toMatchObject({ iat, exp: iat + 2_592_000 });
    expect(body).toMatchObject({ active: true, client_id: 'platform', username: 'alice', scope: 'openid profile' });
    expect(body).not.toHaveProperty('token_type');
    expect((await introspect(lab, lab.refresh, by('resource'))).json()).toEqual(inactive);
  });

  // evidence: introspection-hint
  test('introspection accepts any token_type_hint', async () => {
    const lab = await logIn();
    for (const token_type_hint of ['access_token', 'refresh_token', 'nonsense'])
      for (const token of [lab.access, lab.refresh]) {
        const response = await introspect(lab, token, { ...asClient, token_type_hint });
        expect(response.json()).toMatchObject({ active: true, username: 'alice' });
      }
  });

  test('introspection does not consume a refresh token', async () => {
    const lab = await logIn();
    await introspect(lab, lab.refresh);
    expect(await accepted(lab)).toEqual([true, true]);
  });

  const minute = 60_000;
  const endings: [string, (lab: LoggedIn) => unknown][] = [
    ['that were revoked', (lab) => lab.post('/oauth/revoke', { token: lab.refresh, ...asClient })],
    ['of a disabled user', (lab) => lab.configure({ clients, users: [{ username: 'alice', state: 'Disabled' }] })],
    ['of a removed user', (lab) => lab.configure({ clients, users: [{ username: 'mallory' }] })],
    ['of a removed client', (lab) => lab.configure({ clients: clients.slice(1), users })],
  ];
  // evidence: introspection-revoked
  test.each(endings)('introspection of tokens %s returns only that they are inactive', async (_, end) => {
    const lab = await logIn();
    await end(lab);
    for (const token of [lab.access, lab.refresh])
      expect((await introspect(lab, token, by('resource'))).json()).toEqual(inactive);
  });

  // evidence: introspection-expired
  test('introspection of an expired access token returns only that the token is inactive', async () => {
    const lab = await logIn();
    // The session is still active.
    await lab.clock.advance(121 * minute);
    expect((await introspect(lab, lab.refresh)).json()['active']).toBe(true);
    expect((await introspect(lab, lab.access)).json()).toEqual(inactive);
  });

  // evidence: introspection-inactive
  test.each<[string, (lab: LoggedIn) => string, Fields]>([
    ['an unknown token', () => 'x', by('resource')],
    ['an id_token', ({ identity }) => identity, by('resource')],
    ["another client's access token", ({ access }) => access, by('other')],
    ["another client's refresh token", ({ refresh }) => refresh, by('other')],
    [
      'an unsigned access token',
      ({ access }) => craftJWT({ alg: 'none', typ: 'at+jwt' }, readJWT(access).claims),
      asClient,
    ],
  ])('introspection of %s returns only that the token is inactive', async (_, token, client) => {
    const lab = await logIn();
    const response = await introspect(lab, token(lab), client);
    expect({ status: response.status, body: response.json() }).toEqual({ status: 200, body: inactive });
  });

  // evidence: introspection-client-auth
  test.each<[string, Fields, number, string]>([
    ['without a token', { token: undefined, ...asClient }, 400, 'invalid_request'],
    ['without a client', { client_secret: undefined }, 401, 'invalid_client'],
    ['with a wrong client secret', { ...asClient, client_secret: 'x' }, 401, 'invalid_client'],
  ])('introspection %s is rejected, and revocation is rejected in the same way', async (_, fields, status, error) => {
    const lab = await logIn();
    for (const path of ['/oauth/introspect', '/oauth/revoke']) {
      const response = await lab.post(path, { token: lab.access, ...fields });
      expect({ status: response.status, error: response.json()['error'] }).toEqual({ status, error });
    }
  });

  test.each(['/oauth/introspect', '/oauth/revoke'])(
    'the endpoint %s rejects repeated parameters and parameters in the URL',
    async (path) => {
      const lab = await logIn();
      const twice = `${new URLSearchParams({ token: lab.access, ...asClient }).toString()}&token=x`;
      for (const response of [await lab.post(path, {}, { body: twice }), await lab.post(`${path}?token=x`, asClient)])
        expect({ status: response.status, error: response.json()['error'] }).toEqual({
          status: 400,
          error: 'invalid_request',
        });
      expect(await accepted(lab)).toEqual([true, true]);
    },
  );
});

describe('userinfo', () => {
  test.each(['GET', 'POST'])('userinfo with the method %s returns the claims of the scope', async (method) => {
    const lab = await logIn({ scope: 'openid profile email groups' });
    const response = await sendRequest(lab.app, '/oauth/userinfo', {
      method,
      headers: { authorization: `Bearer ${lab.access}` },
    });
    expect(response.headers).toMatchObject({ 'cache-control': 'no-store', 'content-type': 'application/json' });
    expect(response.json()).toEqual({
      sub: readJWT(lab.identity).claims['sub'],
      preferred_username: 'alice',
      name: 'Alice Ö.',
      email: 'alice@example.com',
      email_verified: true,
      groups: ['a'],
    });
  });

  test('userinfo returns only the subject for the scope openid', async () => {
    const lab = await logIn({ scope: 'openid' });
    expect(Object.keys((await userinfo(lab, lab.access)).json())).toEqual(['sub']);
  });

  // evidence: userinfo-challenge
  test.each<[string, Record<string, string>, number, string | undefined]>([
    ['no credentials', {}, 401, undefined],
    ["a client's credentials", { authorization: 'Basic eDp5' }, 401, undefined],
    ['no token', { authorization: 'Bearer ' }, 401, undefined],
    ['a malformed token', { authorization: 'Bearer x y' }, 401, 'invalid_token'],
  ])('a userinfo request with %s gets a challenge', async (_, headers, status, error) => {
    const lab = await logIn();
    const response = await sendRequest(lab.app, '/oauth/userinfo', { headers });
    expect(response.status).toBe(status);
    const more = error === undefined ? '' : `, error="${error}"`;
    expect(response.headers['www-authenticate']).toBe(`Bearer realm="platform"${more}`);
    expect(response.headers['cache-control']).toBe('no-store');
  });

  test('the error for a userinfo request without a token explains how to send a token', async () => {
    const lab = await logIn();
    expect((await sendRequest(lab.app, '/oauth/userinfo')).json()['error_description']).toMatch(
      /'Authorization: Bearer <token>'$/,
    );
  });

  test.each([
    ['', 'the Authorization header has no scheme'],
    ['Basic eDp5', 'the scheme of the Authorization header is not supported'],
    ['Bearer', "the Authorization header has no token after 'Bearer'"],
    ['Bearer x y', 'the token in the Authorization header is malformed'],
  ])(
    'userinfo reports what is malformed in the Authorization header %j, without quoting it',
    async (authorization, problem) => {
      const lab = await logIn();
      const response = await sendRequest(lab.app, '/oauth/userinfo', { headers: { authorization } });
      expect(response.json()['error_description']).toMatch(
        new RegExp(`^${problem}.*: send 'Authorization: Bearer <token>'$`),
      );
      expect(response.text).not.toMatch(/eDp5|x y/);
    },
  );

  // evidence: userinfo-error-codes
  test.each([
    ['a refresh token', 'refresh'],
    ['an id_token', 'identity'],
  ] as const)('userinfo rejects %s', async (_, kind) => {
    const lab = await logIn();
    const response = await userinfo(lab, lab[kind]);
    expect(response.status).toBe(401);
    expect(response.headers['www-authenticate']).toMatch(/error="invalid_token"$/);
  });

  test('userinfo rejects an access token without a scope', async () => {
    const lab = await logIn({ scope: undefined });
    expect((await userinfo(lab, lab.access)).json()['error']).toBe('insufficient_scope');
  });

  // evidence: userinfo-scope
  test('userinfo rejects an access token without the scope openid', async () => {
    const lab = await logIn({ scope: 'profile' });
    const response = await userinfo(lab, lab.access);
    expect({ status: response.status, error: response.json()['error'] }).toEqual({
      status: 403,
      error: 'insufficient_scope',
    });
    expect(response.headers['www-authenticate']).toMatch(/error="insufficient_scope", scope="openid"$/);
  });

  test('a userinfo request with GET and without a body can have any Content-Type', async () => {
    const lab = await logIn({ scope: 'openid' });
    const headers = { authorization: `Bearer ${lab.access}`, 'content-type': 'application/json' };
    expect((await sendRequest(lab.app, '/oauth/userinfo', { headers })).status).toBe(200);
  });

  // evidence: userinfo-header-only
  test('a userinfo request with a token in the form or in the URL gets 400', async () => {
    const lab = await logIn();
    const inForm = await lab.post('/oauth/userinfo', { access_token: lab.access });
    const inURL = await sendRequest(lab.app, `/oauth/userinfo?access_token=${lab.access}`);
    for (const response of [inForm, inURL])
      expect({ status: response.status, error: response.json()['error'] }).toEqual({
        status: 400,
        error: 'invalid_request',
      });
  });
});
