/** Attacks that involve more than one endpoint; docs/internals/oauth-rfcs.md lists all attacks and their tests. */
import { describe, expect, test } from '@jest/globals';
import { createHash, randomBytes } from 'node:crypto';
import { platformToken } from '../../../../src/auth/authenticators/index.ts';
import { registry } from '../../../../src/runtime/metrics/registry.ts';
import type { Logger } from '../../../../src/runtime/logger.ts';
import { allRecorded } from '../../../../src/http/records.ts';
import { sendRequest, type AppResponse } from '../../../fakes/request.ts';
import { Browser, formIn } from '../../../fakes/browser.ts';
import { issuer } from '../../../fakes/configuration.ts';
import { readJWT } from '../../../fakes/jwt.ts';
import { logOfLines } from '../../../fakes/log.ts';
import { rightPassword } from '../../../labs/accounts.ts';
import { createLab, type Fields, type Lab } from '../../../labs/oauth.ts';

const redirectURI = 'https://console.example/callback';
const afterwards = 'https://console.example/bye';
const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code';
const clientSecret = 'the-secret-of-the-console';
const clients = [
  {
    name: 'console',
    secret: clientSecret,
    grantTypes: ['password', 'authorization_code', 'refresh_token', deviceGrant],
    redirectURIs: [redirectURI],
    postLogoutRedirectURIs: [afterwards],
  },
];
const asConsole = { client_id: 'console', client_secret: clientSecret };
const users = [{ username: 'alice', groups: ['a'] }, { username: 'bob' }];
const loginCookie = '__Host-platform-login';
const formCookie = '__Host-platform-form';
const verifier = randomBytes(32).toString('base64url');
const challenge = createHash('sha256').update(verifier).digest('base64url');

const lab = (log?: Logger): Promise<Lab> => createLab({ clients, users }, { log });
const browserOf = ({ app }: Lab): Browser<AppResponse> =>
  new Browser((path, options) => sendRequest(app, path, options));
const credentials = (username: string): Record<string, string> => ({ username, password: rightPassword });

const request = {
  response_type: 'code',
  client_id: 'console',
  redirect_uri: redirectURI,
  scope: 'openid groups',
  code_challenge: challenge,
  code_challenge_method: 'S256',
};
const authorize = (fields: Record<string, string> = {}): string =>
  `/oauth/authorize?${new URLSearchParams({ ...request, ...fields }).toString()}`;

/** Logs a user in to the console, starting at the login page, and returns the authorization code. */
async function codeOf(browser: Browser<AppResponse>, username = 'alice'): Promise<string> {
  const consent = await browser.submit(await browser.open(authorize()), credentials(username));
  const { headers } = await browser.submit(consent, { decision: 'allow' });
  return new URL(headers['location'] ?? '').searchParams.get('code') ?? '';
}

const exchange = (code: string, fields: Fields = {}): Fields => ({
  grant_type: 'authorization_code',
  code,
  redirect_uri: redirectURI,
  code_verifier: verifier,
  ...asConsole,
  ...fields,
});

const passwordGrant = { grant_type: 'password', ...credentials('alice'), scope: 'openid groups', ...asConsole };
const errorOf = (response: AppResponse): string => `${response.status} ${String(response.json()['error'])}`;

describe('session fixation', () => {
  // evidence: login-cookie-planted
  test('a login session planted by an attacker is replaced when the user logs in', async () => {
    const made = await lab();
    const stranger = browserOf(made);
    await codeOf(stranger, 'bob');
    const planted = stranger.cookies.get(loginCookie) ?? '';
    const victim = browserOf(made);
    for (const [name, value] of stranger.cookies) victim.cookies.set(name, value);
    await victim.submit(await victim.open(authorize({ prompt: 'login' })), credentials('alice'));
    expect(victim.cookies.get(loginCookie)).not.toBe(planted);
    // The planted cookie is no longer valid for any user.
    expect(formIn((await stranger.open(authorize())).text).action).toBe('/oauth/login');
    expect((await victim.open(authorize({ prompt: 'consent' }))).text).toContain('<strong>alice</strong>');
  });

  // evidence: login-cookie-invented
  test('a login with a cookie that this server never issued does not make the cookie valid', async () => {
    const made = await lab();
    const victim = browserOf(made);
    const planted = `${'a'.repeat(32)}.${'A'.repeat(43)}.${'A'.repeat(22)}`;
    victim.cookies.set(loginCookie, planted);
    await victim.submit(await victim.open(authorize()), credentials('alice'));
    const given = victim.cookies.get(loginCookie) ?? '';
    expect(given.slice(0, 32)).not.toBe(planted.slice(0, 32));
    const stranger = browserOf(made);
    stranger.cookies.set(loginCookie, planted);
    expect(formIn((await stranger.open(authorize())).text).action).toBe('/oauth/login');
  });
});

// evidence: other-tokens-as-bearer
test('tokens, codes and cookies other than access tokens of this server are rejected as bearer tokens', async () => {
  const made = await lab();
  const browser = browserOf(made);
  const code = await codeOf(browser);
  const device = (await made.post('/oauth/device_authorization', asConsole)).json();
  const { access_token, refresh_token, id_token } = (await made.token(passwordGrant)).json();
  const forOthers = (await made.token({ ...passwordGrant, audience: 'kubernetes' })).json()['access_token'];
  made.cluster.respond('/apis/authentication.k8s.io/v1/tokenreviews', () => ({ status: { authenticated: false } }));
  const authenticate = made.gatewayAuthentication;
  const validate = async (token: unknown): Promise<unknown> =>
    await authenticate(
      { headers: { authorization: `Bearer ${String(token)}` }, rawHeaders: [] as string[] } as Parameters<
        typeof authenticate
      >[0],
      '192.0.2.1',
    );
  expect(await validate(access_token)).toMatchObject({ username: 'alice' });
  const others = [refresh_token, id_token, code, device['device_code'], browser.cookies.get(loginCookie), forOthers];
  for (const token of others) await expect(validate(token)).rejects.toMatchObject({ code: 401 });
});

// evidence: token-groups-ignored
test('groups in a token are ignored if the user does not have them, even if the signature of the token is valid', async () => {
  const made = await lab();
  const token = String((await made.token(passwordGrant)).json()['access_token']);
  const valid = await made.accessTokens.validate(token);
  if (valid === undefined) throw new Error('alice is not logged in');
  const { session, subject } = valid;
  const groups = ['platform:admins', 'system:masters'];
  const forged = made.tokens.issueAccess(session, { ...subject, groups }, 'openid groups').token;
  expect(readJWT(forged).claims['groups']).toEqual(groups);
  expect(await platformToken(made.accessTokens)(forged, '')).toMatchObject({ groups: ['a', 'system:authenticated'] });
  expect((await made.post('/oauth/introspect', { token: forged, ...asConsole })).json()['groups']).toEqual(['a']);
  const userinfo = await sendRequest(made.app, '/oauth/userinfo', { headers: { authorization: `Bearer ${forged}` } });
  expect(userinfo.json()['groups']).toEqual(['a']);
});

// evidence: pkce-challenge-as-verifier
test('the code challenge itself is not accepted as the code_verifier, even if the token request names the method "plain"', async () => {
  const made = await lab();
  const code = await codeOf(browserOf(made));
  const downgrade = exchange(code, { code_verifier: challenge, code_challenge_method: 'plain' });
  expect(errorOf(await made.token(downgrade))).toBe('400 invalid_grant');
  expect((await made.token(exchange(code))).status).toBe(200);
});

// evidence: redirect-uri-lookalikes
test.each([
  'https://console.example/callback/',
  'https://console.example/callback/../callback',
  'https://console.example/x/../callback',
  'https://console.example/%63allback',
  'https://console.example./callback',
  'https://console.example:443/callback',
  'https://console.example\\@evil.example/callback',
  'https://evil.example/?https://console.example/callback',
  'https://console.example.evil.example/callback',
  'HTTPS://console.example/callback',
  'http://console.example/callback',
  '//console.example/callback',
  'https://console.example/callback\0',
  ' https://console.example/callback',
])('a redirect_uri that only resembles the registered redirect URI is rejected: %j', async (redirect_uri) => {
  const response = await browserOf(await lab()).open(authorize({ redirect_uri }));
  expect({ status: response.status, location: response.headers['location'] }).toEqual({
    status: 400,
    location: undefined,
  });
});

// evidence: secrets-not-in-logs
test('the log and the metrics contain no code, cookie, token, password or client secret of any flow', async () => {
  const { log, lines } = logOfLines();
  const made = await lab(log);
  const browser = browserOf(made);
  const wrong = 'a-password-that-is-wrong';
  const login = await browser.open(authorize({ nonce: 'n-1', state: 's-1' }));
  const { form_token: formToken = '' } = formIn(login.text).fields;
  await browser.submit(login, { ...credentials('alice'), password: wrong });
  // The user types a password into the username field.
  const misplaced = 'my-password-in-the-wrong-field';
  await browser.submit(login, { ...credentials('alice'), username: misplaced });
  const code = await codeOf(browser);
  const tokens = (await made.token(exchange(code))).json();
  // The server rejects and logs the reused code.
  await made.token(exchange(code));
  await made.token(exchange(code, { client_secret: 'a-client-secret-that-is-wrong' }));
  await sendRequest(made.app, `/oauth/token?code=${code}&code_verifier=${verifier}&client_secret=${clientSecret}`);
  const device = (await made.post('/oauth/device_authorization', { ...asConsole, scope: 'openid' })).json();
  const [deviceCode, userCode] = [String(device['device_code']), String(device['user_code'])];
  await browser.submit(await browser.open(`/oauth/device?user_code=BBBB-BBBB`), { user_code: 'BBBB-BBBB' });
  const consentPage = await browser.submit(await browser.open(`/oauth/device?user_code=${userCode}`), {});
  await browser.submit(consentPage, { decision: 'allow' });
  const ofDevice = (await made.token({ grant_type: deviceGrant, device_code: deviceCode, ...asConsole })).json();
  const cookies = [browser.cookies.get(loginCookie), browser.cookies.get(formCookie)];
  await sendRequest(made.app, `/oauth/userinfo?access_token=${String(tokens['access_token'])}`);
  await made.post('/oauth/introspect', { token: String(ofDevice['access_token']), ...asConsole });
  await made.post('/oauth/revoke', { token: String(ofDevice['refresh_token']), ...asConsole });
  const logout = new URLSearchParams({
    id_token_hint: String(tokens['id_token']),
    post_logout_redirect_uri: afterwards,
  });
  expect((await browser.open(`/oauth/logout?${logout.toString()}`)).status).toBe(303);
  const given = [tokens, ofDevice].flatMap((one) => [one['access_token'], one['refresh_token'], one['id_token']]);
  const secrets = [
    code,
    deviceCode,
    userCode,
    ...cookies,
    ...given,
    formToken,
    verifier,
    clientSecret,
    wrong,
    misplaced,
  ].map(String);
  // Every secret has a value, so the search below is meaningful.
  for (const secret of secrets) expect(secret).toMatch(/^[\w.-]{9,}$/);
  await allRecorded();
  const written = lines().join('\n');
  for (const message of [
    'login failed',
    'client authorized',
    'authorization code refused',
    'device authorized',
    'logout',
  ])
    expect(written).toContain(`"message":"${message}"`);
  const seen = `${written}\n${await registry.metrics()}`;
  for (const secret of [...secrets, rightPassword, 'a-client-secret-that-is-wrong'])
    for (const shape of [secret, encodeURIComponent(secret), secret.replace('-', '')])
      expect(seen).not.toContain(shape);
});

// evidence: issuer-in-response
test('each authorization response contains the issuer of the metadata, so that clients can distinguish several servers', async () => {
  const made = await lab();
  const named = (await sendRequest(made.app, '/.well-known/oauth-authorization-server')).json()['issuer'];
  const browser = browserOf(made);
  const consent = await browser.submit(await browser.open(authorize()), credentials('alice'));
  const responses = [
    await browser.submit(consent, { decision: 'deny' }),
    await browser.submit(consent, { decision: 'allow' }),
    await browser.open(authorize({ response_type: 'token' })),
  ];
  const parameters = responses.map(({ headers }) => new URL(headers['location'] ?? '').searchParams);
  expect(parameters.map((one) => one.get('iss'))).toEqual([named, named, named]);
  expect(parameters.map((one) => one.get('code') !== null)).toEqual([false, true, false]);
  expect(named).toBe(issuer);
});
