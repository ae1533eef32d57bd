/** Every page of the server, and how people get to it: test/integration/each-page.test.ts tries on each of them what must hold of all. */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { issuer } from './browser.ts';
import type { Configuration } from './configure.ts';
import { call, secureGateway } from './http.ts';
import { passwords } from './people.ts';
import { remember } from './secrets.ts';

export const consoleCallback = 'https://console.example/callback';
export const trustedCallback = 'https://trusted.example/callback';

/** A user with the password of alice. */
export const surfer = 'surfer';
/** A User object with that password, who must change it; each test file makes one for itself. */
export const newcomer = 'newcomer';
/** Another, who need not. */
export const resident = 'resident';

/** With a word that is wider than many a window. */
const longName = `console-${'x'.repeat(55)}`;

/** The clients console, which asks for consent, and trusted, which does not, and the surfer. */
export function addClients({ authentication: { clients, users } }: Configuration): void {
  const grantTypes = ['authorization_code', 'refresh_token'];
  clients.push(
    { name: 'console', public: true, grantTypes, redirectURIs: [consoleCallback] },
    { name: longName, public: true, grantTypes, redirectURIs: [consoleCallback] },
    { name: 'trusted', public: true, grantTypes, redirectURIs: [trustedCallback], consent: false },
  );
  const alice = users.find(({ username }) => username === 'alice');
  users.push({ username: surfer, passwordHash: alice?.['passwordHash'] });
}

export const verifier = randomBytes(32).toString('base64url');

/** Where a client has people begin; by default the client that has to ask for consent. */
export function authorize(fields: Readonly<Record<string, string>> = {}): string {
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: 'console',
    redirect_uri: consoleCallback,
    scope: 'openid profile email groups offline_access',
    state: 'a state',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...fields,
  });
  return `${issuer}/oauth/authorize?${query.toString()}`;
}

export const trusted = { client_id: 'trusted', redirect_uri: trustedCallback } as const;

/** Fills in the login page and sends it. */
export async function logIn(page: Page, username: string = surfer, password: string = passwords.alice): Promise<void> {
  await page.getByLabel('Username').fill(username);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
}

/** On a page for that. */
export async function choosePassword(page: Page, current: string, next: string): Promise<void> {
  await page.getByLabel('Current password').fill(current);
  await page.getByLabel('New password').fill(next);
  await page.getByLabel('The same again').fill(next);
  await page.getByRole('button', { name: 'Change' }).click();
}

const headed = (page: Page, name: string): Promise<void> => page.getByRole('heading', { name, level: 1 }).waitFor();
export const atLogin = (page: Page): Promise<void> => headed(page, 'Log in');
export const atNewPassword = (page: Page): Promise<void> => headed(page, 'Choose a new password');
export const atLoggedIn = (page: Page): Promise<void> => headed(page, 'You are logged in');
export const atConsent = (page: Page): Promise<void> => headed(page, 'Let console in?');
export const atAccount = (page: Page): Promise<void> => headed(page, 'Your account');
export const atFailure = (page: Page): Promise<void> => headed(page, 'That did not work');
export const atAlert = (page: Page): Promise<void> => page.getByRole('alert').waitFor();

/** To the page of somebody's account, from nothing but the name of the server. */
export async function toAccount(page: Page, username: string = resident, password?: string): Promise<void> {
  await page.goto(issuer);
  await logIn(page, username, password);
  await atAccount(page);
}

/** To the question which device it is. */
async function toDevice(page: Page): Promise<void> {
  await page.goto(`${issuer}/oauth/device`);
  await logIn(page);
  await headed(page, 'Let a device in');
}

async function typeCode(page: Page, userCode: string): Promise<void> {
  await page.getByLabel('The code that your device shows').fill(userCode);
  await page.getByRole('button', { name: 'Go on' }).click();
}

/** To the question whether a device may come in that has just asked. */
async function toDeviceConsent(page: Page): Promise<void> {
  const { json } = await call(`${secureGateway(1)}/oauth/device_authorization`, {
    method: 'POST',
    body: 'client_id=platform-cli&scope=openid',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
  const { device_code, user_code } = json as { device_code: string; user_code: string };
  remember(device_code);
  await toDevice(page);
  await typeCode(page, user_code);
  await headed(page, 'Let this device in?');
}

/** To the question whether to log out. */
async function toLogout(page: Page): Promise<void> {
  await toDevice(page);
  await page.goto(`${issuer}/oauth/logout`);
  await headed(page, 'Log out?');
}

interface Node {
  readonly name?: { readonly value: string };
  readonly description?: { readonly value: string };
}

/** What readers say of what has the focus: its name, and what describes it. */
export async function focused(page: Page): Promise<readonly [string, string]> {
  const session = await page.context().newCDPSession(page);
  const { result } = await session.send('Runtime.evaluate', { expression: 'document.activeElement' });
  const { nodes } = await session.send('Accessibility.getPartialAXTree', {
    objectId: result.objectId ?? '',
    fetchRelatives: false,
  });
  const [node] = nodes as Node[];
  return [node?.name?.value ?? '', node?.description?.value ?? ''];
}

/** Each leads a new browser to the page, and resolves when it is there. */
export const pages: Readonly<Record<string, (page: Page) => Promise<void>>> = {
  'the login': async (page) => {
    await page.goto(authorize());
    await atLogin(page);
  },
  'a login that failed': async (page) => {
    await page.goto(authorize());
    // Nobody's guesses count against anybody.
    await logIn(page, `nobody-${randomUUID()}`);
    await atAlert(page);
  },
  'being logged in, for nothing else': async (page) => {
    await page.goto(`${issuer}/oauth/login`);
    await logIn(page);
    await atLoggedIn(page);
  },
  'a new password': async (page) => {
    await page.goto(authorize());
    await logIn(page, newcomer);
    await atNewPassword(page);
  },
  'a new password that is refused': async (page) => {
    await page.goto(authorize());
    await logIn(page, newcomer);
    await choosePassword(page, passwords.alice, 'password');
    await atAlert(page);
  },
  'an account': (page) => toAccount(page),
  'an account whose password stands in the configuration': (page) => toAccount(page, surfer),
  'an account whose new password is refused': async (page) => {
    await toAccount(page);
    await choosePassword(page, passwords.alice, 'password');
    await atAlert(page);
  },
  consent: async (page) => {
    await page.goto(authorize());
    await logIn(page);
    await atConsent(page);
  },
  'consent to a client of a long name': async (page) => {
    await page.goto(authorize({ client_id: longName }));
    await logIn(page);
    await headed(page, `Let ${longName} in?`);
  },
  'the code of a device': toDevice,
  'a code that no device has': async (page) => {
    await toDevice(page);
    await typeCode(page, 'BCDF-GHJK');
    await atAlert(page);
  },
  'consent to a device': toDeviceConsent,
  'a device that is in': async (page) => {
    await toDeviceConsent(page);
    await page.getByRole('button', { name: 'Allow' }).click();
    await headed(page, 'The device is in');
  },
  'the question whether to log out': toLogout,
  'having logged out': async (page) => {
    await toLogout(page);
    await page.getByRole('button', { name: 'Log out' }).click();
    await headed(page, 'You are logged out');
  },
  'a request that cannot be answered': async (page) => {
    await page.goto(authorize({ client_id: 'nobody' }));
    await atFailure(page);
  },
  'a form that is out of date': async (page) => {
    await page.goto(authorize());
    await page.context().clearCookies();
    await logIn(page);
    await atFailure(page);
  },
};
