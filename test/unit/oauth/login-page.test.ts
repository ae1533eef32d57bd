/** Tests the login page at /oauth/login, which users open directly or after a failed login. */
import { expect, test } from '@jest/globals';
import { sendRequest, type AppResponse } from '../../fakes/request.ts';
import { Browser, formIn } from '../../fakes/browser.ts';
import { rightPassword } from '../../labs/accounts.ts';
import { createLab, type Lab } from '../../labs/oauth.ts';

const path = '/oauth/login';
const sso = {
  name: 'sso',
  type: 'OIDC',
  oidc: { issuer: 'https://sso.example', clientID: 'a', clientSecretRef: { name: 'missing', key: 'a' } },
};
const lab = (): Promise<Lab> => createLab({ users: [{ username: 'alice' }], identityProviders: [sso] });
const browserOf = ({ app }: Lab): Browser<AppResponse> => new Browser((to, options) => sendRequest(app, to, options));
const titleOf = ({ text }: AppResponse): string | undefined => /<h1>(.*?)<\/h1>/.exec(text)?.[1];
const alice = { username: 'alice', password: rightPassword };

test('a login at /oauth/login leads to a page that confirms the login and offers a logout', async () => {
  const made = await lab();
  const browser = browserOf(made);
  const page = await browser.open(path);
  expect({ status: page.status, title: titleOf(page) }).toEqual({ status: 200, title: 'Log in' });
  expect(page.headers['cache-control']).toBe('no-store');
  const loggedIn = await browser.submit(page, alice);
  expect({ status: loggedIn.status, title: titleOf(loggedIn) }).toEqual({ status: 200, title: 'You are logged in' });
  expect(loggedIn.text).toContain('<strong>alice</strong>');
  expect(titleOf(await browser.open(path))).toBe('You are logged in');
  expect((await browser.open('/oauth/device')).text).toContain('user_code');
  expect(titleOf(await browser.submit(loggedIn, {}))).toBe('You are logged out');
  expect(titleOf(await browser.open(path))).toBe('Log in');
});

test('/oauth/login shows the login page without an error after a failed login', async () => {
  const browser = browserOf(await lab());
  const failed = await browser.submit(await browser.open('/oauth/device'), { ...alice, password: 'wrong' });
  expect(failed.text).toContain('role="alert"');
  const again = await browser.open(path);
  expect(again.text).not.toContain('role="alert"');
  expect(titleOf(await browser.submit(again, alice))).toBe('You are logged in');
});

test('/oauth/login ignores the parameters next and username in its URL', async () => {
  const browser = browserOf(await lab());
  const page = await browser.open(`${path}?next=${encodeURIComponent('https://evil.example/')}&username=bob`);
  expect(formIn(page.text).fields).toMatchObject({ next: path, username: '' });
});

test('reloading /oauth/login/sso after a failed login at the provider shows the login page', async () => {
  const browser = browserOf(await lab());
  const { fields } = formIn((await browser.open(path)).text);
  const failed = await browser.send(`${path}/sso`, { form_token: fields['form_token'] ?? '', next: path });
  expect(failed.status).toBe(503);
  expect(titleOf(await browser.open(`${path}/sso`))).toBe('Log in');
});

test('/oauth/login is served only over TLS', async () => {
  const { app } = await lab();
  expect((await sendRequest(app, path)).status).toBe(404);
});
