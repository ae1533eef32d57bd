/**
 * Callers choose strings but must not choose how much memory the server uses for them. The server gets 10,000 distinct
 * strings of 64 KiB in each place that could keep something: limiters, caches, codes, sessions, reviews. Every other
 * string of every endpoint gets 50 values, from both authenticated and anonymous callers. The heap is limited to
 * 256 MiB.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import https from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { responseTo, type AppResponse, type AppRequest } from '../fakes/request.ts';
import { Browser, formIn } from '../fakes/browser.ts';
import { craftJWT } from '../fakes/jwt.ts';
import { sendAll, type Sent, type Target } from './hostile/sender.ts';
import { client, password } from './hostile/site.ts';
import { hostileStrings, pathOf, type Description, type Frame, type HostileString } from './hostile/strings.ts';

/**
 * Full run, in `make fuzz`. A kept value takes 128 KiB, so few values already reveal it; more values reveal small
 * leaks.
 */
const isWhole = process.env['FUZZ'] !== undefined;
const kibibyte = 1_024;
/** Allowed growth of the memory in bytes. */
const limit = 20 * kibibyte * kibibyte;
const many = isWhole ? 10_000 : 1_000;
const few = isWhole ? 50 : 5;

let child: ChildProcess;
let ports: { readonly http: number; readonly https: number; readonly aggregated: number };
let frontProxy: { readonly key: string; readonly cert: string };
/** Token of alice, who is allowed to do everything. */
let token: string;
let cookie: string;
let formToken: string;
let strings: readonly HostileString[];

/** Returns the memory of the server after a garbage collection: heap and external bytes. */
async function memory(): Promise<number> {
  child.send('memory');
  const [bytes] = (await once(child, 'message')) as [number];
  return bytes;
}

/**
 * Returns the bytes over the limit. Closed sockets, timers and streams free their memory some time after the last
 * response.
 */
async function excessBytes(before: number): Promise<number> {
  const deadline = performance.now() + 60_000;
  for (;;) {
    const over = Math.max(0, (await memory()) - before - limit);
    if (over === 0 || performance.now() > deadline) return over;
    await sleep(250);
  }
}

const send = (path: string, { method = 'GET', headers = {}, body }: AppRequest = {}): Promise<AppResponse> =>
  responseTo(
    https.request({
      host: '127.0.0.1',
      port: ports.https,
      rejectUnauthorized: false,
      agent: false,
      method,
      path,
      headers,
    }),
    body,
  );

beforeAll(async () => {
  child = fork('test/conformance/hostile/main.ts', { execArgv: ['--max-old-space-size=256'] });
  const [received] = (await once(child, 'message')) as [{ ports: typeof ports; frontProxy: typeof frontProxy }];
  ({ ports, frontProxy } = received);
  const login = post('/oauth/token', { ...client, grant_type: 'password', username: 'alice', password });
  token = String((await send(login.path, login)).json()['access_token']);
  const browser = new Browser(send);
  const page = await browser.submit(await browser.open('/oauth/device'), { username: 'alice', password });
  formToken = formIn(page.text).fields['form_token'] ?? '';
  cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  strings = hostileStrings((await send('/swagger/platform.v3.json')).json() as unknown as Description);
});
afterAll(() => child.disconnect());

/** Number of characters that the server accepts in each place, at most 64 KiB. */
const sizes = { path: 8_000, query: 62_000, header: 62_000, form: 63_000, json: 64 * kibibyte };

const plain = (index: number, size: number): string => `${index}-`.padEnd(size, 'x');
/** Contains a percent-encoded character beyond Latin-1, so that V8 stores two bytes per decoded character. */
const encoded = (index: number, size: number): string => `${index}-%E2%82%AC`.padEnd(size, 'x');
const decoded = (index: number, size: number): string => `${index}-\u20ac`.padEnd(size, 'x');

type Pairs = Readonly<Record<string, string>>;

const pairsOf = (fields: Pairs, more: Pairs): string =>
  [new URLSearchParams(fields).toString(), ...Object.entries(more).map(([name, value]) => `${name}=${value}`)]
    .filter((text) => text !== '')
    .join('&');

/** Returns a form post; `more` are fields that are already encoded. */
const post = (path: string, fields: Pairs, more: Pairs = {}, headers: Pairs = {}): Sent => ({
  method: 'POST',
  path,
  headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
  body: pairsOf(fields, more),
});

function nested([first, ...rest]: readonly string[], value: string): unknown {
  if (first === undefined || first === '') return value;
  return first === '0' ? [nested(rest, value)] : { [first]: nested(rest, value) };
}

const isPage = ({ path, form }: Frame): boolean => path.startsWith('/oauth/') && form?.['client_secret'] === undefined;

const identityOf = (frame: Frame): Record<string, string> =>
  isPage(frame) ? { cookie } : { authorization: `Bearer ${token}` };

function requestOf({ frame, place, name }: HostileString, index: number, isKnown: boolean): Sent {
  const { method, path, type, form = {} } = frame;
  const hostile = (where: HostileString['place'], make = encoded): Pairs =>
    place === where ? { [name]: make(index, sizes[place]) } : {};
  const others: Record<string, string> = { ...form, ...(isPage(frame) ? { form_token: formToken } : {}) };
  delete others[name];
  const body =
    place === 'json'
      ? JSON.stringify(nested(name.split('.'), decoded(index, sizes.json)))
      : pairsOf(others, hostile('form'));
  const query = pairsOf(frame.query ?? {}, hostile('query'));
  const filled = pathOf(path, place === 'path' ? name : undefined).replace(`{${name}}`, encoded(index, sizes.path));
  return {
    method,
    path: query === '' ? filled : `${filled}?${query}`,
    headers: {
      ...(type === undefined ? {} : { 'content-type': type }),
      ...(isKnown ? identityOf(frame) : {}),
      ...hostile('header', plain),
    },
    ...(type === undefined ? {} : { body }),
  };
}

const nodes = 'resources.platform.io/v1alpha3/nodes';
const asAlice = (path: string): Sent => ({ method: 'GET', path, headers: { authorization: `Bearer ${token}` } });
const guess = { ...client, grant_type: 'password', username: 'alice', password: 'wrong' };
const address = (index: number): string => `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;

interface KeptString {
  readonly what: string;
  /** Expected status of the response. */
  readonly status: number;
  readonly to: 'http' | 'https' | 'aggregated';
  readonly make: (index: number) => Sent;
}

const deviceCode = { client_id: 'platform-cli', grant_type: 'urn:ietf:params:oauth:grant-type:device_code' };
const { client_id: __, ...withoutClient } = guess;
const { username: ___, ...withoutName } = guess;
const jwt = (index: number): string =>
  craftJWT({ alg: 'RS256' }, { iss: 'https://kubernetes', sub: plain(index, 11_000) });

/** Strings that the server could keep in memory. */
const keptStrings: readonly KeptString[] = [
  {
    what: 'device codes',
    status: 400,
    to: 'http',
    make: (index) => post('/oauth/token', deviceCode, { device_code: encoded(index, 62_000) }),
  },
  {
    what: 'refresh tokens',
    status: 400,
    to: 'http',
    make: (index) =>
      post('/oauth/token', { ...client, grant_type: 'refresh_token' }, { refresh_token: encoded(index, 62_000) }),
  },
  {
    what: 'user names',
    status: 429,
    to: 'http',
    make: (index) => post('/oauth/token', withoutName, { username: encoded(index, 62_000) }),
  },
  {
    what: 'user names of valid length',
    status: 400,
    to: 'http',
    make: (index) => post('/oauth/token', withoutName, { username: plain(index, 250), x: encoded(index, 60_000) }),
  },
  {
    what: 'client IDs',
    status: 401,
    to: 'http',
    make: (index) => post('/oauth/token', withoutClient, { client_id: encoded(index, 62_000) }),
  },
  {
    what: 'client addresses',
    status: 400,
    to: 'http',
    make: (index) =>
      post(
        '/oauth/token',
        { ...guess, username: `user-${index}` },
        {},
        { 'x-forwarded-for': `${plain(index, 60_000)}, ${address(index)}` },
      ),
  },
  {
    what: 'browser sessions',
    status: 200,
    to: 'https',
    make: (index) => ({
      method: 'GET',
      path: '/oauth/device',
      headers: { cookie: `__Host-platform-login=${plain(index, 62_000)}` },
    }),
  },
  {
    what: 'user codes',
    status: 429,
    to: 'https',
    make: (index) =>
      post('/oauth/device', { form_token: formToken }, { user_code: encoded(index, 60_000) }, { cookie }),
  },
  {
    what: 'tokens reviewed by kube-apiserver',
    status: 401,
    to: 'http',
    make: (index) => ({
      method: 'GET',
      path: `/kapis/${nodes}?name=${plain(index, 40_000)}`,
      headers: { authorization: `Bearer ${jwt(index)}` },
    }),
  },
  {
    what: 'names in access reviews',
    status: 404,
    to: 'http',
    make: (index) => asAlice(`/kapis/${nodes}/${plain(index, 8_000)}?fields=${plain(index, 50_000)}`),
  },
  {
    what: 'paths in access reviews',
    status: 404,
    to: 'http',
    make: (index) => asAlice(`/kapis/${plain(index, 8_000)}?x=${plain(index, 50_000)}`),
  },
  {
    what: 'sort paths of lists',
    status: 200,
    to: 'http',
    make: (index) => asAlice(`/kapis/${nodes}?sortBy=.${plain(index, 60_000)}&names=n${1 + (index % 3)}`),
  },
  {
    what: 'name filters of lists',
    status: 200,
    to: 'http',
    make: (index) => asAlice(`/kapis/${nodes}?name=${plain(index, 900)}&fields=${plain(index, 60_000)}`),
  },
  {
    what: 'users of the front proxy',
    status: 403,
    to: 'aggregated',
    make: (index) => ({ method: 'GET', path: `/apis/${nodes}`, headers: { 'x-remote-user': plain(index, 62_000) } }),
  },
];

// evidence: hostile-strings
test('the memory use of the server stays bounded when callers send many distinct long strings', async () => {
  const targets: Record<KeptString['to'], Target> = {
    http: { port: ports.http },
    https: { port: ports.https, secure: {} },
    aggregated: { port: ports.aggregated, secure: frontProxy },
  };
  const inAll = async (count: number): Promise<void> => {
    for (const isKnown of [false, true])
      await sendAll(targets.http, count * strings.length, (index) =>
        requestOf(strings[index % strings.length] as HostileString, index, isKnown),
      );
  };
  // Warm up: compile the code and load permanent data.
  await inAll(1);
  const before = await memory();
  for (const { what, status, to, make } of keptStrings) {
    const statuses = await sendAll(targets[to], many, make);
    // The guess limit takes effect a moment later than the other limits.
    const [mostFrequent] = [...statuses].toSorted(([, a], [, b]) => b - a);
    expect([what, mostFrequent?.[0]]).toEqual([what, status]);
    expect([what, await excessBytes(before)]).toEqual([what, 0]);
  }
  await inAll(few);
  expect(await excessBytes(before)).toBe(0);
  expect((await send('/readyz')).status).toBe(200);
}, 3_600_000);
