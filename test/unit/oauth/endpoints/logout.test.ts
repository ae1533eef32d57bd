/** Tests OpenID Connect RP-Initiated Logout 1.0. */
import { expect, test } from '@jest/globals';
import { createHash } from 'node:crypto';
import { sendRequest, type AppResponse } from '../../../fakes/request.ts';
import { Browser, formIn } from '../../../fakes/browser.ts';
import { rightPassword } from '../../../labs/accounts.ts';
import { createLab, type Lab } from '../../../labs/oauth.ts';

const redirectURI = 'https://console.example/callback';
const afterwards = 'https://console.example/bye';
const clients = ['console', 'other'].map((name) => ({
  name,
  secret: name,
  grantTypes: ['authorization_code'],
  redirectURIs: [redirectURI],
  postLogoutRedirectURIs: name === 'console' ? [afterwards] : [],
  consent: false,
}));
const users = [{ username: 'alice' }, { username: 'bob' }];
const verifier = 'v'.repeat(43);

interface LoggedIn {
  readonly made: Lab;
  readonly browser: Browser<AppResponse>;
  readonly identity: string;
  readonly access: string;
}

async function logIn(made: Lab, username = 'alice', client_id = 'console'): Promise<LoggedIn> {
  const browser = new Browser((path, options) => sendRequest(made.app, path, options));
  const request = new URLSearchParams({
    response_type: 'code',
    client_id,
    redirect_uri: redirectURI,
    scope: 'openid',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  });
  const login = await browser.open(`/oauth/authorize?${request.toString()}`);
  const response = await browser.submit(login, { username, password: rightPassword });
  const code = new URL(response.headers['location'] ?? '').searchParams.get('code') ?? '';
  const exchange = { grant_type: 'authorization_code', code, redirect_uri: redirectURI, code_verifier: verifier };
  const tokens = (await made.token({ ...exchange, client_id, client_secret: client_id })).json();
  return { made, browser, identity: String(tokens['id_token']), access: String(tokens['access_token']) };
}

const lab = (): Promise<Lab> => createLab({ clients, users });
const logout = (fields: Record<string, string>): string => `/oauth/logout?${new URLSearchParams(fields).toString()}`;
const isLoggedIn = async ({ browser }: LoggedIn): Promise<boolean> =>
  (await browser.open('/oauth/device')).text.includes('user_code');
const isAccepted = async ({ made, access }: LoggedIn): Promise<boolean> =>
  (await made.accessTokens.validate(access)) !== undefined;
const locationOf = ({ headers }: AppResponse): string | undefined => headers['location'];

test('a client can log its user out with the id_token, and the browser returns to the client', async () => {
  const all = await logIn(await lab());
  const fields = { id_token_hint: all.identity, post_logout_redirect_uri: afterwards, state: 's&1' };
  const cookie = all.browser.cookies.get('__Host-platform-login');
  const response = await all.browser.open(logout(fields));
  expect({ status: response.status, location: locationOf(response) }).toEqual({
    status: 303,
    location: `${afterwards}?state=s%261`,
  });
  expect(await isAccepted(all)).toBe(false);
  all.browser.cookies.set('__Host-platform-login', cookie ?? '');
  expect(await isLoggedIn(all)).toBe(false);
});

test('an expired id_token is accepted for a logout', async () => {
  const all = await logIn(await lab());
  await all.made.clock.advance(3 * 3_600_000);
  const response = await all.browser.open(logout({ id_token_hint: all.identity }));
  expect(response.text).toContain('You are logged out');
});

// evidence: logout-confirmation
test.each<[string, (all: LoggedIn, bob: LoggedIn) => Record<string, string>]>([
  ['no parameters', () => ({})],
  ['only the name of the client', () => ({ client_id: 'console', post_logout_redirect_uri: afterwards })],
  ['the id_token of another user', (_, bob) => ({ id_token_hint: bob.identity })],
])('a logout with %s requires confirmation by the user', async (_, fieldsOf) => {
  const made = await lab();
  const all = await logIn(made);
  const bob = await logIn(made, 'bob');
  const confirmPage = await all.browser.open(logout(fieldsOf(all, bob)));
  expect(confirmPage.text).toContain('Log out?');
  expect(await isLoggedIn(all)).toBe(true);
  const { action, fields } = formIn(confirmPage.text);
  const forged = { request: fields['request'] ?? '' };
  expect((await all.browser.send(action, forged, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
  expect(await isLoggedIn(all)).toBe(true);
  const response = await all.browser.submit(confirmPage, {});
  expect(response.status === 303 ? locationOf(response) : response.text).toContain(
    'post_logout_redirect_uri' in fieldsOf(all, bob) ? afterwards : 'You are logged out',
  );
  expect(await isLoggedIn(all)).toBe(false);
  expect(await isAccepted(bob)).toBe(true);
});

// evidence: logout-redirect
test.each<[string, Record<string, string>]>([
  ['an unregistered redirect URI', { client_id: 'console', post_logout_redirect_uri: 'https://evil.example/' }],
  ['a redirect URI of another client', { client_id: 'other', post_logout_redirect_uri: afterwards }],
  ['a redirect URI for logins', { client_id: 'console', post_logout_redirect_uri: redirectURI }],
  ['a redirect URI without a client', { post_logout_redirect_uri: afterwards }],
  ['an invalid id_token', { id_token_hint: 'x.y.z' }],
])('a logout with %s is rejected without a redirect', async (_, fields) => {
  const all = await logIn(await lab());
  const response = await all.browser.open(logout(fields));
  expect({ status: response.status, location: locationOf(response) }).toEqual({ status: 400, location: undefined });
  expect(await isLoggedIn(all)).toBe(true);
});

test('an access token, or an id_token of a client other than the one in client_id, is not accepted as a logout hint', async () => {
  const all = await logIn(await lab());
  expect((await all.browser.open(logout({ id_token_hint: all.access }))).status).toBe(400);
  expect((await all.browser.open(logout({ id_token_hint: all.identity, client_id: 'other' }))).status).toBe(400);
  expect(await isAccepted(all)).toBe(true);
});

test('the logout confirmation page does not log the user out when it is opened directly', async () => {
  const all = await logIn(await lab());
  const confirmPage = await all.browser.open('/oauth/logout/confirm');
  expect(confirmPage.text).toContain('Log out?');
  expect(await isLoggedIn(all)).toBe(true);
});

test('an id_token without the login cookie does not log the user out', async () => {
  const all = await logIn(await lab());
  const stranger = new Browser((path, options) => sendRequest(all.made.app, path, options));
  const response = await stranger.open(logout({ id_token_hint: all.identity, post_logout_redirect_uri: afterwards }));
  expect(locationOf(response)).toBe(afterwards);
  expect(await isAccepted(all)).toBe(true);
  expect(await isLoggedIn(all)).toBe(true);
});
