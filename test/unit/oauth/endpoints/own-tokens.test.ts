/** Revocation (RFC 7009), introspection (RFC 7662) and userinfo (OpenID Connect Core 5.3). */
import { describe, expect, test } from '@jest/globals';
import { unreachable } from '../../../../src/cluster/client/kube-error.ts';
import { ask, type Answer } from '../../../fakes/ask.ts';
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

const userinfo = (lab: Lab, token: string): Promise<Answer> =>
  ask(lab.app, '/oauth/userinfo', { headers: { authorization: `Bearer ${token}` } });

/** Whether a login still stands: its access token, and its refresh token, are taken. */
async function stands(lab: LoggedIn): Promise<readonly [boolean, boolean]> {
  const isKnown = (await userinfo(lab, lab.access)).status === 200;
  return [isKnown, (await lab.token(refreshWith(lab.refresh))).status === 200];
}

const revoke = (lab: Lab, token: string, fields: Fields = asClient): Promise<Answer> =>
  lab.post('/oauth/revoke', { token, ...fields });

const introspect = (lab: Lab, token: string, fields: Fields = asClient): Promise<Answer> =>
  lab.post('/oauth/introspect', { token, ...fields });

const inactive = { active: false };

describe('revocation', () => {
  // evidence: revocation-ends-session
  test.each(['access', 'refresh'] as const)('of the %s token ends the session', async (kind) => {
    const lab = await logIn();
    const answer = await revoke(lab, lab[kind]);
    expect(answer).toMatchObject({
      status: 200,
      text: '',
      headers: { 'cache-control': 'no-store', pragma: 'no-cache' },
    });
    expect(await stands(lab)).toEqual([false, false]);
  });

  // evidence: revocation-hint
  test('takes a hint, whatever it says', async () => {
    for (const hint of ['access_token', 'refresh_token', 'nonsense']) {
      const lab = await logIn();
      expect((await revoke(lab, lab.refresh, { ...asClient, token_type_hint: hint })).status).toBe(200);
      expect(await stands(lab)).toEqual([false, false]);
    }
  });

  test('of a refresh token that was used already ends the session too', async () => {
    const lab = await logIn();
    await lab.token(refreshWith(lab.refresh));
    await revoke(lab, lab.refresh);
    expect(await stands(lab)).toEqual([false, false]);
  });

  test('counts by a client that may introspect', async () => {
    const lab = await logIn();
    await revoke(lab, lab.access, by('resource'));
    expect(await stands(lab)).toEqual([false, false]);
  });

  // evidence: revocation-unknown-token
  test.each<[string, (lab: LoggedIn) => string, Fields]>([
    ['unknown', () => 'x', asClient],
    ['an id_token', ({ identity }) => identity, asClient],
    ["another client's access", ({ access }) => access, by('other')],
    ["another client's refresh", ({ refresh }) => refresh, by('other')],
    ['a forged', ({ access }) => craftJWT(readJWT(access).header, readJWT(access).claims), asClient],
  ])('of %s token changes nothing, and is the same answer', async (_, token, client) => {
    const lab = await logIn();
    expect(await revoke(lab, token(lab), client)).toMatchObject({ status: 200, text: '' });
    expect(await stands(lab)).toEqual([true, true]);
  });

  test('needs no secret of a public client, for its own tokens', async () => {
    const lab = await logIn();
    const asCLI = { client_id: 'platform-cli' };
    const refused = await revoke(lab, lab.access, asCLI);
    expect({ status: refused.status, stands: await stands(lab) }).toEqual({ status: 200, stands: [true, true] });
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
  test('twice is as well as once', async () => {
    const lab = await logIn();
    for (let time = 0; time < 2; time += 1) expect((await revoke(lab, lab.refresh)).status).toBe(200);
  });

  // evidence: revocation-unavailable
  test('that cannot be written is 503, so that the client tries again', async () => {
    const lab = await logIn();
    lab.client.before = ({ method }) => {
      if (method === 'PUT') throw unreachable(new Error('reset'));
    };
    const answer = await revoke(lab, lab.access);
    expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '1', 'cache-control': 'no-store' } });
    expect(answer.json()['error']).toBe('temporarily_unavailable');
  });

  test('writes no token into the log', async () => {
    const { log, lines } = logOfLines();
    const lab = await logIn({}, { log });
    await revoke(lab, lab.refresh);
    await revoke(lab, lab.access, by('other'));
    const text = lines().join('\n');
    expect(text).toContain('session revoked');
    for (const secret of [lab.access, lab.refresh, 'correct horse']) expect(text).not.toContain(secret);
  });
});

describe('introspection', () => {
  // evidence: introspection-active
  test.each([asClient, by('resource')])('of an access token by %j says what it is good for', async (client) => {
    const lab = await logIn();
    const { claims } = readJWT(lab.access);
    const answer = await introspect(lab, lab.access, client);
    expect(answer.headers).toMatchObject({ 'cache-control': 'no-store', 'content-type': 'application/json' });
    const { iat, exp, jti, sub } = claims;
    expect(answer.json()).toEqual({
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
  });

  test.each<[string, Fields, Record<string, string>]>([
    ['in the form', { client_id: 'platform-cli' }, {}],
    ['in the form with an empty secret', { client_id: 'platform-cli', client_secret: '' }, {}],
    ['by HTTP Basic', {}, { authorization: `Basic ${btoa('platform-cli:')}` }],
  ])('is not for a client without a secret, named %s', async (_, fields, headers) => {
    const lab = await logIn();
    const answer = await lab.post('/oauth/introspect', { token: lab.access, ...fields }, { headers });
    expect({ status: answer.status, error: answer.json()['error'] }).toEqual({ status: 401, error: 'invalid_client' });
  });

  test('tells the groups of now, not those of the login', async () => {
    const lab = await logIn();
    lab.configure({ clients, users: [{ username: 'alice', groups: ['b'] }] });
    expect((await introspect(lab, lab.access)).json()['groups']).toEqual(['b']);
  });

  test('of a refresh token says that it is good, and nothing by which it could pass for a bearer', async () => {
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
  test('takes a hint, whatever it says', async () => {
    const lab = await logIn();
    for (const token_type_hint of ['access_token', 'refresh_token', 'nonsense'])
      for (const token of [lab.access, lab.refresh]) {
        const answer = await introspect(lab, token, { ...asClient, token_type_hint });
        expect(answer.json()).toMatchObject({ active: true, username: 'alice' });
      }
  });

  test('does not use a refresh token up', async () => {
    const lab = await logIn();
    await introspect(lab, lab.refresh);
    expect(await stands(lab)).toEqual([true, true]);
  });

  const minute = 60_000;
  const endings: [string, (lab: LoggedIn) => unknown][] = [
    ['revoked', (lab) => lab.post('/oauth/revoke', { token: lab.refresh, ...asClient })],
    ['of a disabled user', (lab) => lab.configure({ clients, users: [{ username: 'alice', state: 'Disabled' }] })],
    ['of a removed user', (lab) => lab.configure({ clients, users: [{ username: 'mallory' }] })],
    ['of a removed client', (lab) => lab.configure({ clients: clients.slice(1), users })],
  ];
  // evidence: introspection-revoked
  test.each(endings)('of tokens %s is no more than inactive', async (_, end) => {
    const lab = await logIn();
    await end(lab);
    for (const token of [lab.access, lab.refresh])
      expect((await introspect(lab, token, by('resource'))).json()).toEqual(inactive);
  });

  // evidence: introspection-expired
  test('of an expired access token is no more than inactive', async () => {
    const lab = await logIn();
    // The session itself goes on.
    await lab.clock.advance(121 * minute);
    expect((await introspect(lab, lab.refresh)).json()['active']).toBe(true);
    expect((await introspect(lab, lab.access)).json()).toEqual(inactive);
  });

  // evidence: introspection-inactive
  test.each<[string, (lab: LoggedIn) => string, Fields]>([
    ['unknown', () => 'x', by('resource')],
    ['an id_token', ({ identity }) => identity, by('resource')],
    ["another client's access", ({ access }) => access, by('other')],
    ["another client's refresh", ({ refresh }) => refresh, by('other')],
    ['an unsigned', ({ access }) => craftJWT({ alg: 'none', typ: 'at+jwt' }, readJWT(access).claims), asClient],
  ])('of %s token is no more than inactive', async (_, token, client) => {
    const lab = await logIn();
    const answer = await introspect(lab, token(lab), client);
    expect({ status: answer.status, body: answer.json() }).toEqual({ status: 200, body: inactive });
  });

  // evidence: introspection-client-auth
  test.each<[string, Fields, number, string]>([
    ['without a token', { token: undefined, ...asClient }, 400, 'invalid_request'],
    ['without a client', { client_secret: undefined }, 401, 'invalid_client'],
    ['of a wrong client', { ...asClient, client_secret: 'x' }, 401, 'invalid_client'],
  ])('%s is refused, and revocation too', async (_, fields, status, error) => {
    const lab = await logIn();
    for (const path of ['/oauth/introspect', '/oauth/revoke']) {
      const answer = await lab.post(path, { token: lab.access, ...fields });
      expect({ status: answer.status, error: answer.json()['error'] }).toEqual({ status, error });
    }
  });

  test.each(['/oauth/introspect', '/oauth/revoke'])(
    '%s takes nothing twice, and nothing from the URL',
    async (path) => {
      const lab = await logIn();
      const twice = `${new URLSearchParams({ token: lab.access, ...asClient }).toString()}&token=x`;
      for (const answer of [await lab.post(path, {}, { body: twice }), await lab.post(`${path}?token=x`, asClient)])
        expect({ status: answer.status, error: answer.json()['error'] }).toEqual({
          status: 400,
          error: 'invalid_request',
        });
      expect(await stands(lab)).toEqual([true, true]);
    },
  );
});

describe('userinfo', () => {
  test.each(['GET', 'POST'])('by %s tells what the scope lets it', async (method) => {
    const lab = await logIn({ scope: 'openid profile email groups' });
    const answer = await ask(lab.app, '/oauth/userinfo', {
      method,
      headers: { authorization: `Bearer ${lab.access}` },
    });
    expect(answer.headers).toMatchObject({ 'cache-control': 'no-store', 'content-type': 'application/json' });
    expect(answer.json()).toEqual({
      sub: readJWT(lab.identity).claims['sub'],
      preferred_username: 'alice',
      name: 'Alice Ö.',
      email: 'alice@example.com',
      email_verified: true,
      groups: ['a'],
    });
  });

  test('tells the subject alone for the scope openid', async () => {
    const lab = await logIn({ scope: 'openid' });
    expect(Object.keys((await userinfo(lab, lab.access)).json())).toEqual(['sub']);
  });

  // evidence: userinfo-challenge
  test.each<[string, Record<string, string>, number, string | undefined]>([
    ['no credentials', {}, 401, undefined],
    ["a client's credentials", { authorization: 'Basic eDp5' }, 401, undefined],
    ['no token', { authorization: 'Bearer ' }, 401, undefined],
    ['nonsense', { authorization: 'Bearer x y' }, 401, 'invalid_token'],
  ])('with %s is challenged', async (_, headers, status, error) => {
    const lab = await logIn();
    const answer = await ask(lab.app, '/oauth/userinfo', { headers });
    expect(answer.status).toBe(status);
    const more = error === undefined ? '' : `, error="${error}"`;
    expect(answer.headers['www-authenticate']).toBe(`Bearer realm="platform"${more}`);
    expect(answer.headers['cache-control']).toBe('no-store');
  });

  test('says how a token is sent', async () => {
    const lab = await logIn();
    expect((await ask(lab.app, '/oauth/userinfo')).json()['error_description']).toMatch(
      /'Authorization: Bearer TOKEN'$/,
    );
  });

  // evidence: userinfo-error-codes
  test.each(['refresh', 'identity'] as const)('with a %s token is refused', async (kind) => {
    const lab = await logIn();
    const answer = await userinfo(lab, lab[kind]);
    expect(answer.status).toBe(401);
    expect(answer.headers['www-authenticate']).toMatch(/error="invalid_token"$/);
  });

  test('needs a scope', async () => {
    const lab = await logIn({ scope: undefined });
    expect((await userinfo(lab, lab.access)).json()['error']).toBe('insufficient_scope');
  });

  // evidence: userinfo-scope
  test('needs the scope openid', async () => {
    const lab = await logIn({ scope: 'profile' });
    const answer = await userinfo(lab, lab.access);
    expect({ status: answer.status, error: answer.json()['error'] }).toEqual({
      status: 403,
      error: 'insufficient_scope',
    });
    expect(answer.headers['www-authenticate']).toMatch(/error="insufficient_scope", scope="openid"$/);
  });

  test('by GET ignores a media type without a body', async () => {
    const lab = await logIn({ scope: 'openid' });
    const headers = { authorization: `Bearer ${lab.access}`, 'content-type': 'application/json' };
    expect((await ask(lab.app, '/oauth/userinfo', { headers })).status).toBe(200);
  });

  // evidence: userinfo-header-only
  test('takes no token from the form and none from the URL', async () => {
    const lab = await logIn();
    const inForm = await lab.post('/oauth/userinfo', { access_token: lab.access });
    const inURL = await ask(lab.app, `/oauth/userinfo?access_token=${lab.access}`);
    for (const answer of [inForm, inURL])
      expect({ status: answer.status, error: answer.json()['error'] }).toEqual({
        status: 400,
        error: 'invalid_request',
      });
  });
});
