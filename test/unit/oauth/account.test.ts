/** Tests the account page, which shows the user, changes the password and revokes sessions. */
import { describe, expect, test } from '@jest/globals';
import { unreachable } from '../../../src/cluster/client/kube-error.ts';
import { allRecorded } from '../../../src/http/records.ts';
import { sendRequest, type AppResponse } from '../../fakes/request.ts';
import { Browser, formIn } from '../../fakes/browser.ts';
import { rightPassword } from '../../labs/accounts.ts';
import { asClient, createLab, type Lab } from '../../labs/oauth.ts';

const path = '/oauth/account';
const next = 'four green kettles';
const profile = { displayName: 'Bob <B>', email: 'bob@example.org', groups: ['builders', 'staff'] };

const browserOf = ({ app }: Lab): Browser<AppResponse> => new Browser((to, options) => sendRequest(app, to, options));
const titleOf = ({ text }: AppResponse): string | undefined => /<h1>(.*?)<\/h1>/.exec(text)?.[1];
const alertOf = ({ text }: AppResponse): string | undefined => /role="alert"[^>]*>(.*?)</.exec(text)?.[1];
const tokenIn = ({ text }: AppResponse): string => formIn(text).fields['form_token'] ?? '';
const change = (current: string, password = next, again = password): Record<string, string> => ({
  password: current,
  new_password: password,
  new_password_again: again,
});

interface LoggedIn {
  readonly made: Lab;
  readonly browser: Browser<AppResponse>;
  readonly page: AppResponse;
}

async function logIn(username = 'bob', authentication = {}): Promise<LoggedIn> {
  const made = await createLab(authentication);
  await made.putUser('bob', profile);
  const browser = browserOf(made);
  const page = await browser.submit(await browser.open(path), { username, password: rightPassword });
  return { made, browser, page };
}

/** Logs bob in with a client. Returns a function that reports whether the access token is valid. */
async function program(made: Lab, headers = {}): Promise<() => Promise<boolean>> {
  const form = { grant_type: 'password', username: 'bob', password: rightPassword, ...asClient };
  const token = String((await made.token(form, { headers, from: '198.51.100.7' })).json()['access_token']);
  return async () => (await made.accessTokens.validate(token)) !== undefined;
}

const buttons = ({ text }: AppResponse): string[] =>
  [...text.matchAll(/<button\s+name="end"\s+value="([^"]*)"/g)].map(([, value = '']) => value);

describe('the account page', () => {
  test('the account page requires a login, and shows the user', async () => {
    const { page } = await logIn();
    expect({ status: page.status, title: titleOf(page) }).toEqual({ status: 200, title: 'Your account' });
    for (const text of ['<dd>bob</dd>', 'Bob &lt;B&gt;', 'bob@example.org', 'builders, staff'])
      expect(page.text).toContain(text);
    expect(page.headers).toMatchObject({ 'cache-control': 'no-store', 'x-frame-options': 'DENY' });
    expect(page.headers['content-security-policy']).toContain("default-src 'none'");
  });

  test('the account page omits fields that the user does not have', async () => {
    const made = await createLab({ users: [{ username: 'alice' }] });
    const browser = browserOf(made);
    const { text } = await browser.submit(await browser.open(path), { username: 'alice', password: rightPassword });
    expect([...text.matchAll(/<dt>(.*?)<\/dt>/g)].map(([, name]) => name)).toEqual(['Username']);
  });

  test.each<[string, (all: LoggedIn) => Promise<unknown>]>([
    ['must now change the password', ({ made }) => made.putUser('bob', { ...profile, passwordChangeRequired: true })],
    [
      'presents the refresh token of a client as a cookie',
      async ({ made, browser }) => {
        const form = { grant_type: 'password', username: 'bob', password: rightPassword, ...asClient };
        const token = String((await made.token(form)).json()['refresh_token']);
        browser.cookies.set('__Host-platform-login', token);
      },
    ],
  ])('the account page shows the login page for a user who %s', async (_, end) => {
    const all = await logIn();
    await end(all);
    expect(titleOf(await all.browser.open(path))).toBe('Log in');
  });

  test('the account page asks the user to try again while the cluster accepts no writes', async () => {
    const { made, browser, page } = await logIn();
    made.client.before = ({ method }) => {
      if (method !== 'GET') throw unreachable(new Error('reset'));
    };
    const response = await browser.submit(page, change(rightPassword));
    expect({ status: response.status, title: titleOf(response) }).toEqual({
      status: 503,
      title: 'Something went wrong',
    });
  });

  test('requests to the account page cause audit events with the user and without the entered values', async () => {
    const { made, browser, page } = await logIn();
    await browser.submit(page, change(rightPassword));
    await allRecorded();
    const event = made.events.findLast(({ verb, requestURI }) => verb === 'post' && requestURI === path);
    expect(event?.user.username).toBe('bob');
    for (const text of [rightPassword, next, 'password']) expect(JSON.stringify(event)).not.toContain(text);
  });

  test('the account page is available only over TLS', async () => {
    const { app } = await createLab();
    expect((await sendRequest(app, path)).status).toBe(404);
  });

  // evidence: account-form-token
  test('the account page rejects a form that was not issued to the same browser', async () => {
    const { made, browser, page } = await logIn();
    const good = await program(made);
    for (const fields of [change(rightPassword), { end: 'others' }]) {
      expect((await browser.send(path, fields)).status).toBe(403);
      const shown = { ...fields, form_token: tokenIn(page) };
      expect((await browser.send(path, shown, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
      expect(titleOf(await browserOf(made).send(path, shown))).toBe('Something went wrong');
    }
    expect(await good()).toBe(true);
  });

  test('a form on the account page changes nothing and shows the login page if the user has logged out in the meantime', async () => {
    const { made, browser, page } = await logIn();
    const good = await program(made);
    browser.cookies.delete('__Host-platform-login');
    expect(titleOf(await browser.submit(page, change(rightPassword)))).toBe('Log in');
    expect(titleOf(await browser.send(path, { form_token: tokenIn(page), end: 'others' }))).toBe('Log in');
    expect(await good()).toBe(true);
  });
});

describe('the password form', () => {
  test('the password form requires the current password, and revokes all other logins of the user', async () => {
    const { made, browser, page } = await logIn();
    const good = await program(made);
    const done = await browser.submit(page, change(rightPassword));
    expect({ status: done.status, title: titleOf(done) }).toEqual({ status: 200, title: 'Password changed' });
    expect(await good()).toBe(false);
    expect(done.text).toContain(`<a href="${path}">Back to your account</a>`);
    const again = await browser.open(path);
    expect({ title: titleOf(again), others: buttons(again) }).toEqual({ title: 'Your account', others: [] });
    const other = browserOf(made);
    const credentials = { username: 'bob', password: next };
    expect(titleOf(await other.submit(await other.open(path), credentials))).toBe('Your account');
  });

  test.each([
    ['the current password is wrong', change('not that one'), 'The current password is wrong'],
    ['the new password and its confirmation differ', change(rightPassword, next, `${next}!`), 'do not match'],
    [
      'the new password is too short',
      change(rightPassword, 'short'),
      'The new password must have at least 8 characters',
    ],
    ['the new password is missing', change(rightPassword, ''), 'is missing'],
  ])('the password form rejects the change if %s', async (_, fields, reason) => {
    const { browser, page } = await logIn();
    const refused = await browser.submit(page, fields);
    expect({ status: refused.status, title: titleOf(refused) }).toEqual({ status: 400, title: 'Your account' });
    expect(alertOf(refused)).toContain(reason);
    for (const typed of Object.values(fields).filter((text) => text !== '')) expect(refused.text).not.toContain(typed);
    expect(titleOf(await browser.submit(refused, change(rightPassword)))).toBe('Password changed');
  });

  test('the password form counts wrong passwords towards the login limit', async () => {
    const { browser, page } = await logIn();
    let response = page;
    for (let attempt = 0; attempt < 5; attempt += 1) response = await browser.submit(page, change('wrong'));
    response = await browser.submit(page, change(rightPassword));
    expect(response.status).toBe(429);
    expect(response.headers['retry-after']).toMatch(/^\d+$/);
    expect(alertOf(response)).toContain('Too many failed logins');
  });

  test('the password form is replaced by a notice for a configured user', async () => {
    const { browser, page } = await logIn('alice');
    expect(page.text).toContain('The hash of your password is in the cluster configuration object');
    expect(page.text).not.toContain('new_password');
    const sent = await browser.send(path, { form_token: tokenIn(page), ...change(rightPassword) });
    expect(alertOf(sent)).toContain('cluster configuration object');
  });
});

describe('the session list', () => {
  test('the session list shows where and how sessions were created, and revokes individual sessions', async () => {
    const { made, browser } = await logIn();
    const [one, other] = [await program(made, { 'user-agent': 'one/1 <b>' }), await program(made)];
    await made.clock.advance(60_000);
    const page = await browser.open(path);
    const since = new Date(made.clock.now() - 60_000).toISOString().slice(0, 16).replace('T', ' ');
    expect(page.text).toContain(`>${since} UTC</time>`);
    // The other client has sent no User-Agent.
    expect(page.text).toContain('<p class="hint">198.51.100.7</p>');
    for (const text of ['<strong>platform</strong>', '198.51.100.7, one/1 &lt;b&gt;', '<strong>Browser</strong>'])
      expect(page.text).toContain(text);
    const all = made.sessions.ofUser(made.directory.account('bob')?.uid ?? '');
    const sid = all.find(({ spec: { userAgent } }) => userAgent?.startsWith('one/1'))?.metadata.name ?? '';
    expect(buttons(page)).toContain(sid);
    const after = await browser.send(path, { form_token: tokenIn(page), end: sid });
    expect(titleOf(after)).toBe('Your account');
    expect([await one(), await other()]).toEqual([false, true]);
    expect(buttons(after)).toHaveLength(buttons(page).length - 1);
  });

  test('the session list can revoke all sessions except the current one', async () => {
    const { made, browser } = await logIn();
    const [one, other] = [await program(made), await program(made)];
    const page = await browser.open(path);
    expect(buttons(page)).toContain('others');
    const after = await browser.send(path, { form_token: tokenIn(page), end: 'others' });
    expect({ title: titleOf(after), left: buttons(after) }).toEqual({ title: 'Your account', left: [] });
    expect([await one(), await other()]).toEqual([false, false]);
  });

  test('the session list does not revoke sessions of other users', async () => {
    const { made, browser, page } = await logIn();
    const { username: userName = '', uid: userUID = '', credentialID = '' } = made.directory.account('alice') ?? {};
    const { session } = await made.sessions.create({ userName, userUID, clientID: 'platform', credentialID });
    for (const end of [session.metadata.name, 'x', '../users'])
      expect(titleOf(await browser.send(path, { form_token: tokenIn(page), end }))).toBe('Your account');
    expect(await made.sessions.active(session.metadata.name)).toBeDefined();
  });
});
