/** Tokens for the audience of kube-apiserver, and the token webhook that kube-apiserver calls. */
import { describe, expect, test } from '@jest/globals';
import type { OutgoingHttpHeaders } from 'node:http';
import { sessionsPath } from '../../../src/config/names.ts';
import { sendRequest, type AppResponse } from '../../fakes/request.ts';
import { issuer } from '../../fakes/configuration.ts';
import { craftJWT, readJWT } from '../../fakes/jwt.ts';
import { namespace } from '../../labs/accounts.ts';
import { asClient, createLab, login, refreshWith, type Fields, type Lab } from '../../labs/oauth.ts';

const grantTypes = ['password', 'refresh_token', 'client_credentials'];
const clients = [
  { name: 'platform', secret: 'platform', grantTypes: ['password', 'refresh_token'] },
  { name: 'webhook', secret: 'webhook', grantTypes: [], introspection: true },
  { name: 'other', secret: 'other', grantTypes },
];
const ofCluster = 'https://kubernetes.example';
const minute = 60_000;

async function lab(): Promise<Lab> {
  const made = await createLab({ clients });
  made.client.ownAudiences = [ofCluster];
  made.cluster.respond('/apis/authentication.k8s.io/v1/tokenreviews', ({ spec }) => ({
    status:
      (spec as { token: string }).token === serviceToken
        ? { authenticated: true, user: { username: 'system:serviceaccount:a:b', uid: 'u', groups: [] } }
        : { authenticated: false },
  }));
  made.cluster.respond('/apis/authorization.k8s.io/v1/subjectaccessreviews', ({ spec }) => {
    const { user, resourceAttributes } = spec as {
      user: string;
      resourceAttributes?: Readonly<Record<string, string>>;
    };
    const { verb, group, resource } = resourceAttributes ?? {};
    const isReview = [verb, group, resource].join(' ') === 'create authentication.k8s.io tokenreviews';
    return { status: { allowed: isReview && user.startsWith('system:serviceaccount:') } };
  });
  return made;
}

const serviceToken = craftJWT({ alg: 'RS256' }, { iss: ofCluster });
const tokenOf = async (made: Lab, fields: Fields = {}): Promise<string> =>
  String((await made.token({ ...login, ...fields })).json()['access_token']);
const basic = (name: string): OutgoingHttpHeaders => ({
  authorization: `Basic ${Buffer.from(`${name}:${name}`).toString('base64')}`,
});
const bearer = (token: string): OutgoingHttpHeaders => ({ authorization: `Bearer ${token}` });

const review = (
  made: Lab,
  token: unknown,
  headers: OutgoingHttpHeaders = basic('webhook'),
  audiences?: readonly string[],
): Promise<AppResponse> => send(made, JSON.stringify({ ...type, spec: { token, audiences } }), headers);
const send = (
  made: Lab,
  body: string,
  headers: OutgoingHttpHeaders,
  path = '/oauth/authenticate',
): Promise<AppResponse> =>
  sendRequest(made.app, path, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } });

const type = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview' };
const no = { ...type, status: { authenticated: false } };
const alice = (token: string): object => ({ username: 'alice', uid: readJWT(token).claims['sub'], groups: ['a'] });

const must = async (made: Lab): Promise<unknown> => made.putUser('carol', { passwordChangeRequired: true });

describe('a token for kube-apiserver', () => {
  // evidence: kubernetes-token-audience
  test.each([
    ['password', () => login],
    [
      'refresh_token',
      async (made: Lab) => refreshWith((await made.token({ ...login, scope: 'openid' })).json()['refresh_token']),
    ],
  ] as const)(
    'a token for kube-apiserver is issued by the grant %s, is valid for ten minutes, and has no other audience',
    async (_, fields) => {
      const made = await lab();
      const response = await made.token({ ...(await fields(made)), audience: 'kubernetes', scope: 'openid' });
      const body = response.json() as { access_token: string; expires_in: number };
      const token = body.access_token;
      expect(body.expires_in).toBe(600);
      expect(readJWT(token).claims).toMatchObject({ iss: issuer, aud: 'kubernetes', username: 'alice', groups: ['a'] });
      await expect(made.accessTokens.validate(token)).resolves.toBeUndefined();
      const userinfo = await sendRequest(made.app, '/oauth/userinfo', { headers: bearer(token) });
      expect(userinfo.status).toBe(401);
      const introspected = await made.post('/oauth/introspect', { token, ...asClient });
      expect(introspected.json()).toEqual({ active: false });
    },
  );

  describe('for a user who must change the password', () => {
    const carol = { ...login, username: 'carol' };

    // evidence: password-change-login
    test('a login for a token for kube-apiserver is rejected without creating a session while the password must be changed', async () => {
      const made = await lab();
      await must(made);
      const refused = await made.token({ ...carol, audience: 'kubernetes' });
      expect(refused.status).toBe(400);
      expect(refused.json()).toMatchObject({
        error: 'invalid_target',
        error_description: expect.stringContaining('password must be changed') as unknown,
      });
      expect(made.cluster.list(sessionsPath(namespace))).toEqual([]);
      const own = await made.token({ ...carol, scope: 'openid profile' });
      expect(own.status).toBe(200);
      expect(own.json()).not.toHaveProperty('id_token');
      const again = await made.token({ ...refreshWith(own.json()['refresh_token']) });
      expect(again.status).toBe(200);
      expect(again.json()).not.toHaveProperty('id_token');
    });

    // evidence: password-change-refresh
    test('a refresh for a token for kube-apiserver is rejected while the password must be changed, and the refresh token stays valid', async () => {
      const made = await lab();
      await made.putUser('carol');
      const { refresh_token: token } = (await made.token({ ...carol, scope: 'openid' })).json();
      await must(made);
      const refused = await made.token({ ...refreshWith(token), audience: 'kubernetes' });
      expect([refused.status, refused.json()['error']]).toEqual([400, 'invalid_target']);
      await made.clock.advance(minute);
      const own = await made.token(refreshWith(token));
      expect(own.status).toBe(200);
      expect(own.json()).not.toHaveProperty('id_token');
      expect(await made.accessTokens.validate(String(own.json()['access_token']))).toBeUndefined();
    });
  });

  // evidence: kubernetes-token-not-ours
  test('a token for kube-apiserver is never accepted as a token for this server, even after validation for kube-apiserver', async () => {
    const made = await lab();
    const token = await tokenOf(made, { audience: 'kubernetes' });
    expect(await made.accessTokens.validateForCluster(token)).toBeDefined();
    await expect(made.accessTokens.validate(token)).resolves.toBeUndefined();
  });

  // evidence: default-audience
  test.each([{}, { audience: issuer }, { resource: issuer }])(
    'a token for kube-apiserver is not issued for the request parameters %j',
    async (fields) => {
      expect(readJWT(await tokenOf(await lab(), fields)).claims['aud']).toBe(issuer);
    },
  );

  test('a request for a token for kube-apiserver and another audience is rejected before the refresh token is used', async () => {
    const made = await lab();
    const first = (await made.token(login)).json()['refresh_token'];
    const response = await made.token({ ...refreshWith(first), audience: 'https://evil.example' });
    expect({ status: response.status, error: response.json()['error'] }).toEqual({
      status: 400,
      error: 'invalid_target',
    });
    expect((await made.token(refreshWith(first))).status).toBe(200);
  });

  test('revoking a token for kube-apiserver revokes its session', async () => {
    const made = await lab();
    const token = await tokenOf(made, { audience: 'kubernetes' });
    await made.post('/oauth/revoke', { token, ...asClient });
    expect((await review(made, token)).json()).toEqual(no);
  });
});

describe('the token webhook', () => {
  test.each([
    ['a client that is allowed to introspect', basic('webhook')],
    ['a user who is allowed to create tokenreviews', bearer(serviceToken)],
  ])('the token webhook reports the user of a token to %s', async (_, headers) => {
    const made = await lab();
    const token = await tokenOf(made);
    const response = await review(made, token, headers);
    expect({ status: response.status, body: response.json() }).toEqual({
      status: 200,
      body: { ...type, status: { authenticated: true, user: alice(token) } },
    });
    expect(response.headers).toMatchObject({ 'content-type': 'application/json', 'cache-control': 'no-store' });
  });

  test.each<[readonly string[], readonly string[]]>([
    [[ofCluster], [ofCluster]],
    [[issuer, 'https://else.example'], [issuer]],
    [['https://else.example'], []],
    [['kubernetes'], []],
  ])('a token that is reviewed for the audiences %j is reported as valid for %j', async (wanted, expected) => {
    const made = await lab();
    const { status } = (await review(made, await tokenOf(made), basic('webhook'), wanted)).json() as {
      status: { authenticated: boolean; audiences?: readonly string[] };
    };
    expect([status.authenticated, status.audiences ?? []]).toEqual([expected.length > 0, expected]);
  });

  test('the token webhook returns no audience while the audiences of kube-apiserver are unknown', async () => {
    const made = await lab();
    made.client.ownAudiences = [];
    const token = await tokenOf(made);
    expect((await review(made, token, basic('webhook'), [ofCluster])).json()).toEqual({
      ...type,
      status: { authenticated: true, user: alice(token) },
    });
  });

  test('the token webhook also accepts access tokens with the audience of kube-apiserver', async () => {
    const made = await lab();
    const token = await tokenOf(made, { audience: 'kubernetes' });
    expect((await review(made, token, basic('webhook'), ['kubernetes'])).json()).toMatchObject({
      status: { authenticated: true, audiences: ['kubernetes'] },
    });
  });

  test('the token webhook reports the current groups, and rejects a token that is no longer valid', async () => {
    const made = await lab();
    const token = await tokenOf(made);
    made.configure({ clients, users: [{ username: 'alice', groups: ['b'] }] });
    expect((await review(made, token)).json()).toMatchObject({ status: { user: { groups: ['b'] } } });
    made.configure({ clients, users: [{ username: 'alice', state: 'Disabled' }] });
    expect((await review(made, token)).json()).toEqual(no);
  });

  // evidence: token-review-introspection
  test('a client that is not allowed to introspect can validate only its own tokens at the token webhook', async () => {
    const made = await lab();
    const own = await tokenOf(made, { client_id: 'other', client_secret: 'other' });
    expect((await review(made, own, basic('other'))).json()).toMatchObject({ status: { authenticated: true } });
    for (const token of [await tokenOf(made), 'x'])
      expect((await review(made, token, basic('other'))).json()).toEqual({
        ...type,
        status: {
          authenticated: false,
          error: expect.stringContaining('was not issued to the client "other"; only clients with introspection: true'),
        },
      });
    expect((await review(made, own, basic('other'), ['elsewhere'])).json()).toEqual(no);
  });

  test('the token webhook rejects tokens other than access tokens of this server without a request to kube-apiserver', async () => {
    const made = await lab();
    const body = (await made.token({ ...login, scope: 'openid' })).json();
    const claims = readJWT(String(body['access_token'])).claims;
    for (const token of [
      'x',
      serviceToken,
      body['id_token'],
      body['refresh_token'],
      craftJWT({ alg: 'none' }, claims),
    ]) {
      const response = await review(made, token);
      expect({ status: response.status, body: response.json() }).toEqual({ status: 200, body: no });
    }
    expect(made.client.requestsTo('POST', '/tokenreviews')).toHaveLength(0);
  });

  test("the token webhook does not send the reviewed token to kube-apiserver, even when it is also the caller's credential", async () => {
    const made = await lab();
    expect((await review(made, serviceToken, bearer(serviceToken))).json()).toEqual(no);
    expect(made.client.requestsTo('POST', '/tokenreviews')).toHaveLength(0);
  });

  // evidence: token-review-callers
  test('the token webhook rejects callers without a valid credential or permission', async () => {
    const made = await lab();
    const token = await tokenOf(made);
    const callers: [OutgoingHttpHeaders, number][] = [
      [{}, 401],
      [basic('platform'), 401],
      [basic('nobody'), 401],
      [bearer(craftJWT({ alg: 'RS256' }, { iss: ofCluster, sub: 'x' })), 401],
      [bearer(token), 403],
    ];
    for (const [headers, status] of callers) {
      const response = await review(made, token, headers);
      expect([headers, response.status]).toEqual([headers, status]);
      expect(response.text).not.toContain('alice"');
    }
  });

  test.each<[string, string, number]>([
    ['invalid JSON', '{', 400],
    ['null', 'null', 400],
    ['a string', JSON.stringify('x'.repeat(60_000)), 400],
    [
      'a different version',
      JSON.stringify({ ...type, apiVersion: 'authentication.k8s.io/v1beta1', spec: { token: 'x' } }),
      400,
    ],
    ['a different kind', JSON.stringify({ ...type, kind: 'TokenRequest', spec: { token: 'x' } }), 400],
    ['a review without a spec', JSON.stringify(type), 400],
    ['a review without a token', JSON.stringify({ ...type, spec: {} }), 400],
    ['an empty token', JSON.stringify({ ...type, spec: { token: '' } }), 400],
    ['audiences that are not a list', JSON.stringify({ ...type, spec: { token: 'x', audiences: 'a' } }), 400],
    ['a token that is a number', JSON.stringify({ ...type, spec: { token: 1 } }), 400],
    ['audiences that are not strings', JSON.stringify({ ...type, spec: { token: 'x', audiences: [1] } }), 400],
    ['an oversized body', JSON.stringify({ ...type, spec: { token: 'x'.repeat(65_536) } }), 413],
  ])('the token webhook rejects %s', async (_, body, status) => {
    const response = await send(await lab(), body, basic('webhook'));
    expect({ status: response.status, error: response.json()['error'] }).toEqual({ status, error: 'invalid_request' });
  });

  test.each([
    '{',
    '['.repeat(65),
    JSON.stringify({ ...type, spec: {} }),
    JSON.stringify({ ...type, spec: { token: '' } }),
  ])('the token webhook returns 401 to a caller without credentials before it parses %s', async (body) => {
    const response = await send(await lab(), body, {});
    expect({ status: response.status, error: response.json()['error'] }).toEqual({
      status: 401,
      error: 'invalid_client',
    });
  });

  test('the token webhook rejects JSON nested deeper than 64 levels', async () => {
    const response = await send(await lab(), '['.repeat(65) + ']'.repeat(65), basic('webhook'));
    expect({ status: response.status, body: response.json() }).toEqual({
      status: 400,
      body: { error: 'invalid_request', error_description: 'the body is nested deeper than 64 levels' },
    });
  });

  test('the token webhook accepts the parameter timeout that client-go adds, and no other parameter', async () => {
    const made = await lab();
    const body = JSON.stringify({ ...type, spec: { token: 'x' } });
    const statuses = await Promise.all(
      ['timeout=30s', 'token=x'].map(async (query) =>
        send(made, body, basic('webhook'), `/oauth/authenticate?${query}`).then(({ status }) => status),
      ),
    );
    expect(statuses).toEqual([200, 400]);
  });

  test('the token webhook rejects a content type other than JSON', async () => {
    const response = await send(await lab(), 'token=x', { 'content-type': 'application/x-www-form-urlencoded' });
    expect(response.status).toBe(415);
  });

  test('the token webhook rejects an expired token', async () => {
    const made = await lab();
    const token = await tokenOf(made, { audience: 'kubernetes' });
    await made.clock.advance(11 * minute);
    expect((await review(made, token)).json()).toEqual(no);
  });
});
