/** Tests the grants for programs: client_credentials (RFC 6749 section 4.4) and token exchange (RFC 8693). */
import { describe, expect, test } from '@jest/globals';
import type { Session } from '../../../../src/tokens/sessions/session.ts';
import { platformToken } from '../../../../src/auth/authenticators/index.ts';
import { configuredUserUID } from '../../../../src/accounts/directory/account.ts';
import { KubeError } from '../../../../src/cluster/client/kube-error.ts';
import { allRecorded } from '../../../../src/http/records.ts';
import type { AppResponse } from '../../../fakes/request.ts';
import { issuer } from '../../../fakes/configuration.ts';
import { craftJWT, readJWT } from '../../../fakes/jwt.ts';
import { logOfLines } from '../../../fakes/log.ts';
import { createLab, login, type Fields, type Lab } from '../../../labs/oauth.ts';

const exchange = 'urn:ietf:params:oauth:grant-type:token-exchange';
const jwtType = 'urn:ietf:params:oauth:token-type:jwt';
const accessType = 'urn:ietf:params:oauth:token-type:access_token';
const all = ['password', 'refresh_token', 'client_credentials', exchange];
const ci = { name: 'ci', secret: 'ci', grantTypes: all, groups: ['builders'] };
const asCI = { client_id: 'ci', client_secret: 'ci' };
const asItself: Fields = { grant_type: 'client_credentials', ...asCI };
const sessionsPath = '/apis/iam.platform.io/v1alpha2/namespaces/platform-system/sessions';
const minute = 60_000;

interface Reviewed {
  readonly username?: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
}
const account: Required<Reviewed> = {
  username: 'system:serviceaccount:apps:builder',
  uid: 'uid-builder',
  groups: ['system:serviceaccounts', 'system:serviceaccounts:apps'],
};

async function lab(
  client: object = ci,
  user: Reviewed | undefined = account,
  options?: Parameters<typeof createLab>[1],
) {
  const made = await createLab({ clients: [client] }, options);
  made.cluster.respond('/apis/authentication.k8s.io/v1/tokenreviews', () => ({
    status: { authenticated: user !== undefined, user },
  }));
  return made;
}

const identityOf = async (made: Lab, response: AppResponse) =>
  await platformToken(made.accessTokens)(String(response.json()['access_token']), '192.0.2.1');
const isGood = (made: Lab, response: AppResponse): Promise<boolean> =>
  identityOf(made, response).then(
    () => true,
    () => false,
  );

const serviceToken = (clock: Lab['clock'], life = 60 * minute): string =>
  craftJWT({ alg: 'RS256' }, { iss: 'https://kubernetes.example', exp: Math.floor((clock.now() + life) / 1_000) });
const exchangeOf = (token: string, fields: Fields = {}): Fields => ({
  grant_type: exchange,
  subject_token: token,
  subject_token_type: jwtType,
  ...asCI,
  ...fields,
});
const reviews = (made: Lab) => made.client.requestsTo('POST', '/tokenreviews');
const onlySession = ({ cluster }: Lab): Session => cluster.list(sessionsPath)[0] as unknown as Session;

describe('a client_credentials token', () => {
  // evidence: client-credentials-token
  test('a client_credentials token belongs to the client itself, with its groups and no refresh token', async () => {
    const made = await lab();
    const response = await made.token({ ...asItself, scope: 'groups openid offline_access' });
    expect({ status: response.status, body: response.json() }).toEqual({
      status: 200,
      body: { access_token: expect.any(String), token_type: 'Bearer', expires_in: 7200, scope: 'groups' },
    });
    expect(response.headers).toMatchObject({ 'cache-control': 'no-store' });
    expect(readJWT(String(response.json()['access_token'])).claims).toMatchObject({
      sub: configuredUserUID(issuer, 'platform:client:ci'),
      client_id: 'ci',
      username: 'platform:client:ci',
    });
    expect(await identityOf(made, response)).toMatchObject({
      username: 'platform:client:ci',
      groups: ['builders', 'system:authenticated'],
      via: 'token',
    });
    expect(onlySession(made).status).not.toHaveProperty('currentHash');
  });

  test.each<[string, () => Fields]>([
    ['client_credentials', () => asItself],
    [exchange, () => exchangeOf(craftJWT({ alg: 'RS256' }, { iss: 'https://kubernetes.example', exp: 9_999_999_999 }))],
  ])('a token of the grant %s stores the requested scope in its session', async (_, fields) => {
    for (const scope of ['groups', undefined]) {
      const made = await lab();
      expect((await made.token({ ...fields(), scope })).json()['scope']).toBe(scope);
      expect(onlySession(made).spec.scope).toBe(scope);
    }
  });

  test('a client_credentials token has the current groups of the client', async () => {
    const made = await lab();
    const response = await made.token(asItself);
    made.configure({ clients: [{ ...ci, groups: ['others'] }] });
    expect((await identityOf(made, response))?.groups).toEqual(['others', 'system:authenticated']);
  });

  test.each([
    ['its client is removed', []],
    ['its client loses the grant', [{ ...ci, grantTypes: ['password'] }]],
  ])('a client_credentials token is no longer valid when %s', async (_, clients) => {
    const made = await lab();
    const response = await made.token(asItself);
    expect(await isGood(made, response)).toBe(true);
    made.configure({ clients });
    expect(await isGood(made, response)).toBe(false);
  });

  test('a client_credentials token is valid until it expires, without an idle timeout', async () => {
    const made = await lab();
    made.configure({ clients: [ci], refreshTokenIdle: '10m' });
    const response = await made.token(asItself);
    await made.clock.advance(60 * minute);
    expect(await isGood(made, response)).toBe(true);
    await made.clock.advance(61 * minute);
    expect(await isGood(made, response)).toBe(false);
  });

  // evidence: client-credentials-grant
  test('a client_credentials token is not issued to a client without the grant', async () => {
    const made = await lab({ ...ci, grantTypes: ['password'] });
    const response = await made.token(asItself);
    expect({ status: response.status, error: response.json()['error'] }).toEqual({
      status: 400,
      error: 'unauthorized_client',
    });
  });

  test('a client_credentials token can be revoked', async () => {
    const made = await lab();
    const response = await made.token(asItself);
    await made.post('/oauth/revoke', { token: String(response.json()['access_token']), ...asCI });
    expect(await isGood(made, response)).toBe(false);
  });
});

describe('token exchange', () => {
  // evidence: token-exchange-identity
  test('token exchange returns a token of the ServiceAccount that kube-apiserver authenticates, with its groups', async () => {
    const made = await lab();
    const response = await made.token(exchangeOf(serviceToken(made.clock)));
    expect({ status: response.status, body: response.json() }).toEqual({
      status: 200,
      body: { access_token: expect.any(String), issued_token_type: accessType, token_type: 'Bearer', expires_in: 3600 },
    });
    expect(await identityOf(made, response)).toEqual({
      username: account.username,
      uid: account.uid,
      groups: [...account.groups, 'system:authenticated'],
      via: 'token-review',
      sessionID: onlySession(made).metadata.name,
    });
    expect(onlySession(made).spec).toMatchObject({
      subjectKind: 'ServiceAccount',
      userName: account.username,
      userUID: account.uid,
      groups: [...account.groups, 'system:authenticated'],
    });
  });

  test.each([
    [10 * minute, 600],
    [600 * minute, 7200],
  ])(
    'token exchange for a ServiceAccount token that expires in %d ms returns a token that is valid for %d s',
    async (life, expiresIn) => {
      const made = await lab();
      const response = await made.token(exchangeOf(serviceToken(made.clock, life)));
      expect(response.json()['expires_in']).toBe(expiresIn);
      await made.clock.advance(expiresIn * 1_000 - 1);
      expect(await isGood(made, response)).toBe(true);
      // The allowed clock skew does not extend the lifetime of the token.
      await made.clock.advance(1);
      expect(await isGood(made, response)).toBe(false);
    },
  );

  test('tokens of a token exchange stay valid after changes of users, and become invalid when the client loses the grant', async () => {
    const made = await lab();
    const response = await made.token(exchangeOf(serviceToken(made.clock)));
    made.configure({ clients: [ci], users: [{ username: 'bob' }] });
    expect(await isGood(made, response)).toBe(true);
    made.configure({ clients: [{ ...ci, grantTypes: ['password'] }] });
    expect(await isGood(made, response)).toBe(false);
  });

  // evidence: token-exchange-refused
  test.each<[string, Reviewed | undefined]>([
    ['kube-apiserver rejects', undefined],
    ['belongs to a user', { username: 'jane', uid: 'uid-jane', groups: ['system:masters'] }],
    ['has no uid', { username: account.username, groups: account.groups }],
  ])('token exchange of a token that %s is rejected', async (_, user) => {
    const made = await createLab({ clients: [ci] });
    made.cluster.respond('/apis/authentication.k8s.io/v1/tokenreviews', () => ({
      status: { authenticated: user !== undefined, ...(user === undefined ? {} : { user }) },
    }));
    const response = await made.token(exchangeOf(serviceToken(made.clock)));
    expect({ status: response.status, error: response.json()['error'] }).toEqual({
      status: 400,
      error: 'invalid_request',
    });
    expect(made.cluster.list(sessionsPath)).toEqual([]);
  });

  // evidence: token-exchange-own-token
  test('token exchange of a token of this server is rejected without a TokenReview', async () => {
    const made = await lab();
    const own = String((await made.token({ ...login, ...asCI })).json()['access_token']);
    const response = await made.token(exchangeOf(own));
    expect({ status: response.status, error: response.json()['error'] }).toEqual({
      status: 400,
      error: 'invalid_request',
    });
    expect(reviews(made)).toHaveLength(0);
  });

  // evidence: token-exchange-parameters
  test.each<[string, Fields, RegExp]>([
    ['no token', { subject_token: undefined }, /subject_token'? is missing|subject_token/],
    ['no type', { subject_token_type: undefined }, /subject_token_type/],
    ['another type', { subject_token_type: 'urn:ietf:params:oauth:token-type:saml2' }, /subject_token_type: must be/],
    [
      'another requested type',
      { requested_token_type: 'urn:ietf:params:oauth:token-type:id_token' },
      /requested_token_type/,
    ],
    ["kube-apiserver's audience", { audience: 'kubernetes' }, /audience of a token exchange must be/],
    ['another audience', { audience: 'https://evil.example' }, /audience must be/],
    ['an actor', { actor_token: 'x', actor_token_type: jwtType }, /actor_token/],
    ['an actor without a type', { actor_token: 'x' }, /actor_token/],
    ['the type of an actor without an actor', { actor_token_type: jwtType }, /actor_token/],
    ['an opaque token', { subject_token: 'opaque' }, /must be a valid token of a ServiceAccount/],
  ])('token exchange with %s is rejected without a TokenReview', async (_, fields, reason) => {
    const made = await lab();
    const response = await made.token(exchangeOf(serviceToken(made.clock), fields));
    const error = 'audience' in fields ? 'invalid_target' : 'invalid_request';
    expect(response.json()).toEqual({ error, error_description: expect.stringMatching(reason) });
    expect(reviews(made)).toHaveLength(0);
  });

  test('token exchange gets 503 while kube-apiserver cannot be reached', async () => {
    const made = await lab();
    made.client.before = ({ path }) => {
      if (path.endsWith('/tokenreviews')) throw new KubeError(503, {});
    };
    const response = await made.token(exchangeOf(serviceToken(made.clock)));
    expect(response).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
  });

  test('token exchange logs neither the subject token nor the new token', async () => {
    const { log, lines } = logOfLines();
    const made = await lab(ci, account, { log });
    const subject = serviceToken(made.clock);
    const given = String((await made.token(exchangeOf(subject))).json()['access_token']);
    await allRecorded();
    const text = lines().join('\n');
    expect(text).toContain('token exchanged');
    for (const token of [subject, given]) expect(text).not.toContain(token);
  });
});

test('a client has at most a thousand sessions, and a further session evicts the least recently used session', async () => {
  const made = await lab();
  await made.token(asItself);
  const { spec } = onlySession(made);
  for (let count = 0; count < 1_003; count += 1) await made.sessions.createFixed(spec);
  expect(made.cluster.list(sessionsPath)).toHaveLength(1_000);
});
