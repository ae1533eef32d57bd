/** Tests common properties of all pages: form targets, the field with the focus, errors and redirects. */
import { describe, expect, test } from '@jest/globals';
import { createHash } from 'node:crypto';
import { unreachable } from '../../../src/cluster/client/kube-error.ts';
import { allRecorded } from '../../../src/http/records.ts';
import { sendRequest, type AppResponse } from '../../fakes/request.ts';
import { Browser, formIn } from '../../fakes/browser.ts';
import { logOfLines } from '../../fakes/log.ts';
import { rightPassword } from '../../labs/accounts.ts';
import { createLab, type Lab } from '../../labs/oauth.ts';

const https = 'https://console.example/callback';
const app = 'com.example.app:/callback';
const clients = [
  { name: 'console', public: true, redirectURIs: [https, app, 'http://127.0.0.1/callback', 'http://[::1]/callback'] },
];
const asAlice = { username: 'alice', password: rightPassword };
const request = {
  response_type: 'code',
  client_id: 'console',
  redirect_uri: https,
  code_challenge: createHash('sha256').update('v'.repeat(43)).digest('base64url'),
  code_challenge_method: 'S256',
};
const authorize = (fields: Readonly<Record<string, string>> = {}): string =>
  `/oauth/authorize?${new URLSearchParams({ ...request, ...fields }).toString()}`;

/** Returns a browser and the paths that it has requested. */
function browserOf({ app: listener }: Lab): { browser: Browser<AppResponse>; paths: string[] } {
  const paths: string[] = [];
  const browser = new Browser((path, options) => {
    paths.push(path);
    return sendRequest(listener, path, options);
  });
  return { browser, paths };
}
const open = async (): Promise<Browser<AppResponse>> => browserOf(await createLab({ clients })).browser;

test.each([
  [https, 'https:', 'console.example'],
  [app, 'https: com.example.app:', 'com.example.app:'],
  ['http://127.0.0.1:8000/callback', 'https: http://127.0.0.1:8000', '127.0.0.1:8000'],
  // A source expression cannot name an IPv6 address.
  ['http://[::1]:8000/callback', 'https: http:', '[::1]:8000'],
])(
  'the forms on pages that redirect to %s are allowed to submit to this server and to %s',
  async (redirect_uri, sources, shown) => {
    const browser = await open();
    const login = await browser.open(authorize({ redirect_uri }));
    const consent = await browser.submit(login, asAlice);
    for (const { headers } of [login, consent])
      expect(headers['content-security-policy']).toContain(`; form-action 'self' ${sources}; base-uri 'none'`);
    expect(consent.text).toContain(`You will be redirected to ${shown}.`);
  },
);

test.each(['/oauth/login', '/oauth/account', '/oauth/device?redirect_uri=x'])(
  'the forms of %s are allowed to submit only to this server',
  async (path) => {
    const { headers } = await (await open()).open(path);
    expect(headers['content-security-policy']).toContain("; form-action 'self'; base-uri 'none'");
  },
);

/** Returns the names of the fields with the focus. The suffix "!" means that the error message describes the field. */
const focused = ({ text }: AppResponse): string[] =>
  [...text.matchAll(/<input\s[^>]*\bautofocus[^>]*>/g)].map(
    ([tag]) => `${/name="(\w+)"/.exec(tag)?.[1] ?? ''}${tag.includes('aria-describedby="problem"') ? '!' : ''}`,
  );
const isProblem = ({ text }: AppResponse): boolean => text.includes('role="alert" id="problem"');

describe('the field with the focus', () => {
  test.each<[string, (browser: Browser<AppResponse>) => Promise<AppResponse>, string[]]>([
    ['the login page', (browser) => browser.open('/oauth/login'), ['username']],
    ['a login page with a username', (browser) => browser.open(authorize({ login_hint: 'bob' })), ['password']],
    [
      'the login page after a failed login',
      async (browser) => browser.submit(await browser.open('/oauth/login'), { ...asAlice, password: 'wrong' }),
      ['password!'],
    ],
    [
      'the login page after a login without a username',
      async (browser) => browser.submit(await browser.open('/oauth/login'), { password: 'wrong' }),
      ['username!'],
    ],
    [
      'the page for a user code',
      async (browser) => browser.submit(await browser.open('/oauth/device'), asAlice),
      ['user_code'],
    ],
    [
      'the page for a user code after a wrong code',
      async (browser) =>
        browser.submit(await browser.submit(await browser.open('/oauth/device'), asAlice), { user_code: 'x' }),
      ['user_code!'],
    ],
  ])(
    'the field to fill in has the focus, and is linked to the error message after an error, on %s',
    async (_, go, expected) => {
      const page = await go(await open());
      expect(focused(page)).toEqual(expected);
      expect(isProblem(page)).toBe(expected[0]?.endsWith('!'));
    },
  );

  test('no field of the account page has the focus before a password change is rejected, and then the current password has the focus', async () => {
    const made = await createLab();
    await made.putUser('bob');
    const { browser } = browserOf(made);
    const page = await browser.submit(await browser.open('/oauth/account'), { ...asAlice, username: 'bob' });
    expect(focused(page)).toEqual([]);
    const refused = await browser.submit(page, { password: 'wrong', new_password: 'a', new_password_again: 'a' });
    expect(focused(refused)).toEqual(['password!']);
  });
});

describe('the redirect after a login', () => {
  test.each<[string, Record<string, string>, Record<string, string>]>([
    ['without prompt=login', { prompt: 'login' }, {}],
    ['without prompt=select_account', { prompt: 'select_account' }, {}],
    ['with the rest of the prompt', { prompt: 'login consent' }, { prompt: 'consent' }],
    ['without max_age', { max_age: '0', state: 'a b' }, { state: 'a b' }],
  ])('the redirect after a login repeats the original request %s', async (_, given, left) => {
    const { browser, paths } = browserOf(await createLab({ clients }));
    await browser.submit(await browser.open(authorize(given)), asAlice);
    const [path = '', query] = (paths.at(-1) ?? '').split('?');
    expect([path, Object.fromEntries(new URLSearchParams(query))]).toEqual([
      '/oauth/authorize',
      { ...request, ...left },
    ]);
  });

  test('the redirect after a login leads to the path of the original request if the request has no parameters', async () => {
    const { browser, paths } = browserOf(await createLab());
    await browser.submit(await browser.open('/oauth/account'), asAlice);
    expect(paths).toEqual(['/oauth/account', '/oauth/login', '/oauth/account']);
  });
});

test('redirects of the OAuth pages have no body, and Cache-Control: no-store', async () => {
  const response = await (await open()).open(authorize({ prompt: 'none' }));
  expect(response).toMatchObject({
    status: 303,
    text: '',
    headers: { 'cache-control': 'no-store', 'content-length': '0' },
  });
});

test('the consent page for a request without a scope lists only the permission that every client has', async () => {
  const browser = await open();
  const consent = await browser.submit(await browser.open(authorize()), asAlice);
  expect(consent.text.match(/<li>/g)).toHaveLength(1);
});

test('the page for an internal failure shows the audit ID of the log line, and a rejected request is not logged as an error', async () => {
  const { log, lines } = logOfLines();
  const made = await createLab({ clients }, { log });
  const { browser } = browserOf(made);
  const errors = (): unknown[] =>
    lines()
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ level }) => level === 'error');
  await browser.submit(await browser.open('/oauth/account'), asAlice);
  expect((await browser.open('/oauth/authorize')).status).toBe(400);
  await allRecorded();
  expect(errors()).toEqual([]);
  made.client.before = () => {
    throw unreachable(new Error('the socket hung up'));
  };
  const { status, text, headers } = await browser.open('/oauth/logout');
  expect({ status, title: /<h1>(.*)<\/h1>/.exec(text)?.[1] }).toEqual({ status: 503, title: 'Something went wrong' });
  expect(text).toContain(`Request ID: ${String(headers['audit-id'])}`);
  const error = { message: 'kube-apiserver cannot be reached: the socket hung up' };
  expect(errors()).toMatchObject([{ auditID: headers['audit-id'], error }]);
  const sentBack = await browser.open(authorize());
  expect(sentBack.headers['location']).toContain('error=temporarily_unavailable');
  expect(errors().slice(1)).toMatchObject([{ auditID: sentBack.headers['audit-id'], error }]);
});

test('a logout removes the login cookie from the browser', async () => {
  const made = await createLab();
  const { browser } = browserOf(made);
  await browser.submit(await browser.open('/oauth/login'), asAlice);
  const page = await browser.open('/oauth/logout');
  const done = await browser.submit(page, {});
  expect(done.headers['set-cookie']).toEqual([
    '__Host-platform-login=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0',
  ]);
  expect(formIn(page.text).action).toBe('/oauth/logout/confirm');
});

test.each([
  '/oauth/login',
  '/oauth/login/sso',
  '/oauth/consent',
  '/oauth/logout/confirm',
  '/oauth/device',
  '/oauth/account',
])('a form sent to %s without the form token of the page gets 403, whatever other fields are missing', async (path) => {
  const browser = await open();
  await browser.open('/oauth/login');
  expect((await browser.send(path, { other: 'x' })).status).toBe(403);
});
