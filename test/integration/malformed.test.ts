/** Malformed requests on every listener: each gets the correct error, never a 500 or a crash. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import http2 from 'node:http2';
import { readLog } from '../labs/integration/log.ts';
import { aggregated, apisPath, call, gateway, nodesPath, secureGateway } from '../labs/integration/http.ts';
import { lab } from '../labs/integration/lab.ts';
import { adminToken } from '../labs/integration/login.ts';
import { responsesIn, connect, drain, type RawResponse } from '../labs/integration/raw.ts';
import { replicaLogs, replicaProcesses } from '../labs/integration/servers.ts';
import { expectStatus } from '../labs/integration/status.ts';

interface Listener {
  readonly url: string;
  /** Path that is served to everyone. */
  readonly open: string;
  readonly nodes: string;
}
const listeners: Readonly<Record<string, () => Listener>> = {
  gateway: () => ({ url: gateway(), open: '/kapis/version', nodes: nodesPath }),
  'gateway over TLS': () => ({ url: secureGateway(), open: '/kapis/version', nodes: nodesPath }),
  aggregated: () => ({ url: aggregated(), open: '/version', nodes: `${apisPath}/nodes` }),
};

let token = '';
let pidsBefore: unknown;
/** Responses to requests that the client never completes, by listener and incomplete part. */
const endless = new Map<string, Promise<RawResponse[]>>();
const pids = (): unknown[] => replicaProcesses().map((process) => process?.pid);
beforeAll(async () => {
  token = await adminToken();
  pidsBefore = pids();
  // The server waits 10 s for the end of the headers, so all connections wait together while the other tests run.
  for (const [name, listener] of Object.entries(listeners)) {
    const { url, open } = listener();
    const heads = { headers: `GET ${open} HTTP/1.1\r\nHost: x\r\n`, 'a request line': 'GET ' };
    for (const [what, bytes] of Object.entries(heads)) endless.set(`${name}: ${what}`, send(url, bytes));
  }
});

/** Sends the bytes and waits until the server closes the connection. */
async function send(url: string, bytes: string): Promise<RawResponse[]> {
  const socket = connect(url);
  const response = drain(socket);
  socket.write(Buffer.from(bytes, 'latin1'));
  return responsesIn(await response);
}

/** Returns the last request of a connection. */
const request = (line: string, ...headers: readonly string[]): string =>
  [line, 'Host: x', `Authorization: Bearer ${token}`, 'Connection: close', ...headers, '', ''].join('\r\n');
const get = (target: string, ...headers: readonly string[]): string => request(`GET ${target} HTTP/1.1`, ...headers);
const post = (target: string, body: string, ...headers: readonly string[]): string =>
  `${request(`POST ${target} HTTP/1.1`, ...headers)}${body}`;
/** A path that is a 404 for authenticated callers. */
const smuggled = (): string => get('/smuggled');
const form = 'Content-Type: application/x-www-form-urlencoded';

/** Expects exactly one response, a Status. */
function expectOne(responses: readonly RawResponse[], code: number, reason: string): void {
  expect(responses.map(({ status }) => status)).toEqual([code]);
  const [{ status, headers, body } = { status: 0, headers: {}, body: '' }] = responses;
  expectStatus({ status, headers, text: body }, code, reason);
}

test.each([
  ['gateway', '/oauth/userinfo', 'Content-Length: x'],
  ['gateway over TLS', '/.well-known/openid-configuration?a', 'Transfer-Encoding: x'],
])('invalid HTTP at the %s gets an error in the format that the path %s uses', async (name, path, header) => {
  const [response, ...more] = await send((listeners[name] as () => Listener)().url, get(path, header));
  expect(more).toEqual([]);
  expect([response?.status, JSON.parse(response?.body ?? '')]).toEqual([
    400,
    { error: 'invalid_request', error_description: expect.any(String) },
  ]);
});

describe.each(Object.keys(listeners))('%s', (name) => {
  const here = (): Listener => (listeners[name] as () => Listener)();
  const url = (): string => here().url;
  const open = (): string => here().open;
  const nodes = (): string => here().nodes;

  test.each([
    '/..',
    '/../etc/passwd',
    '/kapis/../metrics',
    '/apis/./x',
    '/kapis/%2e%2e/metrics',
    '/apis/%2E./x',
    '/a%2Fb',
    '/apis/a%2fb/c',
    '/apis/a%5Cb',
    '/apis/a\\b',
    '/apis/%00',
    '/apis/a%0d%0aX:%20y',
    '/apis/%7f',
    '/%',
    '/apis/%zz',
    '/apis/%e',
    '/apis/%ff%fe',
    '/apis/%c0%af',
    '/apis/%ed%a0%80',
    '/apis#x',
    '/apis/x#/../y',
    'http://x\\apis',
    `/${'a'.repeat(9_000)}`,
  ])('the server returns 400 for the path %s', async (path) => {
    expectOne(await send(url(), get(path)), 400, 'BadRequest');
  });

  test.each(['//', '//apis', '/apis//v1', '///x', '/apis/a//'])(
    'the server returns 404 for the path %s',
    async (path) => {
      expectOne(await send(url(), get(path)), 404, 'NotFound');
    },
  );

  test('the server returns 400 for a list whose URL has a fragment that names one node', async () => {
    expectOne(await send(url(), get(`${nodes()}#/some-node`)), 400, 'BadRequest');
  });

  test.each([
    ['NUL', '/apis/\0'],
    ['a space', '/apis/x y'],
    ['bare UTF-8', '/apis/\xc3\xa9'],
    ['a tab', '/apis/\t'],
    ['an empty path', ''],
    ['a path without a slash', 'apis'],
  ])('the server returns 400 for %s in the request line', async (_, target) => {
    expectOne(await send(url(), get(target)), 400, 'BadRequest');
  });

  test.each(['FOO', 'get', 'G\xcbT', 'GET\t', ''])('the server returns 400 for the method %j', async (method) => {
    expectOne(await send(url(), request(`${method} ${open()} HTTP/1.1`)), 400, 'BadRequest');
  });

  test.each(['TRACE', 'POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND', 'PURGE', 'M-SEARCH'])(
    'the server returns 405 with the allowed methods for %s',
    async (method) => {
      const responses = await send(url(), request(`${method} ${open()} HTTP/1.1`));
      expectOne(responses, 405, 'MethodNotAllowed');
      expect(responses[0]?.headers['allow']).toBe('GET, HEAD');
    },
  );

  test('the server returns 405 for CONNECT', async () => {
    expectOne(await send(url(), request('CONNECT kubernetes.default.svc:443 HTTP/1.1')), 405, 'MethodNotAllowed');
  });

  test('the server returns 400 for OPTIONS *', async () => {
    expectOne(await send(url(), request('OPTIONS * HTTP/1.1')), 400, 'BadRequest');
  });

  test.each(['HTTP/2.0', 'HTTP/0.9', 'HTTP/1.2', 'HTTP/9.9', 'HTTP/1', 'HTTX/1.1', 'http/1.1', ''])(
    'the server returns 400 for the HTTP version %j',
    async (version) => {
      expectOne(await send(url(), request(`GET ${open()} ${version}`)), 400, 'BadRequest');
    },
  );

  test('the server returns 400 for HTTP/0.9', async () => {
    expectOne(await send(url(), `GET ${open()}\r\n\r\n`), 400, 'BadRequest');
  });

  test('the server returns 200 for an HTTP/1.0 request without a Host header', async () => {
    const [response, ...more] = await send(url(), `GET ${open()} HTTP/1.0\r\n\r\n`);
    expect({ status: response?.status, more }).toEqual({ status: 200, more: [] });
  });

  test.each([
    ['no Host header', ''],
    ['two Host headers', 'Host: a\r\nHost: a\r\n'],
  ])('the server returns 400 for a request with %s', async (_, headers) => {
    expectOne(await send(url(), `GET ${open()} HTTP/1.1\r\nConnection: close\r\n${headers}\r\n`), 400, 'BadRequest');
  });

  test.each(['http://x', 'https://elsewhere.example.com', 'HTTP://127.0.0.1:1', 'http://', 'ftp://x'])(
    'the server uses only the path of an absolute URL that starts with %s',
    async (origin) => {
      const responses = await send(url(), get(`${origin}${open()}`));
      expect(responses.map(({ status }) => status)).toEqual([200]);
      const { status } = (await send(url(), get(`${origin}${nodes()}?limit=x`)))[0] as RawResponse;
      expect(status).toBe(400);
    },
  );

  test.each([
    ['NUL', 'X: a\0b'],
    ['a bare CR', 'X: a\rb'],
    ['a space in the name', 'X Y: a'],
    ['a space before the colon', 'X : a'],
    ['no colon', 'nonsense'],
    ['no name', ': a'],
    ['a folded line', 'X: a\r\n b'],
    ['bare UTF-8 in the name', '\xc3\xa9: a'],
  ])('the server returns 400 for a header with %s', async (_, header) => {
    expectOne(await send(url(), get(open(), header)), 400, 'BadRequest');
  });

  test.each([
    ['one large header', `X: ${'y'.repeat(70_000)}`],
    ['many headers', Array.from({ length: 10_000 }, (_, number) => `a${number}: b`).join('\r\n')],
  ])('the server returns 431 for %s', async (_, header) => {
    expectOne(await send(url(), get(open(), header)), 431, 'RequestHeaderFieldsTooLarge');
  });

  test('the server returns 431 for an endless request line', async () => {
    expectOne(await send(url(), get(`/${'a'.repeat(70_000)}`)), 431, 'RequestHeaderFieldsTooLarge');
  });

  test.each<[string, () => string]>([
    [
      'Content-Length and Transfer-Encoding',
      () => post(open(), `0\r\n\r\n${smuggled()}`, 'Content-Length: 4', 'Transfer-Encoding: chunked'),
    ],
    ['two lengths', () => post(open(), `abcd${smuggled()}`, 'Content-Length: 4', 'Content-Length: 9')],
    ['a list of lengths', () => post(open(), `abcd${smuggled()}`, 'Content-Length: 4, 4')],
    ['a negative length', () => post(open(), smuggled(), 'Content-Length: -1')],
    ['a length with a sign', () => post(open(), `abcd${smuggled()}`, 'Content-Length: +4')],
    ['a hexadecimal length', () => post(open(), `abcd${smuggled()}`, 'Content-Length: 0x4')],
    ['a length that overflows', () => post(open(), smuggled(), 'Content-Length: 99999999999999999999999')],
    [
      'chunked that is not the last coding',
      () => post(open(), `0\r\n\r\n${smuggled()}`, 'Transfer-Encoding: chunked, identity'),
    ],
    ['an unknown transfer coding', () => post(open(), `0\r\n\r\n${smuggled()}`, 'Transfer-Encoding: xchunked')],
    ['a space before the colon', () => post(open(), `0\r\n\r\n${smuggled()}`, 'Transfer-Encoding : chunked')],
    ['lines that end with LF', () => `GET ${open()} HTTP/1.1\nHost: x\n\n${smuggled()}`],
  ])('the server returns 400 for a smuggled request: %s', async (_, bytes) => {
    expectOne(await send(url(), bytes()), 400, 'BadRequest');
  });

  test.each([
    ['without a size', 'zz\r\n\r\n'],
    ['of a negative size', '-1\r\n\r\n'],
    ['longer than its size', '1\r\nabc\r\n0\r\n\r\n'],
    ['that ends with LF', '1\na\n0\n\n'],
  ])('the server rejects a request smuggled after a chunk %s', async (_, body) => {
    const responses = await send(url(), post(open(), `${body}${smuggled()}`, 'Transfer-Encoding: chunked'));
    // The head was valid, so its response may have been sent before the body was read.
    expect([[400], [405], [405, 400]]).toContainEqual(responses.map(({ status }) => status));
  });

  test('the server does not treat an unread body as a request', async () => {
    const body = smuggled();
    const responses = await send(url(), post(open(), body, `Content-Length: ${body.length}`));
    expectOne(responses, 405, 'MethodNotAllowed');
  });

  test('the server responds to pipelined requests in order', async () => {
    const first = `GET ${open()} HTTP/1.1\r\nHost: x\r\n\r\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n`;
    const responses = await send(url(), `${first}${get(`${nodes()}?limit=x`)}`);
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 400]);
  });

  test.each([
    ['an unknown expectation', ['Expect: nonsense']],
    ['an upgrade to HTTP/2', ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk']],
    ['invalid UTF-8 in a header', ['X: \xff\xfe']],
    ['a malformed Accept', ['Accept: ;;,,/']],
  ])('the server ignores %s', async (_, headers) => {
    expect((await send(url(), get(open(), ...headers))).map(({ status }) => status)).toEqual([200]);
  });

  test.each([
    ['for a path that does not support WebSockets', () => open()],
    ['for a watch without a Sec-WebSocket-Key', () => `${nodes()}?watch=true`],
  ])(
    'the server rejects a WebSocket handshake %s, and does not treat the following bytes as a request',
    async (_, path) => {
      const headers = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'];
      expectOne(await send(url(), `${get(path(), ...headers)}${smuggled()}`), 400, 'BadRequest');
    },
  );

  test('the server rejects a request with Expect: 100-continue before its body is sent', async () => {
    const responses = await send(url(), post(nodes(), '{}', 'Expect: 100-continue', 'Content-Length: 2'));
    expect(responses.map(({ status }) => status)).toEqual([100, 405]);
  });

  test.each([
    ['bad JSON', '{"kind": "Node"', 'Content-Type: application/json'],
    ['bad UTF-8', '"\xff\xfe"', 'Content-Type: application/json'],
    ['deep JSON', '['.repeat(50_000), 'Content-Type: application/json'],
    ['a form', 'a=b', form],
    ['an unknown media type', 'x', 'Content-Type: nonsense'],
    ['2 MB of text', 'x'.repeat(2_000_000), 'Content-Type: application/json'],
  ])('the server returns 405 for a write to the read-only nodes with any body: %s', async (_, body, type) => {
    const { status, headers, text } = await call(`${url()}${nodes()}`, {
      method: 'POST',
      token,
      body: Buffer.from(body, 'latin1'),
      headers: { 'content-type': type.slice('Content-Type: '.length) },
    });
    expectStatus({ status, headers, text }, 405, 'MethodNotAllowed');
  });

  test.each([
    ['a malformed Audit-Id', 'Audit-Id: <script>'],
    ['a long Audit-Id', `Audit-Id: ${'a'.repeat(100)}`],
  ])('the server replaces %s with a new one', async (_, header) => {
    const [response] = await send(url(), get(open(), header));
    expect(response?.headers['audit-id']).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
  });

  test('the server still serves requests after clients close connections before a request is complete', async () => {
    for (const bytes of [
      '',
      '\r\n\r\n',
      'GET',
      `GET ${open()} HTTP/1.1\r\nHo`,
      post(open(), 'a', 'Content-Length: 9'),
    ]) {
      const socket = connect(url());
      const response = drain(socket);
      socket.end(bytes);
      expect(responsesIn(await response).filter(({ status }) => status >= 500)).toEqual([]);
    }
  });

  test('the server still serves requests after clients disconnect during a response', async () => {
    for (let round = 0; round < 20; round += 1) {
      const socket = connect(url());
      await once(socket, name === 'gateway' ? 'connect' : 'secureConnect');
      socket.write(get(nodes()));
      socket.destroy();
    }
    expect((await call(`${url()}${open()}`)).status).toBe(200);
  });

  test.each(['headers', 'a request line'])(
    'the server closes a connection with 408 if the end of %s never arrives',
    async (what) => {
      expectOne((await endless.get(`${name}: ${what}`)) ?? [], 408, 'Timeout');
    },
  );
});

describe.each(['gateway over TLS', 'aggregated'])('%s over HTTP/2', (name) => {
  const here = (): Listener => (listeners[name] as () => Listener)();

  /** Returns the status of a request with these headers, or undefined if its stream was reset. */
  async function sendHeaders(headers: http2.OutgoingHttpHeaders): Promise<number | undefined> {
    const session = http2.connect(here().url, { ca: lab().authority });
    session.on('error', () => undefined);
    const stream = session.request({ authorization: `Bearer ${token}`, ...headers });
    stream.resume();
    const status = await new Promise<number | undefined>((resolve) => {
      stream.on('response', (response) => resolve(response[':status']));
      stream.on('error', () => resolve(undefined));
      stream.on('close', () => resolve(undefined));
    });
    session.destroy();
    return status;
  }

  test.each(['/../x', '/apis/%2e%2e', '/apis/a%2Fb', '/apis/%00', '/apis/%zz', '/apis#x', '/apis/\xa0'])(
    'the server returns 400 for the path %j over HTTP/2',
    async (path) => {
      expect(await sendHeaders({ ':path': path })).toBe(400);
    },
  );

  test.each<[string, http2.OutgoingHttpHeaders, number | undefined]>([
    ['the method TRACE', { ':method': 'TRACE' }, 405],
    ['an unknown method', { ':method': 'FOO' }, 400],
    ['the method CONNECT', { ':method': 'CONNECT', ':authority': 'x:443' }, 405],
    ['a path with a space', { ':path': '/a b' }, undefined],
    ['a path without a slash', { ':path': 'x' }, undefined],
    ['large headers', { x: 'y'.repeat(70_000) }, undefined],
  ])('the server rejects %s over HTTP/2', async (_, headers, expected) => {
    const path = headers[':method'] === 'CONNECT' ? {} : { ':path': here().open };
    expect(await sendHeaders({ ...path, ...headers })).toBe(expected);
  });

  test('the server still serves requests after bytes that are not HTTP/2 frames', async () => {
    const socket = connect(here().url, 'h2');
    const response = drain(socket);
    socket.write(`PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${'nonsense'.repeat(100)}`);
    await response;
    expect(await sendHeaders({ ':path': here().open })).toBe(200);
  });
});

describe('the token endpoint', () => {
  test.each([
    ['in malformed chunks', 'zz\r\n\r\n', ['Transfer-Encoding: chunked'], 400],
    ['that is too large', 'x'.repeat(200_000), ['Content-Length: 200000'], 413],
    [
      'that is too large, in chunks',
      `30d40\r\n${'x'.repeat(200_000)}\r\n0\r\n\r\n`,
      ['Transfer-Encoding: chunked'],
      413,
    ],
    ['that is empty', '', ['Content-Length: 0'], 401],
  ])('the token endpoint rejects a form %s', async (_, body, headers, code) => {
    const responses = await send(gateway(), post('/oauth/token', body, form, ...headers));
    expect(responses.map(({ status }) => status)).toEqual([code]);
  });
});

afterAll(() => {
  const errors = replicaLogs().flatMap((file) => readLog(file).filter(({ level }) => level === 'error'));
  if (errors.length > 0) throw new Error(`errors in the logs: ${JSON.stringify(errors)}`);
  if (JSON.stringify(pids()) !== JSON.stringify(pidsBefore)) throw new Error('a replica was replaced');
});
