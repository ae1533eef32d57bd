/** Logins for clients in a real browser over TLS, and attempts of cross-site pages to forge logins. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { issuer, startBrowser } from '../labs/integration/browser.ts';
import { configure } from '../labs/integration/configure.ts';
import { call, secureGateway } from '../labs/integration/http.ts';
import { encode, rememberResponse, type Tokens } from '../labs/integration/login.ts';
import {
  addClients,
  atAccount,
  atAlert,
  atConsent,
  atFailure,
  atLoggedIn,
  atLogin,
  atNewPassword,
  authorize,
  choosePassword,
  consoleCallback,
  focused,
  logIn,
  newcomer,
  surfer,
  toAccount,
  trusted,
  trustedCallback,
  verifier,
} from '../labs/integration/pages.ts';
import { passwords } from '../labs/integration/people.ts';
import { remember } from '../labs/integration/secrets.ts';
import { startSites, type Sites } from '../labs/integration/sites.ts';
import { createUserWithPassword, removeUser } from '../labs/integration/user-objects.ts';

const undo: (() => Promise<unknown>)[] = [];
/** An origin of an attacker. */
const evil = 'https://evil.example';
/** Another origin of the same site, such as an application beside the platform. */
const sibling = 'https://app.platform-system.svc';

let sites: Sites;
let browser: Browser;
beforeAll(async () => {
  undo.push(await configure(addClients));
  sites = await startSites([
    'console.example',
    'trusted.example',
    'elsewhere.example',
    'evil.example',
    'app.platform-system.svc',
  ]);
  undo.push(sites.stop);
  browser = await startBrowser(sites);
  undo.push(() => browser.close());
});
afterAll(async () => {
  for (const one of undo.toReversed()) await one();
});
afterEach(async () => {
  for (const context of browser.contexts()) await context.close();
  sites.pages.clear();
  sites.visits.length = 0;
});

const open = async (options: BrowserContextOptions = {}): Promise<Page> =>
  (await browser.newContext(options)).newPage();

/** Waits until the browser is redirected to the client, and returns the parameters of the redirect. */
async function responseAt(page: Page, callback: string): Promise<Record<string, string>> {
  await page.waitForURL((url) => url.href.startsWith(`${callback}?`));
  const { code, ...rest } = Object.fromEntries(new URL(page.url()).searchParams);
  remember(code);
  return code === undefined ? rest : { code, ...rest };
}

const allow = (page: Page): Promise<void> => page.getByRole('button', { name: 'Allow' }).click();
const refuse = (page: Page): Promise<void> => page.getByRole('button', { name: 'Deny' }).click();

const given = { code: expect.any(String), state: 'a state', iss: issuer };

async function exchanged(code: string, client_id: string, redirect_uri: string): Promise<Tokens> {
  const response = await call(`${secureGateway(1)}/oauth/token`, {
    method: 'POST',
    body: encode({ grant_type: 'authorization_code', code, client_id, redirect_uri, code_verifier: verifier }),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
  rememberResponse(response.text);
  expect({ status: response.status, text: response.text }).toMatchObject({ status: 200 });
  return response.json as Tokens;
}

const cookies = async (page: Page): Promise<string[]> =>
  (await page.context().cookies()).map(({ name }) => name).toSorted();

describe('a login', () => {
  test('a login with consent returns a code to the client, and any replica exchanges the code for tokens', async () => {
    const page = await open();
    await page.goto(authorize());
    await logIn(page);
    await atConsent(page);
    await allow(page);
    const response = await responseAt(page, consoleCallback);
    expect(response).toEqual(given);
    const tokens = await exchanged(response['code'] ?? '', 'console', consoleCallback);
    expect(Object.keys(tokens)).toEqual(expect.arrayContaining(['access_token', 'refresh_token', 'id_token']));
  });

  test('a login succeeds without JavaScript, even for a client that requires no consent', async () => {
    const page = await open({ javaScriptEnabled: false });
    await page.goto(authorize(trusted));
    await logIn(page);
    expect(await responseAt(page, trustedCallback)).toEqual(given);
    await page.goto(authorize());
    await atConsent(page);
    await allow(page);
    expect(await responseAt(page, consoleCallback)).toEqual(given);
  });

  test('a login that the user denies returns an error to the client', async () => {
    const page = await open();
    await page.goto(authorize());
    await logIn(page);
    await refuse(page);
    expect(await responseAt(page, consoleCallback)).toEqual({
      error: 'access_denied',
      error_description: expect.any(String),
      state: 'a state',
      iss: issuer,
    });
  });

  test("a login redirects to the port on which a program on the user's machine listens", async () => {
    const page = await open();
    await page.goto(authorize({ client_id: 'platform-cli', redirect_uri: sites.loopback }));
    await logIn(page);
    await allow(page);
    const response = await responseAt(page, sites.loopback);
    expect(response).toEqual(given);
    await exchanged(response['code'] ?? '', 'platform-cli', sites.loopback);
  });

  test.each([
    ['with consent', {}],
    ['without consent', trusted],
  ])('a login %s completes even if the redirect URI of the client redirects to another origin', async (_, fields) => {
    const elsewhere = 'https://elsewhere.example/';
    for (const callback of [consoleCallback, trustedCallback]) sites.pages.set(callback, { location: elsewhere });
    const page = await open();
    await page.goto(authorize(fields));
    await logIn(page);
    if (fields !== trusted) await allow(page);
    await page.waitForURL(elsewhere);
    expect(sites.visits.map(({ origin }) => origin)).toContain('https://elsewhere.example');
  });

  test('a login can be completed with the keyboard alone', async () => {
    const page = await open();
    await page.goto(authorize());
    const { keyboard } = page;
    await page.locator('#username:focus').waitFor();
    await keyboard.type(surfer);
    await keyboard.press('Tab');
    await keyboard.type(passwords.alice);
    await keyboard.press('Enter');
    await atConsent(page);
    await keyboard.press('Tab');
    await keyboard.press('Enter');
    expect(await responseAt(page, consoleCallback)).toEqual(given);
  });

  test('a login with a wrong password shows an error at the focused field, and can be repeated with the right password', async () => {
    const page = await open();
    await page.goto(authorize());
    await logIn(page, surfer, 'wrong');
    await page.locator('#password:focus').waitFor();
    expect(await page.getByRole('alert').textContent()).toContain('Incorrect username or password.');
    expect(await page.getByLabel('Username').inputValue()).toBe(surfer);
    const [name, description] = await focused(page);
    expect({ name, description }).toEqual({
      name: 'Password',
      description: expect.stringContaining('Incorrect username or password.'),
    });
    await page.keyboard.type(passwords.alice);
    await page.keyboard.press('Enter');
    await atConsent(page);
  });

  test('a user can log in after a failed login by loading the login page again', async () => {
    const page = await open();
    await page.goto(authorize());
    await logIn(page, surfer, 'wrong');
    await atAlert(page);
    await page.goto(page.url());
    await atLogin(page);
    await logIn(page);
    await atLoggedIn(page);
    await page.goto(authorize(trusted));
    expect(await responseAt(page, trustedCallback)).toEqual(given);
  });

  test('a login is required again with prompt=login', async () => {
    const page = await open();
    await page.goto(authorize(trusted));
    await logIn(page);
    await responseAt(page, trustedCallback);
    await page.goto(authorize(trusted));
    await responseAt(page, trustedCallback);
    await page.goto(authorize({ ...trusted, prompt: 'login' }));
    await atLogin(page);
    await logIn(page);
    expect(await responseAt(page, trustedCallback)).toEqual(given);
  });

  test('a login of a user who must change the password completes after the password change', async () => {
    undo.push(() => removeUser(newcomer));
    await createUserWithPassword(newcomer, { passwordChangeRequired: true });
    const next = 'newly chosen, 4410 times';
    remember(next);
    const page = await open();
    await page.goto(authorize(trusted));
    await logIn(page, newcomer);
    await atNewPassword(page);
    await choosePassword(page, passwords.alice, 'password');
    await atAlert(page);
    expect(await page.getByRole('alert').textContent()).toContain('one of the most common passwords');
    expect((await focused(page))[1]).toContain('one of the most common passwords');
    await choosePassword(page, passwords.alice, next);
    expect(await responseAt(page, trustedCallback)).toEqual(given);
    const again = await open();
    await again.goto(authorize(trusted));
    await logIn(again, newcomer, next);
    expect(await responseAt(again, trustedCallback)).toEqual(given);
  });

  test('an HTML form of the client can start a login, even if the user is logged in', async () => {
    const page = await open();
    const { searchParams } = new URL(authorize(trusted));
    sites.pages.set('https://trusted.example/', form(`${issuer}/oauth/authorize`, Object.fromEntries(searchParams)));
    await page.goto('https://trusted.example/');
    await atLogin(page);
    await logIn(page);
    await responseAt(page, trustedCallback);
    await page.goto('https://trusted.example/');
    expect(await responseAt(page, trustedCallback)).toEqual(given);
  });
});

const end = (page: Page, name: string): Promise<void> => page.getByRole('button', { name }).first().click();
/** Returns the clients of the sessions that the account page lists. */
const clientsOn = (page: Page): Promise<string[]> => page.locator('li strong').allTextContents();

describe('the account page', () => {
  const person = 'homebody';

  test('users can list and revoke their sessions on the account page, even without JavaScript', async () => {
    undo.push(() => removeUser(person));
    await createUserWithPassword(person);
    const page = await open({ javaScriptEnabled: false });
    await toAccount(page, person);
    const elsewhere = await open();
    await toAccount(elsewhere, person);
    await page.reload();
    const before = await clientsOn(page);
    expect(before.filter((client) => client === 'Browser')).toHaveLength(2);
    await end(page, 'Log out');
    await atAccount(page);
    expect(await clientsOn(page)).toHaveLength(before.length - 1);
    await end(page, 'Log out of all other sessions');
    await atAccount(page);
    expect(await clientsOn(page)).toEqual(['Browser']);
    await elsewhere.reload();
    await atLogin(elsewhere);
  });

  test('changing the password on the account page logs the user out in other browsers', async () => {
    const next = 'chosen at home, 5813 times';
    remember(next);
    const page = await open();
    await toAccount(page, person);
    const elsewhere = await open();
    await toAccount(elsewhere, person);
    await choosePassword(page, 'not that one', next);
    await atAlert(page);
    expect((await focused(page))[1]).toContain('The current password is wrong');
    await choosePassword(page, passwords.alice, next);
    await page.getByRole('link', { name: 'Back to your account' }).click();
    await atAccount(page);
    await elsewhere.reload();
    await atLogin(elsewhere);
    await logIn(elsewhere, person, next);
    await atAccount(elsewhere);
  });

  // evidence: browser-account-forgery
  test.each([evil, sibling])('the account page ignores forms sent from %s', async (origin) => {
    const page = await open();
    await toAccount(page, surfer);
    const elsewhere = await open();
    await toAccount(elsewhere, surfer);
    const forged = { form_token: 'A'.repeat(43), end: 'others' };
    sites.pages.set(`${origin}/`, form(`${issuer}/oauth/account`, forged));
    await page.goto(`${origin}/`);
    await atFailure(page);
    await elsewhere.reload();
    expect(await elsewhere.title()).toBe('Your account');
  });
});

/** Returns a page that submits a form as soon as it is loaded. */
const form = (action: string, fields: Readonly<Record<string, string>>): string =>
  `<form method="post" action="${action}">${Object.entries(fields)
    .map(([name, value]) => `<input type="hidden" name="${name}" value="${value.replaceAll('&', '&amp;')}">`)
    .join('')}</form><script>document.forms[0].submit()</script>`;

describe.each([
  ['a cross-site origin', evil, false],
  // SameSite cookies do not protect against this origin.
  ['another origin of the same site', sibling, true],
])('an attacker at %s', (_, origin, getsCookies) => {
  // evidence: browser-login-forgery
  test("an attacker cannot log a user in without the user's knowledge", async () => {
    const page = await open();
    await page.goto(authorize());
    const next = new URL(authorize(trusted));
    const fields = {
      next: `${next.pathname}${next.search}`,
      username: surfer,
      password: passwords.alice,
      // Form token of a browser of the attacker.
      form_token: 'A'.repeat(43),
    };
    sites.pages.set(`${origin}/`, form(`${issuer}/oauth/login`, fields));
    const sent = page.waitForRequest(`${issuer}/oauth/login`);
    await page.goto(`${origin}/`);
    expect((await (await sent).headerValue('cookie')) !== null).toBe(getsCookies);
    await atFailure(page);
    expect(await cookies(page)).toEqual(['__Host-platform-form']);
  });

  // evidence: browser-consent-forgery
  test('an attacker cannot consent on behalf of users or trick users into consent', async () => {
    const page = await open();
    await page.goto(authorize());
    await logIn(page);
    await atConsent(page);
    const fields = { request: new URL(authorize()).search.slice(1), decision: 'allow', form_token: 'A'.repeat(43) };
    sites.pages.set(`${origin}/`, form(`${issuer}/oauth/consent`, fields));
    const sent = page.waitForRequest(`${issuer}/oauth/consent`);
    await page.goto(`${origin}/`);
    expect((await (await sent).headerValue('cookie')) !== null).toBe(getsCookies);
    await atFailure(page);
    sites.pages.set(`${origin}/frame`, `<iframe src="${authorize().replaceAll('&', '&amp;')}"></iframe>`);
    await page.goto(`${origin}/frame`);
    const [, frame] = page.frames();
    expect(frame?.url()).toBe('chrome-error://chromewebdata/');
    expect(sites.visits.map(({ href }) => href)).toEqual([`${origin}/`, `${origin}/frame`]);
  });

  test('an attacker cannot read a page of the server, even in a window that the attacker opens', async () => {
    const page = await open();
    await page.goto(authorize(trusted));
    await logIn(page);
    await responseAt(page, trustedCallback);
    sites.pages.set(`${origin}/`, '<p>Hello</p>');
    await page.goto(`${origin}/`);
    const read = (path: string): Promise<unknown> =>
      page.evaluate(
        `fetch('${issuer}${path}', { credentials: 'include' }).then((response) => response.text(), String)`,
      );
    for (const path of ['/oauth/authorize', '/oauth/userinfo', '/oauth/token'])
      expect(await read(path)).toBe('TypeError: Failed to fetch');
    const opened = page.waitForEvent('popup');
    await page.evaluate(`void (window.other = window.open('${authorize()}'))`);
    await atConsent(await opened);
    const seen = '(() => { try { return other.document.body.innerHTML; } catch (error) { return error.name; } })()';
    expect(await page.evaluate(seen)).toMatch(/SecurityError|TypeError/);
  });
});

// evidence: browser-login-cookie-planting
test('another origin of the same site cannot log a user in as the attacker by setting a cookie', async () => {
  const own = await open();
  await own.goto(authorize(trusted));
  await logIn(own);
  await responseAt(own, trustedCallback);
  const stolen = (await own.context().cookies()).find(({ name }) => name.endsWith('platform-login'));
  const other = await open();
  sites.pages.set(`${sibling}/`, '<p>Hello</p>');
  await other.goto(`${sibling}/`);
  const { name = '', value = '' } = stolen ?? {};
  await other.evaluate(`document.cookie = '${name}=${value}; Secure; Path=/oauth; Domain=platform-system.svc'`);
  await other.goto(authorize(trusted));
  await atLogin(other);
  expect(await cookies(other)).toEqual(['__Host-platform-form']);
});

test('cookies are not readable by scripts, and not sent with cross-site form submissions', async () => {
  const page = await open();
  await page.goto(authorize());
  await logIn(page);
  await atConsent(page);
  const kept = await page.context().cookies();
  expect(kept.map(({ name }) => name).toSorted()).toEqual(['__Host-platform-form', '__Host-platform-login']);
  for (const cookie of kept)
    expect(cookie).toMatchObject({ httpOnly: true, secure: true, sameSite: 'Lax', expires: -1, path: '/' });
  expect(await page.evaluate('document.cookie')).toBe('');
});
