/** Tests the authorization code flow (RFC 6749 section 4.1) with PKCE (RFC 7636) in a browser without scripts. */
import { describe, expect, test } from '@jest/globals';
import { createHash, randomBytes } from 'node:crypto';
import { unreachable } from '../../../../src/cluster/client/kube-error.ts';
import { allRecorded } from '../../../../src/http/records.ts';
import { sendRequest, type AppResponse } from '../../../fakes/request.ts';
import { Browser, formIn } from '../../../fakes/browser.ts';
import { issuer } from '../../../fakes/configuration.ts';
import { readJWT } from '../../../fakes/jwt.ts';
import { rightPassword } from '../../../labs/accounts.ts';
import { createLab, type Fields, type Lab } from '../../../labs/oauth.ts';

const redirectURI = 'https://console.example/callback';
const second = 1_000;
const clients = [
  { name: 'platform', secret: 'platform' },
  {
    name: 'console',
    secret: 'console',
    grantTypes: ['authorization_code', 'refresh_token'],
    redirectURIs: [redirectURI, 'https://console.example/other?tab=1'],
  },
  { name: 'ours', secret: 'ours', grantTypes: ['authorization_code'], redirectURIs: [redirectURI], consent: false },
  { name: 'spa', public: true, redirectURIs: ['https://spa.example/'] },
  { name: 'grantless', secret: 'x', grantTypes: ['refresh_token'], redirectURIs: [redirectURI] },
];
const users = [{ username: 'alice', groups: ['a'] }, { username: 'bob' }];
const verifier = randomBytes(32).toString('base64url');
const challenge = createHash('sha256').update(verifier).digest('base64url');
const base: Fields = {
  response_type: 'code',
  client_id: 'console',
  redirect_uri: redirectURI,
  scope: 'openid profile',
  state: 'a state/&=+',
  code_challenge: challenge,
  code_challenge_method: 'S256',
};

const queryOf = (fields: Fields): string =>
  new URLSearchParams(
    Object.entries(fields).flatMap(([name, value]): [string, string][] => (value === undefined ? [] : [[name, value]])),
  ).toString();
const authorize = (fields: Fields = {}): string => `/oauth/authorize?${queryOf({ ...base, ...fields })}`;

const lab = (authentication: object = {}): Promise<Lab> => createLab({ clients, users, ...authentication });
const browserOf = ({ app }: Lab): Browser<AppResponse> =>
  new Browser((path, options) => sendRequest(app, path, options));
const credentials = (username = 'alice'): Record<string, string> => ({ username, password: rightPassword });

const aliceOf = ({ directory }: Lab): string => directory.account('alice')?.uid ?? '';

/** Returns the parameters of the redirect back to the client. */
function responseOf({ status, headers: { location = '' } }: AppResponse, to = redirectURI): Record<string, string> {
  expect({ status, to: location.slice(0, to.length) }).toEqual({ status: 303, to });
  return Object.fromEntries(new URL(location).searchParams);
}

async function codeOf(browser: Browser<AppResponse>, fields: Fields = {}): Promise<string> {
  const login = await browser.open(authorize(fields));
  const consent = await browser.submit(login, credentials());
  const response = consent.status === 200 ? await browser.submit(consent, { decision: 'allow' }) : consent;
  return responseOf(response, fields['redirect_uri'] ?? redirectURI)['code'] ?? '';
}

const exchange = (code: string, fields: Fields = {}): Fields => ({
  grant_type: 'authorization_code',
  code,
  redirect_uri: redirectURI,
  code_verifier: verifier,
  client_id: 'console',
  client_secret: 'console',
  ...fields,
});

function expectRefused(response: AppResponse, error: string): void {
  expect({ status: response.status, error: response.json()['error'] }).toEqual({ status: 400, error });
}

const twice = (text: string, again = text): Record<string, string> => ({
  password: rightPassword,
  new_password: text,
  new_password_again: again,
});

describe('the authorization code flow', () => {
  // evidence: authorize-code-flow
  test('the authorization code flow leads through the login and consent pages to tokens for the user', async () => {
    const made = await lab();
    const browser = browserOf(made);
    const login = await browser.open(authorize({ nonce: 'n-1' }));
    expect(login.status).toBe(200);
    expect(formIn(login.text).action).toBe('/oauth/login');
    const consent = await browser.submit(login, credentials());
    expect(consent.text).toContain('<strong>console</strong>');
    const { code = '', ...rest } = responseOf(await browser.submit(consent, { decision: 'allow' }));
    expect(rest).toEqual({ state: 'a state/&=+', iss: issuer });
    await allRecorded();
    expect(made.events.at(-1)).toMatchObject({
      user: { username: 'alice' },
      annotations: { 'oauth.platform.io/client': 'console', 'oauth.platform.io/authorization': 'Allowed' },
    });
    await made.clock.advance(30 * second);
    const response = await made.token(exchange(code));
    expect(response.status).toBe(200);
    expect(response.headers).toMatchObject({ 'cache-control': 'no-store', pragma: 'no-cache' });
    const { access_token, id_token, refresh_token, scope } = response.json();
    expect(scope).toBe('openid profile');
    expect(refresh_token).toEqual(expect.any(String));
    expect(readJWT(String(access_token)).claims).toMatchObject({
      client_id: 'console',
      username: 'alice',
      groups: ['a'],
    });
    const identity = readJWT(String(id_token)).claims as Record<string, number>;
    expect(identity).toMatchObject({ aud: 'console', nonce: 'n-1', preferred_username: 'alice' });
    expect(Number(identity['iat']) - Number(identity['auth_time'])).toBe(30);
    const again = await made.token({
      grant_type: 'refresh_token',
      refresh_token: String(refresh_token),
      client_id: 'console',
      client_secret: 'console',
    });
    expect(again.status).toBe(200);
    expect(readJWT(String(again.json()['id_token'])).claims).not.toHaveProperty('nonce');
  });

  test('the authorization code flow skips a completed login and consent, and skips the consent for a trusted client', async () => {
    const browser = browserOf(await lab());
    await codeOf(browser);
    expect(responseOf(await browser.open(authorize()))).toHaveProperty('code');
    expect(responseOf(await browser.open(authorize({ client_id: 'ours' })))).toHaveProperty('code');
    expect((await browser.open(authorize({ scope: 'openid email' }))).text).toContain('See your e-mail address');
    expect((await browser.open(authorize({ prompt: 'consent' }))).text).toContain('value="allow"');
  });

  // evidence: refresh-rotation-public-client
  test('the authorization code flow requires no secret for a public client, and rotates its refresh tokens', async () => {
    const made = await lab();
    const at = { client_id: 'spa', redirect_uri: 'https://spa.example/' };
    const code = await codeOf(browserOf(made), at);
    const response = await made.token(exchange(code, { ...at, client_secret: undefined }));
    expect(response.status).toBe(200);
    const refresh = { grant_type: 'refresh_token', client_id: 'spa' };
    const first = String(response.json()['refresh_token']);
    const next = await made.token({ ...refresh, refresh_token: first });
    expect(next.status).toBe(200);
    expect(next.json()['refresh_token']).not.toBe(first);
  });

  // evidence: loopback-redirect
  test('the authorization code flow redirects a native app to any loopback port, and always requires consent', async () => {
    const made = await lab();
    const browser = browserOf(made);
    for (const redirect_uri of [
      'http://127.0.0.1:49152/callback',
      'http://[::1]:1/callback',
      'http://127.0.0.1/callback',
    ]) {
      const first = await browser.open(authorize({ client_id: 'platform-cli', redirect_uri }));
      const consent = formIn(first.text).action === '/oauth/login' ? await browser.submit(first, credentials()) : first;
      const { code = '' } = responseOf(await browser.submit(consent, { decision: 'allow' }), redirect_uri);
      const fields = { redirect_uri, client_id: 'platform-cli', client_secret: undefined };
      expect((await made.token(exchange(code, fields))).status).toBe(200);
    }
  });

  // evidence: redirect-uri-query
  test('the authorization code flow keeps the query of a registered redirect URI', async () => {
    const redirect_uri = 'https://console.example/other?tab=1';
    const made = await lab();
    const browser = browserOf(made);
    const login = await browser.open(authorize({ redirect_uri }));
    const consent = await browser.submit(login, credentials());
    expect(responseOf(await browser.submit(consent, { decision: 'deny' }), redirect_uri)).toMatchObject({
      tab: '1',
      error: 'access_denied',
    });
    await allRecorded();
    expect(made.events.at(-1)?.annotations).toMatchObject({ 'oauth.platform.io/authorization': 'Refused' });
  });

  // evidence: authorize-post
  test('the authorization code flow can start with a form that the client submits', async () => {
    const browser = browserOf(await lab());
    const { headers } = await browser.open('/oauth/authorize');
    expect(headers['content-type']).toMatch(/html/);
    const page = await browser.send('/oauth/authorize', base as Record<string, string>, {
      'sec-fetch-site': 'cross-site',
    });
    expect(formIn(page.text).action).toBe('/oauth/login');
  });
});

describe('an authorization request', () => {
  // evidence: redirect-uri-refused
  test.each<[string, Fields]>([
    ['no client', { client_id: undefined }],
    ['an unknown client', { client_id: 'nobody' }],
    ['no redirect_uri', { redirect_uri: undefined }],
    ['another host', { redirect_uri: 'https://evil.example/callback' }],
    ['a longer path', { redirect_uri: `${redirectURI}/x` }],
    ['a shorter path', { redirect_uri: 'https://console.example/' }],
    ['user info in the URI', { redirect_uri: 'https://console.example@evil.example/callback' }],
    ['capital letters in the URI', { redirect_uri: 'https://CONSOLE.example/callback' }],
    ['a port', { redirect_uri: 'https://console.example:444/callback' }],
    ['a fragment', { redirect_uri: `${redirectURI}#x` }],
    ['a query', { redirect_uri: `${redirectURI}?x=1` }],
    ['a line break', { redirect_uri: `${redirectURI}\r\nx: y` }],
    ['a script', { redirect_uri: 'javascript:alert(1)' }],
    ['loopback with another path', { client_id: 'platform-cli', redirect_uri: 'http://127.0.0.1:1/other' }],
    ['loopback with a longer path', { client_id: 'platform-cli', redirect_uri: 'http://127.0.0.1:1/callback/x' }],
    ['loopback with a longer name', { client_id: 'platform-cli', redirect_uri: 'http://127.0.0.1:1/callbackx' }],
    ['loopback with a shorter path', { client_id: 'platform-cli', redirect_uri: 'http://127.0.0.1:1/call' }],
    ['loopback with a query', { client_id: 'platform-cli', redirect_uri: 'http://127.0.0.1:1/callback?x=1' }],
    ['loopback with a fragment', { client_id: 'platform-cli', redirect_uri: 'http://127.0.0.1:1/callback#x' }],
    ['the name localhost', { client_id: 'platform-cli', redirect_uri: 'http://localhost:1/callback' }],
    ['loopback as user info', { client_id: 'platform-cli', redirect_uri: 'http://127.0.0.1:1@evil.example/callback' }],
    ['an invalid port', { client_id: 'platform-cli', redirect_uri: 'http://127.0.0.1:65536/callback' }],
    ['an invalid port of an IPv6 address', { client_id: 'platform-cli', redirect_uri: 'http://[::1]:99999/callback' }],
    ['the built-in client of the pages', { client_id: 'platform-pages' }],
  ])(
    'an authorization request with an invalid client or redirect URI gets an error page instead of a redirect: %s',
    async (_, fields) => {
      const browser = browserOf(await lab());
      await codeOf(browser);
      const response = await browser.open(authorize(fields));
      expect(response.status).toBe(400);
      expect(response.headers['location']).toBeUndefined();
      expect(response.headers['content-type']).toBe('text/html; charset=utf-8');
      expect(response.text).toContain('role="alert"');
    },
  );

  // evidence: redirect-uri-repeated
  test('an authorization request with two redirect URIs gets an error page instead of a redirect', async () => {
    const response = await browserOf(await lab()).open(
      `${authorize()}&redirect_uri=${encodeURIComponent(redirectURI)}`,
    );
    expect(response.status).toBe(400);
  });

  // evidence: authorize-errors
  test.each<[string, Fields, string]>([
    ['no response_type', { response_type: undefined }, 'invalid_request'],
    ['the implicit flow', { response_type: 'token' }, 'unsupported_response_type'],
    ['the hybrid flow', { response_type: 'code id_token' }, 'unsupported_response_type'],
    ['no PKCE', { code_challenge: undefined, code_challenge_method: undefined }, 'invalid_request'],
    ['PKCE with the method plain', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['PKCE without a method', { code_challenge_method: undefined }, 'invalid_request'],
    ['an invalid challenge', { code_challenge: 'short' }, 'invalid_request'],
    ['a client without the grant', { client_id: 'grantless' }, 'unauthorized_client'],
    ['a request object', { request: 'e30.e30.' }, 'request_not_supported'],
    ['a request_uri', { request_uri: 'https://console.example/r' }, 'request_uri_not_supported'],
    ['another response_mode', { response_mode: 'fragment' }, 'invalid_request'],
    ['an invalid scope', { scope: 'a"b' }, 'invalid_scope'],
    ['an unknown scope', { scope: 'everything' }, 'invalid_scope'],
    ['an invalid prompt', { prompt: 'none login' }, 'invalid_request'],
    ['an unknown prompt', { prompt: 'sing' }, 'invalid_request'],
    ['an invalid max_age', { max_age: '-1' }, 'invalid_request'],
    ['a resource that is not listed', { resource: 'https://files.example' }, 'invalid_target'],
    ['a long nonce', { nonce: 'n'.repeat(513) }, 'invalid_request'],
    ['prompt=none without a login', { prompt: 'none' }, 'login_required'],
  ])('the error for an authorization request with %s is redirected to the client', async (_, fields, error) => {
    const response = responseOf(await browserOf(await lab()).open(authorize(fields)));
    expect(response).toEqual({ error, error_description: expect.any(String), state: 'a state/&=+', iss: issuer });
  });

  test('an authorization request without PKCE gets an error that names the settings of client programs', async () => {
    const { error_description: description } = responseOf(
      await browserOf(await lab()).open(authorize({ code_challenge: undefined, code_challenge_method: undefined })),
    );
    for (const setting of ['--oidc-pkce-method=S256', '-oidc-use-pkce', '--code-challenge-method=S256', 'use_pkce'])
      expect(description).toContain(setting);
  });

  // evidence: authorize-repeated-parameter
  test('the error for an authorization request that repeats a parameter is redirected to the client', async () => {
    const response = await browserOf(await lab()).open(`${authorize()}&scope=email`);
    expect(responseOf(response)).toMatchObject({
      error: 'invalid_request',
      error_description: expect.stringContaining('scope'),
    });
  });

  // evidence: authorize-error-characters
  test.each<[string, Fields]>([
    ['quotation marks', { response_type: 'token' }],
    ['text of the client', { 'ä"\\\n': 'x' }],
  ])(
    'the error for an authorization request with %s contains only characters that RFC 6749 allows',
    async (_, fields) => {
      const { error_description } = responseOf(
        await browserOf(await lab()).open(`${authorize(fields)}&${queryOf({ ...fields, scope: 'email' })}`),
      );
      expect(error_description).toMatch(/^[\x20\x21\x23-\x5b\x5d-\x7e]+$/);
    },
  );

  // evidence: authorize-unknown-parameters
  test('an authorization request with unknown parameters is accepted, and parameters without a value count as omitted', async () => {
    const browser = browserOf(await lab());
    await codeOf(browser);
    const fields = { unknown: 'x', resource: '', state: '', nonce: '', prompt: '', max_age: '' };
    expect(responseOf(await browser.open(authorize(fields)))).toEqual({ code: expect.any(String), iss: issuer });
  });

  test('an authorization request with prompt=none requires no interaction after the user has logged in and consented', async () => {
    const browser = browserOf(await lab());
    const login = await browser.open(authorize());
    await browser.submit(login, credentials());
    expect(responseOf(await browser.open(authorize({ prompt: 'none' })))).toMatchObject({ error: 'consent_required' });
    await browser.submit(await browser.open(authorize()), { decision: 'allow' });
    expect(responseOf(await browser.open(authorize({ prompt: 'none' })))).toHaveProperty('code');
  });

  test.each<[string, Fields]>([
    ['prompt=login', { prompt: 'login' }],
    ['prompt=select_account', { prompt: 'select_account' }],
    ['max_age=0', { max_age: '0' }],
    ['a max_age that the login exceeds', { max_age: '60' }],
  ])('an authorization request with %s makes the user log in again exactly once', async (_, fields) => {
    const made = await lab();
    const browser = browserOf(made);
    await codeOf(browser);
    const before = browser.cookies.get('__Host-platform-login');
    await made.clock.advance(61 * second);
    const login = await browser.open(authorize(fields));
    expect(formIn(login.text).action).toBe('/oauth/login');
    expect((await browser.submit(login, credentials())).text).toContain('value="allow"');
    expect(browser.cookies.get('__Host-platform-login')).not.toBe(before);
    browser.cookies.set('__Host-platform-login', before ?? '');
    expect(formIn((await browser.open(authorize())).text).action).toBe('/oauth/login');
  });

  test.each([
    [60, 60, 'code'],
    [60, 61, 'login'],
    [undefined, 3_600, 'code'],
  ])(
    'an authorization request with max_age=%s, %d seconds after the login, results in a %s',
    async (maxAge, seconds, next) => {
      const made = await lab();
      const browser = browserOf(made);
      await codeOf(browser);
      await made.clock.advance(seconds * second);
      const response = await browser.open(authorize(maxAge === undefined ? {} : { max_age: String(maxAge) }));
      expect(response.status === 303 ? 'code' : 'login').toBe(next);
    },
  );

  test.each(['1x', '1'.repeat(10)])(
    'the error for an authorization request with the invalid max_age=%s is redirected to the client',
    async (max_age) => {
      const response = await browserOf(await lab()).open(authorize({ max_age }));
      expect(responseOf(response)).toMatchObject({ error: 'invalid_request' });
    },
  );

  test('an authorization request with a nonce of 512 characters is accepted', async () => {
    expect((await browserOf(await lab()).open(authorize({ nonce: 'n'.repeat(512) }))).status).toBe(200);
  });

  test('an authorization request while the cluster does not respond causes a redirect with an error that has no internal details', async () => {
    const made = await lab();
    const browser = browserOf(made);
    await codeOf(browser);
    made.client.before = () => {
      throw unreachable(new Error('the socket hung up'));
    };
    expect(responseOf(await browser.open(authorize()))).toMatchObject({ error: 'temporarily_unavailable' });
  });
});

describe('an authorization code', () => {
  // evidence: code-replay
  test('reuse of an authorization code revokes the session that the first use started', async () => {
    const made = await lab();
    const code = await codeOf(browserOf(made));
    const tokens = (await made.token(exchange(code))).json();
    expectRefused(await made.token(exchange(code)), 'invalid_grant');
    const refresh = {
      grant_type: 'refresh_token',
      refresh_token: String(tokens['refresh_token']),
      client_id: 'console',
      client_secret: 'console',
    };
    expectRefused(await made.token(refresh), 'invalid_grant');
    expect(await made.accessTokens.validate(String(tokens['access_token']))).toBeUndefined();
  });

  // evidence: code-once-concurrent
  test('an authorization code is valid once, even with concurrent requests', async () => {
    const made = await lab();
    const code = await codeOf(browserOf(made));
    const responses = await Promise.all(Array.from({ length: 5 }, () => made.token(exchange(code))));
    expect(responses.filter(({ status }) => status === 200).length).toBe(1);
  });

  // evidence: code-binding
  test.each<[string, Fields]>([
    ['another verifier', { code_verifier: 'x'.repeat(43) }],
    ['another redirect_uri', { redirect_uri: 'https://console.example/other?tab=1' }],
    ['another client', { client_id: 'ours', client_secret: 'ours' }],
  ])(
    'an authorization code in a token request with %s is rejected, and stays valid for the right request',
    async (_, fields) => {
      const made = await lab();
      const code = await codeOf(browserOf(made));
      expectRefused(await made.token(exchange(code, fields)), 'invalid_grant');
      expect((await made.token(exchange(code))).status).toBe(200);
    },
  );

  // evidence: code-request-incomplete
  test.each<[string, Fields, RegExp]>([
    ['no code', { code: undefined }, /"code" is missing|'code' is missing/],
    ['no redirect_uri', { redirect_uri: undefined }, /redirect_uri/],
    ['no verifier', { code_verifier: undefined }, /code_verifier/],
    ['a short verifier', { code_verifier: 'x'.repeat(42) }, /43 to 128/],
  ])('a token request with %s is rejected with an error that names the problem', async (_, fields, description) => {
    const made = await lab();
    const response = await made.token(exchange('x', fields));
    expectRefused(response, 'invalid_request');
    expect(response.json()['error_description']).toMatch(description);
  });

  // evidence: code-expiry
  test('an authorization code is valid for one minute, and not after its user is disabled', async () => {
    const made = await lab();
    const browser = browserOf(made);
    const code = await codeOf(browser);
    await made.clock.advance(60 * second);
    expectRefused(await made.token(exchange(code)), 'invalid_grant');
    const next = responseOf(await browser.open(authorize()))['code'] ?? '';
    made.configure({ clients, users: [{ username: 'alice', state: 'Disabled' }] });
    expectRefused(await made.token(exchange(next)), 'invalid_grant');
  });

  // evidence: password-change-code
  test('an authorization code cannot be exchanged for tokens of other audiences while its user must change the password', async () => {
    const made = await lab();
    await made.putUser('carol');
    const browser = browserOf(made);
    const page = await browser.open(authorize({ client_id: 'ours', scope: 'openid' }));
    const { code = '' } = responseOf(await browser.submit(page, credentials('carol')));
    await made.putUser('carol', { passwordChangeRequired: true });
    const asOurs = { client_id: 'ours', client_secret: 'ours' };
    expectRefused(await made.token(exchange(code, { ...asOurs, audience: 'kubernetes' })), 'invalid_target');
    const own = await made.token(exchange(code, asOurs));
    expect(own.status).toBe(200);
    expect(own.json()).not.toHaveProperty('id_token');
  });

  // evidence: code-ends-with-login
  test('an authorization code is no longer valid after its login is revoked, even if both happen at the same moment', async () => {
    const made = await lab();
    const browser = browserOf(made);
    const code = await codeOf(browser);
    await browser.submit(await browser.open('/oauth/logout'), {});
    expectRefused(await made.token(exchange(code)), 'invalid_grant');
    const again = browserOf(made);
    await codeOf(again);
    // The login session is revoked after it was checked, and before the code is stored.
    made.client.before = async ({ method }) => {
      if (method !== 'POST') return;
      made.client.before = () => undefined;
      await Promise.all(made.sessions.ofUser(aliceOf(made)).map(({ metadata }) => made.sessions.revoke(metadata.name)));
    };
    const late = responseOf(await again.open(authorize()))['code'] ?? '';
    expect(made.sessions.ofUser(aliceOf(made))).toEqual([]);
    expectRefused(await made.token(exchange(late)), 'invalid_grant');
  });

  // evidence: code-as-refresh-token
  test('an authorization code is not accepted as a refresh token or access token, and a refresh token is not accepted as a code', async () => {
    const made = await lab();
    const browser = browserOf(made);
    const code = await codeOf(browser);
    const client = { client_id: 'console', client_secret: 'console' };
    expectRefused(await made.token({ grant_type: 'refresh_token', refresh_token: code, ...client }), 'invalid_grant');
    expect(await made.accessTokens.validate(code)).toBeUndefined();
    const tokens = (await made.token(exchange(code))).json();
    expectRefused(await made.token(exchange(String(tokens['refresh_token']))), 'invalid_grant');
    expectRefused(
      await made.token({
        grant_type: 'refresh_token',
        refresh_token: browser.cookies.get('__Host-platform-login'),
        ...client,
      }),
      'invalid_grant',
    );
  });

  test('a refresh token in place of an authorization code is rejected, and the session of the refresh token stays valid', async () => {
    const made = await lab();
    const tokens = (await made.token(exchange(await codeOf(browserOf(made))))).json();
    const refreshToken = String(tokens['refresh_token']);
    expectRefused(await made.token(exchange(refreshToken)), 'invalid_grant');
    const refreshed = await made.token({
      grant_type: 'refresh_token',
      refresh_token: refreshToken,
      client_id: 'console',
      client_secret: 'console',
    });
    expect(refreshed.status).toBe(200);
  });

  // evidence: code-count-limit
  test('the number of authorization codes per login is limited', async () => {
    const made = await lab();
    const browser = browserOf(made);
    await codeOf(browser, { client_id: 'ours' });
    for (let count = 0; count < 40; count += 1) await browser.open(authorize({ client_id: 'ours' }));
    const pending = made.cluster
      .list('/apis/iam.platform.io/v1alpha2/namespaces/platform-system/sessions')
      .filter(({ status }) => (status as { phase: string }).phase === 'Pending');
    expect(pending.length).toBeLessThanOrEqual(20);
  });
});

describe('the login page', () => {
  // evidence: login-form-escaping
  test('the login page shows an error, and keeps the entered values except the password', async () => {
    const browser = browserOf(await lab());
    const login = await browser.open(authorize({ login_hint: '"><script>' }));
    expect(login.text).not.toContain('<script>');
    expect(formIn(login.text).fields['username']).toBe('"><script>');
    const response = await browser.submit(login, { username: 'alice', password: 'wrong-password' });
    expect(response.status).toBe(400);
    expect(response.text).toContain('Incorrect username or password.');
    expect(response.text).not.toContain('wrong-password');
    expect(formIn(response.text).fields).toMatchObject({ username: 'alice', password: '' });
    expect((await browser.submit(response, credentials())).text).toContain('value="allow"');
  });

  // evidence: page-login-limit
  test('a login on the login page after too many wrong passwords gets 429, even with the right password', async () => {
    const made = await lab();
    const browser = browserOf(made);
    const login = await browser.open(authorize());
    for (let count = 0; count < 5; count += 1) {
      await browser.submit(login, { username: 'alice', password: 'wrong' });
      await made.clock.advance(60 * second);
    }
    const response = await browser.submit(login, credentials());
    expect(response.status).toBe(429);
    expect(Number(response.headers['retry-after'])).toBeGreaterThan(0);
    expect(response.text).toContain('Too many failed logins');
  });

  test('the login page requires a user whose password change is due to change the password first', async () => {
    const made = await lab();
    await made.putUser('carol', { groups: ['c'], passwordChangeRequired: true });
    const browser = browserOf(made);
    const page = await browser.submit(await browser.open(authorize({ client_id: 'ours' })), credentials('carol'));
    expect(formIn(page.text).fields).toHaveProperty('new_password');
    expect(browser.cookies.has('__Host-platform-login')).toBe(false);
    const mistyped = await browser.submit(page, twice('a longer way to go', 'a longer way to g'));
    expect(mistyped.text).toContain('do not match');
    const refused = await browser.submit(mistyped, twice('password'));
    expect(refused.text).toContain('must not be one of the most common passwords');
    const response = await browser.submit(refused, twice('a longer way to go'));
    const { code = '' } = responseOf(response);
    const token = await made.token(exchange(code, { client_id: 'ours', client_secret: 'ours' }));
    expect(readJWT(String(token.json()['access_token'])).claims).toMatchObject({ username: 'carol', groups: ['c'] });
  });

  // evidence: login-csrf
  test.each([
    ['a browser without a form token', {}, {}],
    ['a browser with the form token of another browser', { form_token: 'A'.repeat(43) }, {}],
    ['a cross-site page', undefined, { 'sec-fetch-site': 'cross-site' }],
    ['a same-site page of another origin', undefined, { 'sec-fetch-site': 'same-site' }],
  ])('the login page rejects a form from %s', async (_, fields, headers) => {
    const made = await lab();
    const browser = browserOf(made);
    const page = formIn((await browser.open(authorize())).text).fields;
    const { form_token: token = '', ...rest } = page;
    const sent = { ...rest, ...credentials(), ...(fields ?? { form_token: token }) };
    const response = await browser.send('/oauth/login', sent, headers);
    expect(response.status).toBe(403);
    expect(browser.cookies.has('__Host-platform-login')).toBe(false);
  });

  // evidence: login-cookie-required
  test('the login page rejects a form from a browser without the form cookie, or with two form cookies', async () => {
    const made = await lab();
    const browser = browserOf(made);
    const page = await browser.open(authorize());
    const cookie = `__Host-platform-form=${browser.cookies.get('__Host-platform-form') ?? ''}`;
    for (const cookies of ['', `${cookie}; ${cookie}x`]) {
      const { fields } = formIn(page.text);
      const response = await browser.send('/oauth/login', { ...fields, ...credentials() }, { cookie: cookies });
      expect(response.status).toBe(403);
    }
  });

  // evidence: login-next-own-pages
  test.each([
    'https://evil.example/',
    '//evil.example/',
    'https://evil.example/oauth/device',
    '/oauth/authorize/../../x',
    '/\\evil.example',
    '/oauth/device\r\nx: y',
    '/kapis',
  ])('the login page does not redirect to %j', async (next) => {
    const browser = browserOf(await lab());
    const response = await browser.submit(await browser.open(authorize()), { ...credentials(), next });
    expect({ status: response.status, location: response.headers['location'] }).toEqual({
      status: 400,
      location: undefined,
    });
  });

  // evidence: login-cookie-attributes
  test('the login page sets a cookie that scripts, other hosts and other sites cannot access', async () => {
    const made = await lab();
    const browser = browserOf(made);
    const page = await browser.open(authorize());
    expect(page.headers['set-cookie']).toEqual([
      expect.stringMatching(/^__Host-platform-form=[\w-]{22}; Path=\/; Secure; HttpOnly; SameSite=Lax$/),
    ]);
    const { action, fields } = formIn(page.text);
    const response = await sendRequest(made.app, action, {
      method: 'POST',
      secure: true,
      body: new URLSearchParams({ ...fields, ...credentials() }).toString(),
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        cookie: [...browser.cookies].map((pair) => pair.join('=')).join('; '),
      },
    });
    expect(response.headers['set-cookie']).toEqual([
      expect.stringMatching(/^__Host-platform-login=[\w.-]+; Path=\/; Secure; HttpOnly; SameSite=Lax$/),
    ]);
  });

  // evidence: pages-tls-only
  test('the login page is served only over TLS', async () => {
    const response = await sendRequest((await lab()).app, authorize());
    expect(response.status).toBe(404);
    expect(response.json()['error_description']).toContain('https');
  });

  // evidence: page-headers
  test('the login page cannot be framed, runs no script and does not submit to other sites', async () => {
    const { headers, text } = await browserOf(await lab()).open(authorize());
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'x-frame-options': 'DENY',
      'referrer-policy': 'same-origin',
    });
    const policy = String(headers['content-security-policy']);
    expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-[\w+/=]+'; form-action 'self' https:; /);
    expect(policy).toContain("frame-ancestors 'none'");
    const [, style = ''] = /<style>(.*)<\/style>/s.exec(text) ?? [];
    expect(policy).toContain(createHash('sha256').update(style).digest('base64'));
  });
});

describe('the consent page', () => {
  test('the consent page shows the client, the scope and the target of the redirect', async () => {
    const browser = browserOf(await lab());
    const page = await browser.submit(await browser.open(authorize({ scope: 'openid groups' })), credentials());
    for (const text of ['<strong>alice</strong>', '<strong>console</strong>', 'See your groups', 'console.example'])
      expect(page.text).toContain(text);
  });

  test.each(['deny', 'x', ''])(
    'the consent page redirects to the client with access_denied for the decision %j',
    async (decision) => {
      const browser = browserOf(await lab());
      const page = await browser.submit(await browser.open(authorize()), credentials());
      expect(responseOf(await browser.submit(page, { decision }))).toMatchObject({ error: 'access_denied' });
    },
  );

  test('consent is stored for the same client and scope, in any order of the scope', async () => {
    const made = await lab();
    const browser = browserOf(made);
    await codeOf(browser);
    for (const scope of ['openid profile', 'profile openid'])
      await browser.submit(await browser.open(authorize({ prompt: 'consent', scope })), { decision: 'allow' });
    const logins = made.sessions.ofUser(aliceOf(made)).filter(({ spec }) => spec.clientID === 'platform-pages');
    expect(logins.map(({ status }) => status.consents)).toEqual([['console openid profile']]);
  });

  test('the consent page is shown after a changed configuration requires consent for the client', async () => {
    const made = await lab();
    const browser = browserOf(made);
    await codeOf(browser, { client_id: 'ours' });
    made.configure({ users, clients: clients.map((client) => ({ ...client, consent: true })) });
    expect((await browser.open(authorize({ client_id: 'ours' }))).text).toContain('value="allow"');
  });

  // evidence: consent-csrf
  test('the consent page accepts no cross-site consent, and no consent for an unregistered redirect URI', async () => {
    const browser = browserOf(await lab());
    const page = await browser.submit(await browser.open(authorize()), credentials());
    const { action, fields } = formIn(page.text);
    const forged = { request: fields['request'] ?? '', decision: 'allow' };
    expect((await browser.send(action, forged, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    const request = queryOf({ ...base, redirect_uri: 'https://evil.example/' });
    const response = await browser.submit(page, { request, decision: 'allow' });
    expect({ status: response.status, location: response.headers['location'] }).toEqual({
      status: 400,
      location: undefined,
    });
  });

  test('the consent page explains what to do when a browser opens it directly, for example with the back button', async () => {
    const browser = browserOf(await lab());
    const page = await browser.open('/oauth/consent');
    expect({ status: page.status, type: page.headers['content-type'] }).toEqual({
      status: 200,
      type: 'text/html; charset=utf-8',
    });
    expect(page.text).toContain('start again');
  });

  test('a consent leads to the login page if the user has logged out in the meantime', async () => {
    const browser = browserOf(await lab());
    const page = await browser.submit(await browser.open(authorize()), credentials());
    browser.cookies.delete('__Host-platform-login');
    expect(formIn((await browser.submit(page, { decision: 'allow' })).text).action).toBe('/oauth/login');
  });
});

test("a login revokes the user's other sessions if multipleLogin is disabled, and its own tokens stay valid", async () => {
  const made = await lab({ multipleLogin: false });
  const first = browserOf(made);
  const code = await codeOf(first);
  const tokens = (await made.token(exchange(code))).json();
  expect(await made.accessTokens.validate(String(tokens['access_token']))).toBeDefined();
  const elsewhere = browserOf(made);
  const other = (await made.token(exchange(await codeOf(elsewhere)))).json();
  expect(await made.accessTokens.validate(String(tokens['access_token']))).toBeUndefined();
  expect(await made.accessTokens.validate(String(other['access_token']))).toBeDefined();
  expect(formIn((await first.open(authorize())).text).action).toBe('/oauth/login');
});
