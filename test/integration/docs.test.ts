/** `/docs` in a real browser and cluster: reading, logging in, trying operations, and attacks. */
// evidence: docs-page-browser
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import assert from 'node:assert/strict';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { issuer, startBrowser } from '../labs/integration/browser.ts';
import { configure } from '../labs/integration/configure.ts';
import { eventually } from '../labs/integration/eventually.ts';
import { call, gateway, nodesPath, secureGateway } from '../labs/integration/http.ts';
import { create, createNode, get, nodePath, remove } from '../labs/integration/kube.ts';
import { adminToken, login, passwordOf, rememberResponse, type Tokens } from '../labs/integration/login.ts';
import { colorSchemeOf, found } from '../labs/integration/looks.ts';
import { addClients, logIn, surfer } from '../labs/integration/pages.ts';
import { passwords } from '../labs/integration/people.ts';
import { startSites, type Sites } from '../labs/integration/sites.ts';
import { removeUser } from '../labs/integration/user-objects.ts';

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const markup = `</script><img src=x onerror="document.title='broken in'"><script>document.title='broken in'</script>`;
/** A custom resource with hostile texts. */
const evilKind = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'traps.docs.example.com' },
  spec: {
    group: 'docs.example.com',
    names: { kind: 'Trap', plural: 'traps' },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            description: markup,
            properties: {
              spec: {
                type: 'object',
                properties: {
                  bait: { type: 'string', description: markup, default: markup, enum: [markup, 'x'] },
                  constructor: { type: 'string', description: 'A name that objects have anyway' },
                },
              },
            },
          },
        },
      },
    ],
  },
};
/** A custom resource whose operations collide with those of the resource above. It has very long texts. */
const statusKind = {
  ...evilKind,
  metadata: { name: 'trapstatuses.docs.example.com' },
  spec: {
    ...evilKind.spec,
    names: { kind: 'TrapStatus', plural: 'trapstatuses' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: {
                  blanks: { type: 'string', description: `x${' '.repeat(200_000)}y` },
                  code: { type: 'string', description: '`x`'.repeat(70_000) },
                  values: { type: 'string', enum: Array.from({ length: 9_000 }, (_, at) => `value-${at}`) },
                  fields: {
                    type: 'object',
                    properties: Object.fromEntries(
                      Array.from({ length: 2_000 }, (_, at) => [`field${at}`, { type: 'string' }]),
                    ),
                  },
                  '\u202Edesrever': { type: 'string', enum: ['\u202E', '\u2066'] },
                },
              },
            },
          },
        },
      },
    ],
  },
};
const someone = 'made-by-docs';
const lateNode = 'late-for-docs';

const undo: (() => Promise<unknown>)[] = [];
let sites: Sites;
let browser: Browser;
beforeAll(async () => {
  undo.push(await configure(addClients));
  for (const kind of [evilKind, statusKind]) {
    await create(definitions, kind);
    undo.push(() => remove(`${definitions}/${kind.metadata.name}`));
  }
  // kube-apiserver returns 503 until it serves a new kind.
  for (const plural of ['traps', 'trapstatuses'])
    await eventually(`${plural} are served`, () => get(`/apis/docs.example.com/v1/${plural}`));
  sites = await startSites(['evil.example']);
  undo.push(sites.stop);
  browser = await startBrowser(sites);
  undo.push(() => browser.close());
});
afterAll(async () => {
  for (const one of undo.toReversed()) await one();
});

/** Errors and warnings of the browser, except failed requests. */
const complaints: string[] = [];
const requested = new Set<string>();
let tokens: Tokens | undefined;
const noted: Promise<void>[] = [];

afterEach(async () => {
  for (const context of browser.contexts()) await context.close();
  await Promise.all(noted.splice(0));
  tokens = undefined;
  const elsewhere = [...requested].filter((host) => host !== new URL(issuer).host && !host.startsWith('127.0.0.1:'));
  requested.clear();
  assert.deepEqual({ complaints: complaints.splice(0), elsewhere }, { complaints: [], elsewhere: [] });
});

/** Collects errors and warnings of the browser, requested hosts, and tokens, which must not appear in logs. */
async function note(page: Page): Promise<void> {
  page.on('console', (message) => {
    const text = message.text();
    if (['error', 'warning'].includes(message.type()) && !text.startsWith('Failed to load resource'))
      complaints.push(text);
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('request', (request) => requested.add(new URL(request.url()).host));
  page.on('response', (response) => {
    if (!response.url().endsWith('/oauth/token')) return;
    const read = async (): Promise<void> => {
      const text = await response.text();
      rememberResponse(text);
      if (response.ok()) tokens = JSON.parse(text) as Tokens;
    };
    noted.push(read().catch(() => undefined));
  });
}

async function newPage(options: BrowserContextOptions = {}): Promise<Page> {
  const page = await (await browser.newContext(options)).newPage();
  await note(page);
  return page;
}

const expectHeading = (page: Page, name: string | RegExp): Promise<void> =>
  page.getByRole('heading', { level: 2, name }).waitFor();

const expectAlert = (page: Page, hasText: string | RegExp): Promise<void> =>
  page.getByRole('alert').filter({ hasText }).waitFor();

async function openDocs(hash = '', options: BrowserContextOptions = {}): Promise<Page> {
  const page = await newPage(options);
  await page.goto(`${issuer}/docs${hash}`);
  await page.getByRole('heading', { level: 2 }).waitFor();
  return page;
}

const expectLoggedIn = (page: Page, username: string): Promise<void> =>
  page.getByText(`Logged in as ${username}`).waitFor();

async function loggedIn(username: string, hash = '', options: BrowserContextOptions = {}): Promise<Page> {
  const page = await openDocs(hash, options);
  await page.getByRole('button', { name: 'Log in' }).click();
  await logIn(page, username, username === 'admin' ? passwordOf('admin') : passwords.alice);
  await expectLoggedIn(page, username);
  return page;
}

const status = (page: Page): ReturnType<Page['locator']> =>
  page.getByRole('region', { name: 'Response', exact: true }).getByRole('status');
const expectStatus = (page: Page, hasText: string): Promise<void> => status(page).filter({ hasText }).waitFor();
const bodyOf = (page: Page): ReturnType<Page['locator']> => page.getByRole('region', { name: 'Response body' });

/** Sends the form, and resolves with the status of the complete response. */
async function send(page: Page): Promise<string> {
  await page.getByRole('button', { name: 'Send' }).click();
  await status(page)
    .filter({ hasText: /\d \w+\.$/ })
    .waitFor();
  return (await status(page).textContent()) ?? '';
}

async function shown(page: Page): Promise<unknown> {
  return JSON.parse((await bodyOf(page).textContent()) ?? '') as unknown;
}

/** Returns the text of the response in this colour. */
const colored = (page: Page, highlight: string): Promise<string[]> =>
  page.evaluate<string[]>(`[...CSS.highlights.get('${highlight}')].map(
    ({ startContainer, startOffset, endOffset }) => startContainer.data.slice(startOffset, endOffset))`);

const goTo = async (page: Page, id: string): Promise<void> => {
  await page.evaluate(`location.hash = ${JSON.stringify(id)}`);
  await page.locator(`nav a[href="#${id}"][aria-current=page]`).waitFor({ state: 'attached' });
};

/** Opens all disclosure widgets, including nested ones. */
async function unfold(page: Page, deepest = 2): Promise<void> {
  const closed = page.locator('main details:not([open])');
  for (let depth = 0; depth < deepest && (await closed.count()) > 0; depth += 1) {
    await page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true; })");
    // The page creates the content of an opened widget a moment later.
    await page.evaluate('new Promise((resolve) => setTimeout(resolve, 50))');
  }
}

const custom = async (page: Page): Promise<void> => {
  await page.getByRole('button', { name: 'Show custom resources' }).click();
  await page.getByText('operations of custom resources loaded').waitFor();
};

describe('logging in at /docs', () => {
  test('logging in at /docs returns to the operation, and leaves no token in storage, URL or history', async () => {
    const page = await loggedIn('admin', '#listNodes');
    await expectHeading(page, 'List or watch objects of kind Node');
    expect(page.url()).toBe(`${issuer}/docs#listNodes`);
    expect(tokens).toMatchObject({ access_token: expect.any(String), refresh_token: expect.any(String) });
    const kept = await page.evaluate<string>(
      'JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])',
    );
    expect(JSON.parse(kept)).toEqual([{}, {}, '']);
    // A reload shows that the authorization code is not in the history either.
    await page.reload();
    await page.getByRole('button', { name: 'Log in' }).waitFor();
    expect(page.url()).toBe(`${issuer}/docs#listNodes`);
  });

  test('logging in at /docs uses the client platform-docs, PKCE with S256 and a new state each time', async () => {
    const page = await openDocs();
    const requests: URLSearchParams[] = [];
    page.on('request', (request) => {
      const { pathname, searchParams } = new URL(request.url());
      if (pathname === '/oauth/authorize') requests.push(searchParams);
    });
    for (let round = 0; round < 2; round += 1) {
      await page.getByRole('button', { name: 'Log in' }).click();
      await page.getByLabel('Username').waitFor();
      await page.goto(`${issuer}/docs`);
    }
    const [first, second] = requests.map((query) => Object.fromEntries(query));
    expect(first).toMatchObject({
      response_type: 'code',
      client_id: 'platform-docs',
      redirect_uri: `${issuer}/docs/callback`,
      code_challenge_method: 'S256',
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      state: expect.stringMatching(/^[\w-]{43}$/),
    });
    expect(first?.['state']).not.toBe(second?.['state']);
    expect(first?.['code_challenge']).not.toBe(second?.['code_challenge']);
  });

  test('logging out of /docs revokes the tokens', async () => {
    const page = await loggedIn('admin');
    const { access_token: token } = tokens as Tokens;
    expect((await call(`${gateway()}${nodesPath}?limit=0`, { token })).status).toBe(200);
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByText('You are logged out of this page.').waitFor();
    expect((await call(`${gateway()}${nodesPath}?limit=0`, { token })).status).toBe(401);
    await page.getByRole('link', { name: 'Log out of the platform too' }).click();
    await page.getByRole('heading', { name: 'Log out?' }).waitFor();
  });

  test('logging out of /docs removes custom resources and the input of the user from the page', async () => {
    const page = await loggedIn('admin', '#createIamUser');
    await page.getByLabel('Request body').fill('{"secret plans":1}');
    await custom(page);
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByText('You are logged out of this page.').waitFor();
    expect(await page.getByLabel('Request body').inputValue()).not.toContain('secret plans');
    expect(await page.getByRole('link', { name: 'Create a Trap' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Show custom resources' }).waitFor();
  });

  test('logging out of /docs aborts requests, even after logging in with an access token', async () => {
    const page = await newPage();
    await page.goto(`${gateway()}/docs#listNodes`);
    await page.getByText('Use an access token', { exact: true }).click();
    await page.getByLabel('Access token', { exact: true }).fill(await adminToken());
    await page.getByRole('button', { name: 'Use token' }).click();
    await expectLoggedIn(page, 'admin');
    await unfold(page, 1);
    await page.getByLabel('watch query').selectOption('true');
    await page.getByRole('button', { name: 'Send' }).click();
    await bodyOf(page).filter({ hasText: '"type":"ADDED"' }).waitFor();
    const failed = page.waitForEvent('requestfailed', (request) => request.url().includes('watch=true'));
    await page.getByRole('button', { name: 'Log out' }).click();
    await failed;
    expect(await bodyOf(page).count()).toBe(0);
  });

  test('a token refresh that finishes after logging out of /docs does not log the user in again', async () => {
    const page = await loggedIn('admin', '#listNodes');
    await page.clock.setSystemTime(Date.now() + 3 * 60 * 60 * 1_000);
    const ended = Promise.withResolvers<void>();
    await page.route('**/oauth/token', async (route) => {
      const { status: code, text } = await call(`${secureGateway()}/oauth/token`, {
        method: 'POST',
        body: route.request().postData() ?? '',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      });
      await ended.promise;
      await route.fulfill({ status: code, body: text, contentType: 'application/json' });
    });
    const requestSent = page.waitForRequest('**/oauth/token');
    const responseReceived = page.waitForResponse('**/oauth/token');
    await page.getByRole('button', { name: 'Send' }).click();
    await requestSent;
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByText('You are logged out of this page.').waitFor();
    const sent: string[] = [];
    page.on('request', (request) => {
      if (request.url().includes(nodesPath)) sent.push(request.url());
    });
    ended.resolve();
    await responseReceived;
    await goTo(page, 'getNode');
    expect(await page.getByLabel('Send the access token').isDisabled()).toBe(true);
    expect(sent).toEqual([]);
  });

  test('/docs refreshes an expired token, and asks the user to log in again if the session was revoked', async () => {
    const page = await loggedIn('admin', '#listNodes');
    const before = tokens;
    await page.clock.setSystemTime(Date.now() + 3 * 60 * 60 * 1_000);
    expect(await send(page)).toContain('200: The list');
    await Promise.all(noted);
    expect(tokens?.access_token).not.toBe(before?.access_token);
    const ended = await call(`${secureGateway()}/oauth/revoke`, {
      method: 'POST',
      body: new URLSearchParams({ token: tokens?.refresh_token ?? '', client_id: 'platform-docs' }).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    expect(ended.status).toBe(200);
    await page.clock.setSystemTime(Date.now() + 6 * 60 * 60 * 1_000);
    await page.getByRole('button', { name: 'Send' }).click();
    await expectStatus(page, 'Your session has ended');
    await page.getByRole('button', { name: 'Log in' }).waitFor();
  });

  test('/docs asks the user to log in again when the server rejects the token', async () => {
    const page = await loggedIn('admin', '#listNodes');
    await call(`${secureGateway()}/oauth/revoke`, {
      method: 'POST',
      body: new URLSearchParams({ token: tokens?.refresh_token ?? '', client_id: 'platform-docs' }).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    expect(await send(page)).toMatch(/^401/);
    await expectAlert(page, 'no longer accepts this token');
    await page.getByRole('button', { name: 'Log in' }).waitFor();
  });
});

/** Returns the OAuth parameter `state` that /docs stores while the browser is at the login page. */
async function stateOf(page: Page): Promise<string> {
  const kept = await page.evaluate<string>("sessionStorage.getItem('platform-docs-login') ?? '{}'");
  return (JSON.parse(kept) as { state?: string }).state ?? '';
}

describe('a forged login response at /docs', () => {
  const attempts: readonly (readonly [string, Record<string, string>, RegExp])[] = [
    ['with another state', { code: 'c', state: 'another', iss: issuer }, /another login/],
    ['of another issuer', { code: 'c', iss: 'https://evil.example' }, /not from https:\/\/platform-apiserver/],
    ['with no issuer', { code: 'c' }, /not from/],
    ['with no code', { iss: issuer }, /no code/],
    ['with an error', { error: 'access_denied', error_description: markup, iss: issuer }, /access_denied/],
    ['with an invalid code', { code: 'made-up', iss: issuer }, /Your session has ended/],
  ];

  test.each(attempts)('a forged login response %s is rejected at /docs', async (_, query, message) => {
    const page = await openDocs('#listNodes');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByLabel('Username').waitFor();
    const state = new URL(page.url()).searchParams.get('state') ?? '';
    const started = state === '' ? await stateOf(page) : state;
    const exchanges: string[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/oauth/token')) exchanges.push(request.url());
    });
    await page.goto(`${issuer}/docs/callback?${new URLSearchParams({ state: started, ...query }).toString()}`);
    await expectAlert(page, message);
    expect(page.url()).toBe(`${issuer}/docs`);
    await page.getByRole('button', { name: 'Log in' }).waitFor();
    expect(exchanges.length).toBe(query['code'] === 'made-up' ? 1 : 0);
    expect(await page.title()).not.toBe('broken in');
    // A pending login ends with the first response, valid or not.
    await page.goto(
      `${issuer}/docs/callback?${new URLSearchParams({ code: 'c', state: started, iss: issuer }).toString()}`,
    );
    await expectAlert(page, 'not started in this tab');
  });

  test('a forged login response without a pending login is rejected at /docs', async () => {
    const page = await newPage();
    const query = new URLSearchParams({ code: 'of-an-attacker', state: 'of-an-attacker', iss: issuer });
    await page.goto(`${issuer}/docs/callback?${query.toString()}`);
    await expectAlert(page, 'not started in this tab');
  });
});

describe('an administrator at /docs', () => {
  test('an administrator at /docs lists nodes, and sees the request as a curl command and the response in colour', async () => {
    const page = await loggedIn('admin', '#listNodes');
    await unfold(page, 1);
    await page.getByLabel('limit query').fill('2');
    const curl = page.getByRole('region', { name: 'Code sample' });
    expect(await curl.textContent()).toBe(
      [
        `curl -sS '${issuer}${nodesPath}?limit=2'`,
        '-H "Authorization: Bearer $TOKEN"',
        "-H 'Accept: application/json'",
      ].join(' \\\n  '),
    );
    expect(await send(page)).toMatch(/^200: The list\. .* in [\d.]+ m?s\.$/);
    expect(await shown(page)).toMatchObject({ kind: 'NodeList', items: [{}, {}], totalItems: 7 });
    expect(await colored(page, 'json-key')).toEqual(expect.arrayContaining(['"kind"', '"totalItems"']));
    expect(await colored(page, 'json-string')).toContain('"NodeList"');
    expect(await colored(page, 'json-literal')).toContain('7');
    await page.getByText(/^Headers \d+$/).click();
    expect(await page.locator('.response details pre').textContent()).toMatch(/^audit-id: [\w-]+$/m);
  });

  test('an administrator at /docs exports logs without choosing a media type', async () => {
    const page = await loggedIn('admin', '#getLoggingLogs');
    await unfold(page, 1);
    await page.getByLabel('operation query').selectOption('export');
    expect(await send(page)).toMatch(/^200: The result of the operation\./);
    await page.getByText(/^Headers \d+$/).click();
    expect(await page.locator('.response details pre').textContent()).toMatch(/^content-type: text\/plain/m);
  });

  test('an administrator at /docs creates, patches and deletes a user', async () => {
    undo.push(() => removeUser(someone));
    const page = await loggedIn('admin', '#createIamUser');
    const body = page.getByLabel('Request body');
    expect(JSON.parse(await body.inputValue())).toMatchObject({ kind: 'User', metadata: { name: 'bob' } });
    const user = {
      apiVersion: 'iam.platform.io/v1alpha2',
      kind: 'User',
      metadata: { name: someone },
      spec: { displayName: "It's" },
    };
    await body.fill(JSON.stringify(user));
    expect(await page.getByRole('region', { name: 'Code sample' }).textContent()).toContain(`It'\\''s`);
    expect(await send(page)).toMatch(/^201/);
    expect(await get(`/apis/iam.platform.io/v1alpha2/users/${someone}`)).toMatchObject({
      spec: { displayName: "It's" },
    });

    await goTo(page, 'patchIamUser');
    await page.getByLabel('name', { exact: false }).first().fill(someone);
    await page.getByLabel('Request body').fill('{"spec":{"displayName":"Changed"}}');
    expect(await send(page)).toMatch(/^200/);
    expect(await shown(page)).toMatchObject({ spec: { displayName: 'Changed' } });

    await goTo(page, 'deleteIamUser');
    await page.getByLabel('name', { exact: false }).first().fill(someone);
    expect(await send(page)).toMatch(/^200/);
    await goTo(page, 'getIamUser');
    await page.getByLabel('name', { exact: false }).first().fill(someone);
    expect(await send(page)).toMatch(/^404: The object or the path does not exist/);
  });

  test('an administrator at /docs watches nodes until "Stop" is pressed or another operation is chosen', async () => {
    const page = await loggedIn('admin', '#listNodes');
    await unfold(page, 1);
    await page.getByLabel('watch query').selectOption('true');
    await page.getByLabel('sendInitialEvents').selectOption('true');
    await page.getByLabel('resourceVersionMatch').selectOption('NotOlderThan');
    await page.getByLabel('allowWatchBookmarks').selectOption('true');
    expect(await page.getByRole('region', { name: 'Code sample' }).textContent()).toMatch(/^curl -sSN /);
    await page.getByRole('button', { name: 'Send' }).click();
    await expectStatus(page, 'Streaming…');
    await bodyOf(page).filter({ hasText: '"type":"ADDED"' }).waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await expectStatus(page, 'Stopped after');
    expect(await page.getByRole('button', { name: 'Stop' }).isDisabled()).toBe(true);
    const lines = ((await bodyOf(page).textContent()) ?? '').trim().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { type: string }).type)).toContain('ADDED');

    await page.getByLabel('Response media type').selectOption('text/event-stream');
    await page.getByRole('button', { name: 'Send' }).click();
    await bodyOf(page).filter({ hasText: 'data: {' }).waitFor();
    // Choosing another operation aborts the watch.
    const failed = page.waitForEvent('requestfailed', (request) => request.url().includes('watch=true'));
    await goTo(page, 'getNode');
    await failed;
  });

  test('an administrator at /docs can scroll back in a watch while more events arrive', async () => {
    const page = await loggedIn('admin', '#listNodes');
    await unfold(page, 1);
    await page.getByLabel('watch query').selectOption('true');
    await page.getByRole('button', { name: 'Send' }).click();
    await bodyOf(page).filter({ hasText: '"type":"ADDED"' }).waitFor();
    const top = `document.querySelector('pre[aria-label="Response body"]').scrollTop`;
    await eventually('the response is scrolled to its end', async () => {
      if ((await page.evaluate<number>(top)) === 0) throw new Error('still at the start');
    });
    await page.evaluate(`${top} = 0`);
    undo.push(() => remove(nodePath(lateNode)));
    await createNode(lateNode);
    await bodyOf(page).filter({ hasText: lateNode }).waitFor();
    expect(await page.evaluate<number>(top)).toBe(0);
  });

  test('an administrator at /docs sets a password, which is shown neither on the page nor in the code sample', async () => {
    undo.push(() => removeUser(someone));
    await create('/apis/iam.platform.io/v1alpha2/users', {
      apiVersion: 'iam.platform.io/v1alpha2',
      kind: 'User',
      metadata: { name: someone },
    });
    const page = await loggedIn('admin', '#updateIamUserPassword');
    await page.getByLabel('name path').fill(someone);
    const password = page.getByLabel(/^password/);
    expect(await password.getAttribute('type')).toBe('password');
    await password.fill(passwords.alice);
    const curl = (await page.getByRole('region', { name: 'Code sample' }).textContent()) ?? '';
    expect(curl).toContain('--data-binary @-');
    expect(curl).not.toContain(passwords.alice);
    expect(await send(page)).toMatch(/^20/);
    expect((await login(someone, undefined, passwords.alice)).access_token).toEqual(expect.any(String));
  });

  test('an administrator at /docs reads hostile descriptions of custom resources as text', async () => {
    const page = await loggedIn('admin', '#createDocsExampleComV1NamespacedTrap');
    await expectAlert(page, 'There is no operation createDocsExampleComV1NamespacedTrap');
    await custom(page);
    await expectHeading(page, 'Create a Trap');
    await unfold(page, 4);
    await page.locator('p', { hasText: markup }).first().waitFor();
    await page.locator('code', { hasText: 'constructor' }).first().waitFor();
    expect(await page.locator('img, body script, iframe').count()).toBe(0);
    expect(await page.title()).toContain('Create a Trap');
    expect(JSON.parse(await page.getByLabel('Request body').inputValue())).toMatchObject({ kind: 'Trap' });
    expect(await found(page)).toEqual([]);

    // The operations of two kinds have the same name, and both work.
    await goTo(page, 'readDocsExampleComV1NamespacedTrapStatus');
    await expectHeading(page, 'Read the status of the Trap');
    await goTo(page, 'readDocsExampleComV1NamespacedTrapStatus_2');
    await expectHeading(page, 'Read the TrapStatus');
    await unfold(page, 3);
    await page
      .getByText(/ value-49 and 8950 more$/)
      .first()
      .waitFor();
    await page.getByText('1850 more', { exact: true }).first().waitFor();
    // Bidirectional marks in these texts do not affect other texts.
    for (const one of ['.schema .type', '.schema .name'])
      expect(await page.evaluate(`getComputedStyle(document.querySelector('${one}')).unicodeBidi`)).toBe('isolate');

    await goTo(page, 'listDocsExampleComV1TrapForAllNamespaces');
    expect(await send(page)).toMatch(/^200/);
    expect(await shown(page)).toMatchObject({ kind: 'TrapList', items: [] });
  });

  test('an administrator at /docs sees custom resources again after logging in again', async () => {
    const page = await loggedIn('admin');
    await custom(page);
    await goTo(page, 'createDocsExampleComV1NamespacedTrap');
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText('operations of custom resources loaded').waitFor();
    await expectHeading(page, 'Create a Trap');
  });
});

describe('a user without rights', () => {
  test('a user without rights sees at /docs why a request is forbidden', async () => {
    const page = await loggedIn(surfer, '#listNodes');
    expect(await send(page)).toMatch(/^403: The caller is not allowed to do this/);
    expect(await shown(page)).toMatchObject({ kind: 'Status', reason: 'Forbidden' });
    expect(await found(page)).toEqual([]);
  });

  test('a request that a visitor sends at /docs without logging in gets 401', async () => {
    const page = await openDocs('#listNodes');
    expect(await page.getByLabel('Send the access token').isDisabled()).toBe(true);
    expect(await send(page)).toMatch(/^401/);
    await page.getByRole('button', { name: 'Show custom resources' }).click();
    await expectAlert(page, 'Log in to see the custom resources');
  });
});

describe('a request at /docs that cannot be sent', () => {
  test('/docs marks the invalid input of a request that cannot be sent', async () => {
    const page = await openDocs('#getNode');
    await page.getByRole('button', { name: 'Send' }).click();
    await expectAlert(page, 'name: enter a value');
    await page.locator('input[aria-invalid=true]:focus').waitFor();
    expect(await found(page)).toEqual([]);
    await page.keyboard.type('..');
    await page.keyboard.press('Enter');
    await expectAlert(page, '".." cannot be sent');
    // The Copy button also rejects the value.
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.locator('input[aria-invalid=true]:focus').waitFor();
    expect(await page.getByRole('button', { name: 'Copy', exact: true }).count()).toBe(1);
  });

  test('/docs reports that the server cannot be reached', async () => {
    const page = await openDocs('#getKapisVersion');
    await page.context().setOffline(true);
    await page.getByRole('button', { name: 'Send' }).click();
    await expectStatus(page, 'No response: the server cannot be reached');
    await page.context().setOffline(false);
    expect(await send(page)).toMatch(/^200/);
  });

  test('/docs can reload the OpenAPI description after a failure', async () => {
    const page = await newPage();
    await page.route('**/swagger/*', (route) => route.abort());
    await page.goto(`${issuer}/docs`);
    await expectAlert(page, 'could not be loaded');
    await page.unroute('**/swagger/*');
    await page.getByRole('button', { name: 'Try again' }).click();
    await expectHeading(page, /^platform-apiserver/);
  });
});

test('/docs does not follow redirects in responses to requests', async () => {
  const page = await openDocs('#getOauthAuthorize');
  await unfold(page, 1);
  await page.getByLabel(/^client_id/).fill('platform-docs');
  await page.getByLabel(/^redirect_uri/).fill(`${issuer}/docs/callback`);
  await page.getByRole('button', { name: 'Send' }).click();
  await expectStatus(page, 'The response is a redirect.');
});

test('sending a request again at /docs aborts the previous request', async () => {
  const page = await loggedIn('admin', '#listNodes');
  await unfold(page, 1);
  await page.getByLabel('watch query').selectOption('true');
  await page.getByRole('button', { name: 'Send' }).click();
  await expectStatus(page, 'Streaming…');
  await page.getByLabel('watch query').selectOption('false');
  await page.getByRole('button', { name: 'Send' }).click();
  await status(page)
    .filter({ hasText: / in [\d.]+ m?s\.$/ })
    .waitFor();
  expect(await shown(page)).toMatchObject({ kind: 'NodeList' });
  expect(await page.getByRole('button', { name: 'Stop' }).isDisabled()).toBe(true);
});

test('/docs shows only the first 200,000 characters of a large response', async () => {
  const page = await openDocs('#getSwaggerPlatformV3Json');
  expect(await send(page)).toMatch(/^200/);
  await page.getByText(/^Showing only the first part of \d+\.\d KiB\.$/).waitFor();
  expect(((await bodyOf(page).textContent()) ?? '').length).toBe(200_000);
});

test('/docs sends an OAuth request as a form, and omits its secrets from the code sample', async () => {
  const page = await openDocs('#postOauthToken');
  const { refresh_token: token } = await login('alice');
  await page.getByLabel('grant_type').selectOption('refresh_token');
  await page
    .getByLabel('refresh_token', { exact: true })
    .or(page.locator('input[type=password]').nth(1))
    .first()
    .waitFor();
  for (const [name, value] of [
    ['refresh_token', token],
    ['client_secret', 'platform'],
    ['client_id', 'platform'],
  ] as const)
    await page
      .locator('label', { has: page.locator(`code:text-is("${name}")`) })
      .locator('xpath=..')
      .locator('input')
      .fill(value);
  const curl = (await page.getByRole('region', { name: 'Code sample' }).textContent()) ?? '';
  expect(curl).toContain('"refresh_token=$REFRESH_TOKEN"');
  expect(curl).toContain('"client_secret=$CLIENT_SECRET"');
  expect(curl).not.toContain(token);
  expect(await send(page)).toMatch(/^200/);
});

describe('a code sample at /docs', () => {
  test('a code sample at /docs can be copied to the clipboard', async () => {
    const page = await openDocs('#getKapisVersion', { permissions: ['clipboard-read', 'clipboard-write'] });
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(
      `curl -sS '${issuer}/kapis/version' \\\n  -H 'Accept: application/json'`,
    );
  });

  test('a code sample at /docs is shown in the language that was chosen last', async () => {
    const page = await openDocs('#getKapisVersion');
    const sample = page.getByRole('region', { name: 'Code sample' });
    const language = page.getByLabel('Language of the code sample');
    for (const [name, start] of [
      ['TypeScript', 'const response = await fetch('],
      ['Python', 'import urllib.request'],
      ['Go', 'package main'],
    ] as const) {
      await language.selectOption(name);
      expect((await sample.textContent())?.slice(0, start.length)).toBe(start);
      await sample.filter({ hasText: `"${issuer}/kapis/version"` }).waitFor();
    }
    await goTo(page, 'listNodes');
    expect(await language.inputValue()).toBe('Go');
    await sample.filter({ hasText: `"${issuer}${nodesPath}"` }).waitFor();
    await goTo(page, 'getNode');
    await sample.filter({ hasText: 'name: enter a value' }).waitFor();
    await page.getByText('add SSL_CERT_FILE=FILE with ca.crt').waitFor();
  });
});

describe('the examples at /docs', () => {
  const example = { apiVersion: 'iam.platform.io/v1alpha2', kind: 'User', metadata: { name: 'of-the-example' } };

  interface Document {
    readonly paths: Readonly<Record<string, Readonly<Record<string, object | undefined>> | undefined>>;
  }

  /** Opens /docs with these properties added to an operation in the OpenAPI description. */
  async function openWith(path: string, method: string, more: object): Promise<Page> {
    const page = await newPage();
    await page.route('**/swagger/platform.v3.json', async (route) => {
      const document = JSON.parse((await call(`${secureGateway()}/swagger/platform.v3.json`)).text) as Document;
      Object.assign(document.paths[path]?.[method] ?? {}, more);
      await route.fulfill({ json: document });
    });
    await page.goto(`${issuer}/docs`);
    return page;
  }

  test('the examples at /docs fill in the request body, and are shown with responses and parameters', async () => {
    const media = { 'application/json': { schema: {}, example } };
    const page = await openWith('/kapis/iam.platform.io/v1alpha2/users', 'post', {
      description: 'What it does:\n\n- `this`\n- that',
      requestBody: { required: true, content: media },
      parameters: [{ name: 'dryRun', in: 'query', description: 'Whether to try only.', schema: {}, example: 'All' }],
      responses: { 201: { description: 'Created', content: media } },
    });
    await goTo(page, 'createIamUser');
    expect(await page.getByRole('article').getByRole('listitem').first().textContent()).toBe('this');
    const body = page.getByLabel('Request body');
    expect(JSON.parse(await body.inputValue())).toEqual(example);
    await body.fill('');
    await page.getByRole('button', { name: 'Insert example' }).click();
    expect(JSON.parse(await body.inputValue())).toEqual(example);
    await page.getByRole('region', { name: 'Code sample' }).filter({ hasText: 'of-the-example' }).waitFor();
    await page.getByText('Whether to try only. any value Example: All').waitFor();
    await unfold(page);
    const shownExample = page.getByRole('group', { name: 'Example', exact: true });
    expect(JSON.parse((await shownExample.textContent()) ?? '')).toEqual(example);
    expect(await colored(page, 'json-key')).toContain('"metadata"');
    expect(await found(page)).toEqual([]);
  });

  test('the examples at /docs can be chosen by title, and also fill in forms', async () => {
    const schema = { type: 'object', properties: { grant_type: { type: 'string' }, username: { type: 'string' } } };
    const examples = {
      password: { summary: 'With a password', value: { grant_type: 'password', username: 'alice' } },
      refresh: { value: { grant_type: 'refresh_token' } },
    };
    const page = await openWith('/oauth/token', 'post', {
      requestBody: { required: true, content: { 'application/x-www-form-urlencoded': { schema, examples } } },
    });
    await goTo(page, 'postOauthToken');
    const sample = page.getByRole('region', { name: 'Code sample' });
    await page.getByRole('button', { name: 'Insert example: With a password' }).click();
    await sample.filter({ hasText: 'username=alice' }).waitFor();
    await page.getByRole('button', { name: 'Insert example: refresh' }).click();
    await sample.filter({ hasText: 'grant_type=refresh_token' }).waitFor();
    expect(await sample.textContent()).not.toContain('username');
  });

  test('the examples at /docs are shown as plain text, whatever they contain', async () => {
    const content = { 'text/plain': { example: markup }, 'application/json': { example: { [markup]: markup } } };
    const page = await openWith('/kapis/version', 'get', { responses: { 200: { description: markup, content } } });
    await goTo(page, 'getKapisVersion');
    await unfold(page);
    await page.locator('pre', { hasText: markup }).first().waitFor();
    expect(await page.locator('img, body script').count()).toBe(0);
    expect(await page.title()).not.toBe('broken in');
  });
});

describe('the operations at /docs', () => {
  test('the operations at /docs can be found by words, and each has its own URL', async () => {
    const page = await openDocs();
    await page.getByLabel('Find an operation').fill('unlock post');
    await page.getByText('1 operation found').waitFor();
    await page.getByRole('link', { name: /unlock/ }).click();
    await page.locator('h2:focus').waitFor();
    expect(page.url()).toBe(`${issuer}/docs#createIamUserUnlock`);
    await page.getByLabel('Find an operation').fill('no such thing');
    await page.getByText('0 operations found').waitFor();
  });

  test('the operations at /docs are in groups with descriptions', async () => {
    const page = await openDocs();
    await page.getByRole('navigation').getByText('Objects of the cluster').click();
    const link = page.getByRole('link', { name: 'List or watch objects of kind Node' });
    await link.waitFor();
    expect(await link.getAttribute('href')).toBe('#listNodes');
  });

  test('the operations of HTML pages and removed endpoints are collapsed under "Other" at /docs', async () => {
    const page = await openDocs();
    const navigation = page.getByRole('navigation');
    await navigation.locator('summary', { hasText: 'server' }).waitFor();
    const removed = navigation.locator('summary', { hasText: 'removed' });
    expect(await removed.isVisible()).toBe(false);
    await navigation.getByText('Other', { exact: true }).click();
    await removed.click();
    await page
      .getByRole('link', { name: /fluentbit/ })
      .first()
      .waitFor();
  });

  test.each([
    ['getLoggingLogs', ['operation', 'log_query', 'start_time'], ['container_query', 'timeout']],
    ['listNodes', ['limit', 'labelSelector', 'watch'], ['ownerKind', 'resourceVersion']],
  ])('the operation %s at /docs shows the most used parameters first', async (id, shownFields, folded) => {
    const page = await openDocs(`#${id}`);
    const field = (name: string): ReturnType<Page['locator']> => page.getByLabel(`${name} query`, { exact: true });
    for (const name of shownFields) expect([name, await field(name).isVisible()]).toEqual([name, true]);
    for (const name of folded) expect([name, await field(name).isVisible()]).toEqual([name, false]);
    await page.getByText(/^\d+ more parameters$/).click();
    for (const name of folded) expect([name, await field(name).isVisible()]).toEqual([name, true]);
    // The form does not show the regular expressions of the schema.
    expect(await page.getByRole('form', { name: 'Try it' }).textContent()).not.toContain('matches ^');
  });

  test('the operations visited at /docs are added to the browser history', async () => {
    const page = await openDocs('#listNodes');
    await goTo(page, 'getNode');
    await goTo(page, 'listIamUsers');
    await page.goBack();
    await expectHeading(page, 'Get an object of kind Node');
    await page.goBack();
    await expectHeading(page, 'List or watch objects of kind Node');
    await page.goForward();
    await expectHeading(page, 'Get an object of kind Node');
  });

  test('navigating back in the browser history of /docs after a login requires no second login', async () => {
    const page = await loggedIn('admin', '#listNodes');
    await goTo(page, 'getNode');
    await page.goBack();
    await expectHeading(page, 'List or watch objects of kind Node');
    await page.getByText('Logged in as admin').waitFor();
  });

  test.each([
    ['#<img src=x onerror=alert(1)>'],
    ['#%3Cscript%3Edocument.title=%22broken in%22%3C/script%3E'],
    ['#%'],
    ['#__proto__'],
    ['#constructor'],
    ['#javascript:alert(1)'],
  ])('/docs ignores the malformed URL fragment %s', async (hash) => {
    const page = await openDocs(hash);
    await expectAlert(page, /There is no (?:such )?operation/);
    expect(await page.locator('img, body script').count()).toBe(0);
    expect(await page.title()).toMatch(/^platform-apiserver/);
  });
});

test('a link cannot insert text into the page /docs', async () => {
  const page = await openDocs('#Your%20session%20is%20over:%20call%20555%200100');
  await expectAlert(page, 'There is no such operation');
  expect(await page.getByText('555').count()).toBe(0);
});

test('a site that opens /docs in a window cannot navigate that window, and a login in the window succeeds', async () => {
  sites.pages.set('https://evil.example/', `<button onclick="it = window.open('${issuer}/docs')">Open</button>`);
  const context = await browser.newContext();
  const evil = await context.newPage();
  await evil.goto('https://evil.example/');
  const opened = context.waitForEvent('page');
  await evil.getByRole('button', { name: 'Open' }).click();
  const page = await opened;
  await page.getByRole('button', { name: 'Log in' }).waitFor();
  expect(await page.evaluate('opener')).toBeNull();
  await evil.evaluate("it.location = 'https://evil.example/another'");
  await note(page);
  await page.getByRole('button', { name: 'Log in' }).click();
  await logIn(page);
  await expectLoggedIn(page, surfer);
  expect(page.url()).toBe(`${issuer}/docs`);
});

test('the current operation at /docs is visible in the forced colours mode', async () => {
  const page = await openDocs('#listNodes', { forcedColors: 'active' });
  const colorOf = (selector: string): Promise<unknown> =>
    page.evaluate(`getComputedStyle(document.querySelector('${selector}')).borderLeftColor`);
  expect(await colorOf('nav a[aria-current]')).not.toBe(await colorOf('nav a:not([aria-current])'));
});

test('scripts cannot create markup from text at /docs', async () => {
  const page = await openDocs();
  const attempt = (code: string): Promise<unknown> =>
    page.evaluate(`(() => { try { ${code}; return 'done'; } catch (error) { return error.name; } })()`);
  expect(await attempt("document.body.innerHTML = '<b>x</b>'")).toBe('TypeError');
  expect(await attempt("trustedTypes.createPolicy('x', { createHTML: (text) => text })")).toBe('TypeError');
  expect(await attempt("document.createElement('script').src = '/docs'")).toBe('TypeError');
  complaints.length = 0;
});

describe('/docs at an address other than the issuer', () => {
  test('/docs at an address other than the issuer links to the issuer and accepts an access token', async () => {
    const page = await newPage();
    await page.goto(`${gateway()}/docs#listNodes`);
    const link = page.getByRole('link', { name: `${issuer}/docs` });
    await link.waitFor();
    expect(await link.getAttribute('href')).toBe(`${issuer}/docs#listNodes`);
    await page.getByText('Use an access token', { exact: true }).click();
    await page.getByText('plain HTTP').waitFor();
    expect(await found(page)).toEqual([]);
    await page.getByLabel('Access token', { exact: true }).fill('no token');
    await page.getByRole('button', { name: 'Use token' }).click();
    await expectAlert(page, 'The access token was rejected');
    await page.getByLabel('Access token', { exact: true }).fill(await adminToken());
    await page.getByRole('button', { name: 'Use token' }).click();
    await page.getByText('Logged in as admin').waitFor();
    expect(await send(page)).toMatch(/^200/);
    expect(await page.evaluate('JSON.stringify([{...localStorage}, {...sessionStorage}])')).toBe('[{},{}]');
    await page.getByRole('button', { name: 'Log out' }).click();
    // The page does not revoke pasted tokens.
    expect((await call(`${gateway()}${nodesPath}?limit=0`, { token: await adminToken() })).status).toBe(200);
  });

  test('/docs at an address other than the issuer rejects a login response', async () => {
    const page = await newPage();
    await page.goto(`${gateway()}/docs/callback?code=c&state=s&iss=${encodeURIComponent(issuer)}`);
    await expectAlert(page, 'not started in this tab');
  });
});

test('/docs without JavaScript links to the OpenAPI descriptions', async () => {
  const page = await newPage({ javaScriptEnabled: false });
  await page.goto(`${issuer}/docs`);
  await page.getByText('This page needs JavaScript').waitFor();
  const links = await page.getByRole('link').all();
  const addresses = await Promise.all(links.map((link) => link.getAttribute('href')));
  for (const address of addresses)
    expect((await call(new URL(address ?? '', `${secureGateway()}/docs`).href)).status).toBe(200);
  expect(addresses).toHaveLength(2);
});

describe('/docs with only the keyboard', () => {
  test('users can find an operation at /docs, send the request and read the response with only the keyboard', async () => {
    const page = await openDocs();
    const { keyboard } = page;
    const tabTo = async (selector: string): Promise<void> => {
      for (let presses = 0; presses < 80; presses += 1) {
        await keyboard.press('Tab');
        if ((await page.locator(`${selector}:focus`).count()) > 0) return;
      }
      throw new Error(`Tab does not come to ${selector}`);
    };
    await tabTo('#filter');
    await keyboard.type('getKapisVersion');
    await tabTo('nav a');
    await keyboard.press('Enter');
    await page.locator('h2:focus').waitFor();
    await tabTo('main form button');
    await keyboard.press('Enter');
    await expectStatus(page, '200');
    await tabTo('pre[aria-label="Response body"]');
    expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).toBe('solid');
  });

  test('the list of operations at /docs can be skipped with only the keyboard, and logging in succeeds', async () => {
    const page = await openDocs('#listNodes');
    const { keyboard } = page;
    await keyboard.press('Tab');
    await page.locator('.skip:focus').waitFor();
    await keyboard.press('Enter');
    await page.locator('main:focus').waitFor();
    await page.getByRole('button', { name: 'Log in' }).focus();
    await keyboard.press('Enter');
    await page.locator('#username:focus').waitFor();
    await keyboard.type(surfer);
    await keyboard.press('Tab');
    await keyboard.type(passwords.alice);
    await keyboard.press('Enter');
    await expectLoggedIn(page, surfer);
  });

  test('every control of /docs can be reached with the Tab key and has a visible focus indicator', async () => {
    const page = await openDocs('#postOauthRevoke');
    const count = await page
      .locator('a[href], button:not([disabled]), input:not([disabled]), select, textarea, summary, pre[tabindex]')
      .filter({ visible: true })
      .count();
    const reached = new Map<string, boolean>();
    for (let presses = 0; presses < count + 5; presses += 1) {
      await page.keyboard.press('Tab');
      const [name, shows] = await page.evaluate<[string, boolean]>(`(() => {
        const all = [...document.querySelectorAll('*')];
        const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
        return [all.indexOf(document.activeElement) + document.activeElement.outerHTML.slice(0, 200), outlineStyle === 'solid' && parseFloat(outlineWidth) >= 2];
      })()`);
      if (!name.includes('<body')) reached.set(name, shows);
    }
    expect([...reached].filter(([, shows]) => !shows)).toEqual([]);
    expect(reached.size).toBe(count);
  });
});

describe.each(['light', 'dark'] as const)('/docs in %s mode', (colorScheme) => {
  const options: BrowserContextOptions = { colorScheme, reducedMotion: 'reduce' };

  test('axe-core finds no problem at /docs', async () => {
    const page = await openDocs('', options);
    expect(await colorSchemeOf(page)).toBe(colorScheme);
    expect(await found(page)).toEqual([]);
    for (const id of ['listNodes', 'patchIamUser', 'postOauthToken', 'getLoggingWorkspace', 'getKapisVersion']) {
      await goTo(page, id);
      await unfold(page);
      expect([id, await found(page)]).toEqual([id, []]);
    }
    await send(page);
    expect(await found(page)).toEqual([]);
    await page.getByRole('button', { name: 'Log in' }).click();
    await logIn(page);
    await page.getByText(`Logged in as ${surfer}`).waitFor();
    expect(await found(page)).toEqual([]);
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByText('You are logged out of this page.').waitFor();
    expect(await found(page)).toEqual([]);
  });

  test('/docs fits into a window of 320 pixels', async () => {
    const page = await loggedIn(surfer, '', { ...options, viewport: { width: 320, height: 480 } });
    const width = (): Promise<unknown> => page.evaluate('document.documentElement.scrollWidth');
    expect(await width()).toBe(320);
    const toggle = page.getByRole('button', { name: 'Operations' });
    expect(await toggle.getAttribute('aria-expanded')).toBe('false');
    await toggle.click();
    await page.getByLabel('Find an operation').fill('namespaces');
    expect(await width()).toBe(320);
    expect(await found(page)).toEqual([]);
    await page.getByRole('link', { name: /…\/namespaces\/\{namespace\}\/\{resources\}\/\{name\}/ }).click();
    await expectHeading(page, /./);
    expect(await page.getByLabel('Find an operation').isVisible()).toBe(false);
    for (const id of ['listNodes', 'createIamUser', 'postOauthToken', 'getSwaggerPlatformV3Json']) {
      await page.evaluate(`location.hash = '${id}'`);
      await page.locator(`main a[href="#${id}"]`).waitFor();
      await unfold(page);
      expect([id, await width()]).toEqual([id, 320]);
    }
    await send(page);
    expect(await width()).toBe(320);
    expect(await found(page)).toEqual([]);
  });
});
