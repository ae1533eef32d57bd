/**
 * Lists every page of the server, and the steps by which a browser reaches the page. test/integration/each-page.test.ts
 * checks all of them.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { issuer } from './browser.ts';
import type { Configuration } from './configure.ts';
import { call, secureGateway } from './http.ts';
import { passwords } from './people.ts';
import { remember } from './secrets.ts';

export const consoleCallback = 'https://console.example/callback';
export const trustedCallback = 'https://trusted.example/callback';

/** Username of a configured user with alice's password. */
export const surfer = 'surfer';
/**
 * Name of a User object with alice's password, which must be changed at the first login. Each test file creates its own
 * User object.
 */
export const newcomer = 'newcomer';
/** Name of a User object with alice's password, which need not be changed. */
export const resident = 'resident';

/** Client name that is a single word, which is wider than many windows. */
const longName = `console-${'x'.repeat(55)}`;

/** Adds a configured user and OAuth clients. `console` requires consent, and `trusted` does not. */
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

/** Returns the authorization URL of a client. The default client requires consent. */
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

/** Fills in and submits the login page. */
export async function logIn(page: Page, username: string = surfer, password: string = passwords.alice): Promise<void> {
  await page.getByLabel('Username').fill(username);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
}

/** Fills in and submits a page for a new password. */
export async function choosePassword(page: Page, current: string, next: string): Promise<void> {
  await page.getByLabel('Current password').fill(current);
  await page.getByLabel('New password', { exact: true }).fill(next);
  await page.getByLabel('Confirm new password').fill(next);
  await page.getByRole('button', { name: 'Change' }).click();
}

const headed = (page: Page, name: string): Promise<void> => page.getByRole('heading', { name, level: 1 }).waitFor();
export const atLogin = (page: Page): Promise<void> => headed(page, 'Log in');
export const atNewPassword = (page: Page): Promise<void> => headed(page, 'Choose a new password');
export const atLoggedIn = (page: Page): Promise<void> => headed(page, 'You are logged in');
export const atConsent = (page: Page): Promise<void> => headed(page, 'Authorize console?');
export const atAccount = (page: Page): Promise<void> => headed(page, 'Your account');
export const atFailure = (page: Page): Promise<void> => headed(page, 'Something went wrong');
export const atAlert = (page: Page): Promise<void> => page.getByRole('alert').waitFor();

/** Opens the account page, starting from the URL of the server without a path. */
export async function toAccount(page: Page, username: string = resident, password?: string): Promise<void> {
  await page.goto(issuer);
  await logIn(page, username, password);
  await atAccount(page);
}

/** Opens the page that asks for the user code of a device. */
async function toDevice(page: Page): Promise<void> {
  await page.goto(`${issuer}/oauth/device`);
  await logIn(page);
  await headed(page, 'Authorize a device');
}

async function typeCode(page: Page, userCode: string): Promise<void> {
  await page.getByLabel('Code shown on your device').fill(userCode);
  await page.getByRole('button', { name: 'Continue' }).click();
}

/** Opens the consent page of a device that has just requested a code. */
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
  await headed(page, 'Authorize this device?');
}

/** Opens the page that asks for confirmation of a logout. */
async function toLogout(page: Page): Promise<void> {
  await toDevice(page);
  await page.goto(`${issuer}/oauth/logout`);
  await headed(page, 'Log out?');
}

interface Node {
  readonly name?: { readonly value: string };
  readonly description?: { readonly value: string };
}

/** Returns the accessible name and description of the focused element. */
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

/** Functions that bring a new browser to each page. */
export const pages: Readonly<Record<string, (page: Page) => Promise<void>>> = {
  login: async (page) => {
    await page.goto(authorize());
    await atLogin(page);
  },
  'failed login': async (page) => {
    await page.goto(authorize());
    // The name is unique, so that failures do not count against other logins.
    await logIn(page, `nobody-${randomUUID()}`);
    await atAlert(page);
  },
  'login without a client': async (page) => {
    await page.goto(`${issuer}/oauth/login`);
    await logIn(page);
    await atLoggedIn(page);
  },
  'password change': async (page) => {
    await page.goto(authorize());
    await logIn(page, newcomer);
    await atNewPassword(page);
  },
  'rejected password change': async (page) => {
    await page.goto(authorize());
    await logIn(page, newcomer);
    await choosePassword(page, passwords.alice, 'password');
    await atAlert(page);
  },
  account: (page) => toAccount(page),
  'account with a configured password': (page) => toAccount(page, surfer),
  'account after a rejected password change': async (page) => {
    await toAccount(page);
    await choosePassword(page, passwords.alice, 'password');
    await atAlert(page);
  },
  consent: async (page) => {
    await page.goto(authorize());
    await logIn(page);
    await atConsent(page);
  },
  'consent for a client with a long name': async (page) => {
    await page.goto(authorize({ client_id: longName }));
    await logIn(page);
    await headed(page, `Authorize ${longName}?`);
  },
  'user code': toDevice,
  'unknown user code': async (page) => {
    await toDevice(page);
    await typeCode(page, 'BCDF-GHJK');
    await atAlert(page);
  },
  'consent for a device': toDeviceConsent,
  'authorized device': async (page) => {
    await toDeviceConsent(page);
    await page.getByRole('button', { name: 'Allow' }).click();
    await headed(page, 'Device authorized');
  },
  'logout confirmation': toLogout,
  'after logout': async (page) => {
    await toLogout(page);
    await page.getByRole('button', { name: 'Log out' }).click();
    await headed(page, 'You are logged out');
  },
  'invalid request': async (page) => {
    await page.goto(authorize({ client_id: 'nobody' }));
    await atFailure(page);
  },
  'outdated form': async (page) => {
    await page.goto(authorize());
    await page.context().clearCookies();
    await logIn(page);
    await atFailure(page);
  },
};
