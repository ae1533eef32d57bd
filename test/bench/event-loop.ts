/**
 * Measures the longest turn of the server's event loop in CPU time. Each endpoint gets the most expensive valid and
 * invalid input.
 */
import { once } from 'node:events';
import http from 'node:http';
import { gzipSync } from 'node:zlib';
import { logIn, startBenchLab, type BenchLab } from './lab/lab.ts';
import { median } from './statistics.ts';

export interface LongestTurn {
  readonly name: string;
  /** Median CPU time over the repetitions, in milliseconds. */
  readonly longest: number;
  readonly statuses: readonly number[];
}

interface Input {
  readonly name: string;
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** Name of a configured user, whose access token is sent, or a literal bearer token. */
  readonly bearer?: string;
}

const repetitions = 7;
const kibi = 1024;
const resources = '/kapis/resources.platform.io/v1alpha3';
const iam = '/kapis/iam.platform.io/v1alpha2';
const logs = '/kapis/logging.platform.io/v1alpha2/logs';
const form = { 'content-type': 'application/x-www-form-urlencoded' };
const json = { 'content-type': 'application/json' };
const merge = { 'content-type': 'application/merge-patch+json' };
const patch = { 'content-type': 'application/json-patch+json' };
const yaml = { 'content-type': 'application/yaml' };
/** Maximum bytes of a value within a request head. */
const longest = 60 * kibi;

const filled = (piece: string, size: number): string => piece.repeat(Math.floor(size / piece.length));
const pairs = (...all: readonly (readonly [name: string, value: string])[]) => all;
const nested = (size: number): string => '['.repeat(size / 2) + ']'.repeat(size / 2);
const keys = (size: number): string =>
  `{${Array.from({ length: Math.floor(size / 12) }, (_, index) => `"k${String(index).padStart(6, '0')}":0`).join(',')}}`;
const bodies = (size: number): readonly (readonly [string, string])[] => [
  ['nested arrays', nested(size)],
  ['unfinished arrays', filled('[', size)],
  ['many arrays', `[${filled('[],', size - 4)}0]`],
  ['many keys', keys(size)],
  ['list of wrong elements', `{"spec":{"groups":[${filled('0,', size - 25)}0]}}`],
  ['one text', JSON.stringify('x'.repeat(size - 2))],
  ['escapes', `"${filled('\\u0041', size - 2)}"`],
];

const lines = (count: number, line: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => line(index)).join('\n');
/** The most expensive bodies within the maximum number of YAML tokens, and bodies of the maximum size. */
const yamlBodies: readonly (readonly [string, string])[] = [
  ['keys', lines(200, (index) => `k${index}: 0`)],
  ['keys, 64 KiB', lines(6_000, (index) => `k${index}: 0`)],
  ['nested brackets', nested(120)],
  ['unfinished brackets', '['.repeat(64)],
  ['brackets, 64 KiB', filled('[', 64 * kibi)],
  ['nested maps', filled('{a: ', 250)],
  ['nested lists', filled('- ', 1_000)],
  ['commas', `[${','.repeat(990)}]`],
  ['closing brackets', '}'.repeat(990)],
  ['colons', filled(':\n', 1_000)],
  ['comments', lines(200, (index) => `#\nk${index}: 0`)],
  ['text of many lines', `a: b\n${filled(' c\n', 65_000)}`],
  ['plain lines', filled('a\n', 65_000)],
  ['folded text', `a: >\n${filled(' c\n\n  d\n', 65_000)}`],
  ['folded text within the limit', `a: >\n${` ${'c'.repeat(60)}\n\n`.repeat(490)}`],
  ['plain lines within the limit', `${'c'.repeat(60)}\n`.repeat(990)],
  ['literal text', `a: |\n${filled(' c\n', 65_000)}`],
  ['quoted lines', `"${filled(' c\n', 65_000)}"`],
  ['escapes', `"${filled('\\u0041', 65_000)}"`],
  ['empty lines', filled('\n', 64 * kibi)],
  ['white space', `a${' '.repeat(60_000)}: b`],
  ['line separators', filled('\u2028', 60_000)],
  ['digits', `a: ${'1'.repeat(65_000)}`],
  ['documents', filled('---\n', 3_000)],
  ['unfinished quote', `"${filled('a\n', 65_000)}`],
];

const encoded = (value: object | string): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
const jwt = (header: object | string, payload: object | string): string =>
  `${encoded(header)}.${encoded(payload)}.${encoded('x')}`;

const inputs: readonly Input[] = [
  ...(['POST', 'PUT', 'PATCH', 'PATCH'] as const).flatMap((method, index) =>
    [64 * kibi, kibi * kibi].flatMap((size) =>
      bodies(size).map(([name, body]) => ({
        name: `${method} user${index === 3 ? ' (JSON patch)' : ''}: ${name}, ${size / kibi} KiB`,
        method,
        path: method === 'POST' ? `${iam}/users` : `${iam}/users/someone`,
        headers: method === 'PATCH' ? (index === 3 ? patch : merge) : json,
        body,
        bearer: 'admin',
      })),
    ),
  ),
  ...(['POST', 'PATCH'] as const).flatMap((method) =>
    yamlBodies.map(([name, body]) => ({
      name: `${method} user (YAML): ${name}`,
      method,
      path: method === 'POST' ? `${iam}/users` : `${iam}/users/someone`,
      headers: yaml,
      body,
      bearer: 'admin',
    })),
  ),
  ...[63 * kibi, 500 * kibi].flatMap((size) =>
    bodies(size).map(([name, body]) => ({
      name: `gateway POST, with its body in the audit log: ${name}, ${size / kibi} KiB`,
      method: 'POST',
      path: '/api/v1/namespaces/shop/services',
      headers: json,
      body: `{"metadata":{"generateName":"x"},"spec":${body}}`,
      bearer: 'admin',
    })),
  ),
  ...bodies(64 * kibi).map(([name, body]) => ({
    name: `PUT password: ${name}`,
    method: 'PUT',
    path: `${iam}/users/someone/password`,
    headers: json,
    body,
    bearer: 'admin',
  })),
  ...bodies(64 * kibi).map(([name, body]) => ({
    name: `token webhook: ${name}`,
    method: 'POST',
    path: '/oauth/authenticate',
    headers: { ...json, authorization: `Basic ${Buffer.from('bench:of-the-bench').toString('base64')}` },
    body,
  })),
  ...['/oauth/token', '/oauth/introspect', '/oauth/revoke', '/oauth/device_authorization', '/oauth/login'].flatMap(
    (path) =>
      pairs(
        ['many parameters', Array.from({ length: 8_000 }, (_, index) => `p${index}=1`).join('&')],
        ['ampersands', filled('&', 63 * kibi)],
        ['equals signs', filled('=&', 63 * kibi)],
        ['percent signs', `a=${filled('%41', 63 * kibi)}`],
        ['bad percent signs', `a=${filled('%', 63 * kibi)}`],
        [
          'long scope',
          `grant_type=password&client_id=bench&client_secret=of-the-bench&scope=${filled('a+', 60 * kibi)}`,
        ],
        ['long token', `client_id=bench&client_secret=of-the-bench&token=${jwt({ alg: 'ES256' }, nested(40 * kibi))}`],
      ).map(([name, body]) => ({
        name: `${path}: ${name}`,
        method: 'POST',
        path,
        headers: form,
        body,
      })),
  ),
  ...pairs(
    ['nested claims', jwt({ alg: 'ES256' }, nested(8 * kibi))],
    ['nested header', jwt(nested(8 * kibi), {})],
    ['many keys', jwt({ alg: 'ES256' }, keys(8 * kibi))],
    ['64 KiB', jwt({ alg: 'ES256' }, nested(44 * kibi))],
    ['dots', filled('.', longest)],
  ).map(([name, bearer]) => ({ name: `bearer: ${name}`, path: `${iam}/whoami`, bearer })),
  ...pairs(
    ['long path', `/kapis/${filled('a/', longest)}`],
    ['encoded path', `/kapis/${filled('%61', longest)}`],
    ['many parameters', `${resources}/nodes?${filled('a&', longest)}`],
  ).map(([name, path]) => ({ name, path, bearer: 'admin' })),
  ...Object.entries({
    labelSelector: filled('a,', longest),
    'labelSelector with sets': `rack in (${Array.from({ length: 9_000 }, (_, index) => index).join(',')})`,
    fieldSelector: filled('metadata.name!=x,', longest),
    'fieldSelector with parentheses': filled('(', longest),
    'fields paths': filled('metadata.name,', longest),
    'fields depth': filled('a.', longest),
    fields: Array.from({ length: 5_000 }, (_, index) => `a${index}`).join(','),
    names: Array.from({ length: 9_000 }, (_, index) => `n${index}`).join(','),
    name: 'node',
    sortBy: 'status.addresses[0].address',
    'sortBy path': filled('a.', longest),
    continue: encoded(nested(40 * kibi)),
    labelSelectors: filled('rack!=9,', longest),
  }).map(([name, value]) => ({
    name: `list: ${name}`,
    path: `${resources}/nodes?${name.split(' ')[0]?.replace('labelSelectors', 'labelSelector')}=${encodeURIComponent(value).slice(0, longest)}`,
    bearer: 'admin',
  })),
  ...pairs(
    ['list: all', ''],
    ['list: all with managedFields', '?managedFields=true'],
    ['list: fields', '?fields=metadata.name,status.addresses'],
    ['list: pretty', '?pretty=true'],
    ['list: sorted by a path', '?sortBy=status.addresses'],
    ['list: contains', '?name=9'],
  ).map(([name, query]) => ({
    name,
    path: `${resources}/nodes${query}`,
    bearer: 'admin',
    varies: false,
  })),
  ...pairs(['list: all, gzip', ''], ['list: fields, gzip', '?fields=metadata.name,status']).map(([name, query]) => ({
    name,
    path: `${resources}/nodes${query}`,
    bearer: 'admin',
    headers: { 'accept-encoding': 'gzip' },
  })),
  ...Object.entries({
    namespaces: Array.from({ length: 9_000 }, (_, index) => `n${index}`).join(','),
    pods: Array.from({ length: 9_000 }, (_, index) => `p${index}`).join(','),
    workloads: Array.from({ length: 9_000 }, (_, index) => `w${index}`).join(','),
    log_query: filled('a,', longest),
    pod_query: filled('a*,', longest),
    'statistics of all': 'statistics',
  }).map(([name, value]) => ({
    name: `logs: ${name}`,
    path: `${logs}?${name === 'statistics of all' ? 'operation' : name}=${value.slice(0, longest)}`,
    bearer: 'admin',
  })),
  ...[
    '/openapi/v2',
    '/openapi/v3',
    '/swagger/platform.json',
    '/swagger/platform.v3.json',
    '/metrics',
    '/kapis',
    '/docs/',
    '/.well-known/openid-configuration',
    '/oauth/keys',
  ].flatMap((path) => [
    { name: `GET ${path}`, path, bearer: 'admin' },
    { name: `GET ${path}, gzip`, path, bearer: 'admin', headers: { 'accept-encoding': 'gzip' } },
  ]),
  {
    name: 'Accept with many clauses',
    path: `${resources}/nodes?limit=1`,
    bearer: 'admin',
    headers: { accept: filled('a/b;q=0.1,', longest) },
  },
  {
    name: 'Accept-Encoding with many clauses',
    path: `${resources}/nodes?limit=1`,
    bearer: 'admin',
    headers: { 'accept-encoding': filled('a;q=0.1,', longest) },
  },
  {
    name: 'If-None-Match with many tags',
    path: '/swagger/platform.json',
    bearer: 'admin',
    headers: { 'if-none-match': filled('"a",', longest) },
  },
  {
    name: 'X-Forwarded-For with many addresses',
    path: `${resources}/nodes?limit=1`,
    bearer: 'admin',
    headers: { 'x-forwarded-for': filled('127.0.0.1,', longest) },
  },
  {
    name: 'Cookie with many values',
    path: '/oauth/account',
    headers: { cookie: filled('a=b;', longest), 'x-forwarded-proto': 'https' },
  },
  {
    name: 'Authorization: Basic of 60 KiB',
    method: 'POST',
    path: '/oauth/token',
    headers: { ...form, authorization: `Basic ${filled('A', longest)}` },
    body: 'a=b',
  },
  {
    name: 'body in gzip',
    method: 'POST',
    path: `${iam}/users`,
    headers: { ...json, 'content-encoding': 'gzip' },
    body: gzipSync(nested(kibi * kibi)),
    bearer: 'admin',
  },
];

async function send(
  { port }: BenchLab,
  { method = 'GET', path, headers = {}, body }: Input,
  bearer: string | undefined,
): Promise<number> {
  return await new Promise((resolve) => {
    const request = http.request({
      host: '127.0.0.1',
      port,
      method,
      path,
      agent: false,
      headers: {
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
        ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }),
        ...headers,
      },
    });
    // A server that rejects a body closes the connection before the whole body is sent.
    request.on('error', () => resolve(0));
    request.once('response', (response) => {
      response.on('error', () => resolve(0));
      response.resume().once('end', () => resolve(response.statusCode ?? 0));
    });
    request.end(body);
  });
}

async function longestTurn({ server }: BenchLab): Promise<number> {
  server.send('longest');
  const [{ longest: milliseconds }] = (await once(server, 'message')) as [{ longest: number }];
  return milliseconds;
}

export async function measureEventLoop(): Promise<LongestTurn[]> {
  const lab = await startBenchLab({ imports: [import.meta.resolve('./lab/turns.ts')] });
  try {
    const admin = await logIn(lab, 'user-0');
    const results: LongestTurn[] = [];
    for (const input of inputs) {
      const bearer = input.bearer === 'admin' ? admin : input.bearer;
      const times: number[] = [];
      const statuses: number[] = [];
      for (let index = 0; index <= repetitions; index += 1) {
        await longestTurn(lab);
        statuses.push(await send(lab, input, bearer));
        times.push(await longestTurn(lab));
      }
      // The first repetition is not counted, because V8 compiles the code in it.
      results.push({ name: input.name, longest: median(times.slice(1)), statuses: [...new Set(statuses)] });
    }
    return results;
  } finally {
    await lab.stop();
  }
}

/** Goal for the longest turn of the event loop, in milliseconds. */
const goal = 10;

export function describeEventLoop(all: readonly LongestTurn[]): string {
  const slowest = all.toSorted((a, b) => b.longest - a.longest);
  const shown = slowest.filter(({ longest: time }, index) => index < 10 || time > goal);
  return [
    `event loop: the longest turn in CPU time, garbage collection apart, of ${all.length} inputs; goal ${goal} ms`,
    ...shown.map(
      ({ name, longest: time, statuses }) => `  ${name.padEnd(50)} ${time.toFixed(1)} ms (${statuses.join(', ')})`,
    ),
  ].join('\n');
}
