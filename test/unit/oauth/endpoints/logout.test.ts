/** OpenID Connect RP-Initiated Logout 1.0. */
import { expect, test } from '@jest/globals';
import { createHash } from 'node:crypto';
import { ask, type Answer } from '../../../fakes/ask.ts';
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
  readonly browser: Browser<Answer>;
  readonly identity: string;
  readonly access: string;
}

async function logIn(made: Lab, username = 'alice', client_id = 'console'): Promise<LoggedIn> {
  const browser = new Browser((path, options) => ask(made.app, path, options));
  const request = new URLSearchParams({
    response_type: 'code',
    client_id,
    redirect_uri: redirectURI,
    scope: 'openid',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  });
  const login = await browser.open(`/oauth/authorize?${request.toString()}`);
  const answer = await browser.submit(login, { username, password: rightPassword });
  const code = new URL(answer.headers['location'] ?? '').searchParams.get('code') ?? '';
  const exchange = { grant_type: 'authorization_code', code, redirect_uri: redirectURI, code_verifier: verifier };
  const tokens = (await made.token({ ...exchange, client_id, client_secret: client_id })).json();
  return { made, browser, identity: String(tokens['id_token']), access: String(tokens['access_token']) };
}

const lab = (): Promise<Lab> => createLab({ clients, users });
const logout = (fields: Record<string, string>): string => `/oauth/logout?${new URLSearchParams(fields).toString()}`;
const isLoggedIn = async ({ browser }: LoggedIn): Promise<boolean> =>
  (await browser.open('/oauth/device')).text.includes('user_code');
const stands = async ({ made, access }: LoggedIn): Promise<boolean> =>
  (await made.accessTokens.judge(access)) !== undefined;
const locationOf = ({ headers }: Answer): string | undefined => headers['location'];

test('a client that shows its id_token logs its user out, and gets them back', async () => {
  const all = await logIn(await lab());
  const fields = { id_token_hint: all.identity, post_logout_redirect_uri: afterwards, state: 's&1' };
  const cookie = all.browser.cookies.get('__Host-platform-login');
  const answer = await all.browser.open(logout(fields));
  expect({ status: answer.status, location: locationOf(answer) }).toEqual({
    status: 303,
    location: `${afterwards}?state=s%261`,
  });
  expect(await stands(all)).toBe(false);
  all.browser.cookies.set('__Host-platform-login', cookie ?? '');
  expect(await isLoggedIn(all)).toBe(false);
});

test('an id_token that has expired does as well', async () => {
  const all = await logIn(await lab());
  await all.made.clock.advance(3 * 3_600_000);
  const answer = await all.browser.open(logout({ id_token_hint: all.identity }));
  expect(answer.text).toContain('You are logged out');
});

// evidence: logout-confirmation
test.each<[string, (all: LoggedIn, bob: LoggedIn) => Record<string, string>]>([
  ['nothing', () => ({})],
  ['its name alone', () => ({ client_id: 'console', post_logout_redirect_uri: afterwards })],
  ['the id_token of another user', (_, bob) => ({ id_token_hint: bob.identity })],
])('a client that shows %s has the user asked', async (_, fieldsOf) => {
  const made = await lab();
  const all = await logIn(made);
  const bob = await logIn(made, 'bob');
  const question = await all.browser.open(logout(fieldsOf(all, bob)));
  expect(question.text).toContain('Log out?');
  expect(await isLoggedIn(all)).toBe(true);
  const { action, fields } = formIn(question.text);
  const forged = { request: fields['request'] ?? '' };
  expect((await all.browser.send(action, forged, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
  expect(await isLoggedIn(all)).toBe(true);
  const answer = await all.browser.submit(question, {});
  expect(answer.status === 303 ? locationOf(answer) : answer.text).toContain(
    'post_logout_redirect_uri' in fieldsOf(all, bob) ? afterwards : 'You are logged out',
  );
  expect(await isLoggedIn(all)).toBe(false);
  expect(await stands(bob)).toBe(true);
});

// evidence: logout-redirect
test.each<[string, Record<string, string>]>([
  ['an address that is not registered', { client_id: 'console', post_logout_redirect_uri: 'https://evil.example/' }],
  ['an address of another client', { client_id: 'other', post_logout_redirect_uri: afterwards }],
  ['an address for logins', { client_id: 'console', post_logout_redirect_uri: redirectURI }],
  ['an address and no client', { post_logout_redirect_uri: afterwards }],
  ['what is no id_token', { id_token_hint: 'x.y.z' }],
])('%s is refused, and leads nowhere', async (_, fields) => {
  const all = await logIn(await lab());
  const answer = await all.browser.open(logout(fields));
  expect({ status: answer.status, location: locationOf(answer) }).toEqual({ status: 400, location: undefined });
  expect(await isLoggedIn(all)).toBe(true);
});

test('an access token, and the id_token of another client than the one named, are no hints', async () => {
  const all = await logIn(await lab());
  expect((await all.browser.open(logout({ id_token_hint: all.access }))).status).toBe(400);
  expect((await all.browser.open(logout({ id_token_hint: all.identity, client_id: 'other' }))).status).toBe(400);
  expect(await stands(all)).toBe(true);
});

test('the answer to the question, opened by itself, asks it again', async () => {
  const all = await logIn(await lab());
  const question = await all.browser.open('/oauth/logout/confirm');
  expect(question.text).toContain('Log out?');
  expect(await isLoggedIn(all)).toBe(true);
});

test('an id_token alone ends nothing: whoever has one need not be the user', async () => {
  const all = await logIn(await lab());
  const stranger = new Browser((path, options) => ask(all.made.app, path, options));
  const answer = await stranger.open(logout({ id_token_hint: all.identity, post_logout_redirect_uri: afterwards }));
  expect(locationOf(answer)).toBe(afterwards);
  expect(await stands(all)).toBe(true);
  expect(await isLoggedIn(all)).toBe(true);
});
