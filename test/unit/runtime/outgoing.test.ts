/** Tests requests to a server in the test process. Each test sets the response of this server. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createSecureServer } from 'node:http2';
import { createServer as createHTTPSServer } from 'node:https';
import type { AddressInfo, Server, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { inspect } from 'node:util';
import { createAuthority } from '../../../hack/cluster/pki.ts';
import { OutgoingClient, OutgoingError, type OutgoingResponse } from '../../../src/runtime/outgoing.ts';

type Respond = (req: IncomingMessage, res: ServerResponse) => unknown;

let authority: Awaited<ReturnType<typeof createAuthority>>;
let url: URL;
let respond: Respond;
let requests = 0;
const servers: Server[] = [];
const sockets = new Set<Socket>();
const clients: OutgoingClient[] = [];

const listener: Respond = (req, res) => {
  requests += 1;
  respond(req, res);
};

async function listen(server: Server, scheme: string): Promise<URL> {
  server.on('connection', (socket: Socket) => {
    sockets.add(socket.on('error', () => undefined));
    socket.once('close', () => sockets.delete(socket));
  });
  servers.push(server.listen(0, '127.0.0.1'));
  await once(server, 'listening');
  return new URL(`${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/path?query`);
}

async function secure(commonName: string, address: string): Promise<URL> {
  const { certificate: cert, key } = await authority.issue({ commonName, server: [address] });
  return await listen(createHTTPSServer({ cert, key }, listener), 'https');
}

beforeAll(async () => {
  authority = await createAuthority('outgoing-ca');
  url = await listen(createServer(listener), 'http');
});
afterAll(() => {
  for (const socket of sockets) socket.destroy();
  for (const server of servers) server.close();
});
beforeEach(() => {
  requests = 0;
  respond = (_, res) => res.end('{}');
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
});

function make(options: { readonly ca?: string; readonly connections?: number } = {}): OutgoingClient {
  const client = new OutgoingClient(options);
  clients.push(client);
  return client;
}

interface Options {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
  readonly maxBytes?: number;
}

const never = new AbortController().signal;
const send = (client: OutgoingClient, options: Options = {}, to = url): Promise<OutgoingResponse> =>
  client.request(to, { method: 'GET', headers: {}, signal: never, maxBytes: 1_000, ...options });

async function failureOf(response: Promise<unknown>): Promise<OutgoingError> {
  const error: unknown = await response.then(
    () => new Error('there was a response'),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(OutgoingError);
  return error as OutgoingError;
}

/** Returns a handler that writes these bytes and closes the connection. */
const raw = (bytes: string) => (_: IncomingMessage, res: ServerResponse) => res.socket?.end(bytes);

describe('an outgoing request', () => {
  test.each<[string, string | undefined, string]>([
    ['text', 'größe', 'größe'],
    ['no body', undefined, ''],
    ['an empty body', '', ''],
  ])('an outgoing request is sent with its method, path, headers and %s', async (_, body, sent) => {
    const received = Promise.withResolvers<unknown>();
    respond = async (req, res) => {
      const { method, url: path, headers } = req;
      received.resolve({ method, path, headers, body: await text(req) });
      res.end();
    };
    await send(make(), { method: 'POST', headers: { 'x-a': 'b' }, ...(body === undefined ? {} : { body }) });
    const { headers, ...request } = (await received.promise) as { headers: Record<string, string> };
    expect(request).toEqual({ method: 'POST', path: '/path?query', body: sent });
    expect(headers).toMatchObject({ 'x-a': 'b', 'content-length': String(Buffer.byteLength(sent)) });
  });

  test('an outgoing request is sent over HTTP/1.1 to a server that prefers HTTP/2', async () => {
    const { certificate: cert, key } = await authority.issue({ commonName: 'both', server: ['127.0.0.1'] });
    const server = createSecureServer({ cert, key, allowHTTP1: true }, (req, res) => res.end(req.httpVersion));
    const to = await listen(server, 'https');
    expect((await send(make({ ca: authority.certificate }), {}, to)).body.toString()).toBe('1.1');
  });

  test('an outgoing request ignores the proxy settings in environment variables', async () => {
    let proxied = 0;
    const proxy = await listen(
      createServer().on('connection', () => (proxied += 1)),
      'http',
    );
    const before = { ...process.env };
    Object.assign(process.env, { HTTP_PROXY: proxy.origin, http_proxy: proxy.origin, NODE_USE_ENV_PROXY: '1' });
    try {
      expect((await send(make())).status).toBe(200);
    } finally {
      for (const name of ['HTTP_PROXY', 'http_proxy', 'NODE_USE_ENV_PROXY']) delete process.env[name];
      Object.assign(process.env, before);
    }
    expect(proxied).toBe(0);
  });

  test('an outgoing request is reported as unreachable when no server listens', async () => {
    const error = await failureOf(send(make(), {}, new URL('http://127.0.0.1:1/')));
    expect([error.failure, error.code, error.message]).toEqual([
      'unreachable',
      'ECONNREFUSED',
      'connect ECONNREFUSED 127.0.0.1:1',
    ]);
  });

  test('the errors of an outgoing request do not contain its path, headers or body', async () => {
    respond = raw('no');
    const to = new URL('/secret-path?secret=query', url);
    const options = { method: 'POST', headers: { authorization: 'Bearer secret-token' }, body: 'secret-body' };
    const error = await failureOf(send(make(), options, to));
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain('secret');
  });
});

describe('the certificate of a server', () => {
  test.each<[string, boolean, string]>([
    ['without a CA', false, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
    ['with another CA', true, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
  ])(
    'an outgoing request is not sent to a server with a certificate that the client %s cannot verify',
    async (_, hasCA, code) => {
      const to = await secure('server', '127.0.0.1');
      const ca = hasCA ? { ca: (await createAuthority('other')).certificate } : {};
      expect((await failureOf(send(make(ca), {}, to))).code).toBe(code);
      expect(requests).toBe(0);
    },
  );

  test('a server certificate for another address is rejected', async () => {
    const to = await secure('server', '127.0.0.2');
    const error = await failureOf(send(make({ ca: authority.certificate }), {}, to));
    expect([error.failure, error.code]).toEqual(['unreachable', 'ERR_TLS_CERT_ALTNAME_INVALID']);
    expect(requests).toBe(0);
  });

  test('a server certificate that the configured CA of the client has signed is accepted', async () => {
    const to = await secure('server', '127.0.0.1');
    expect((await send(make({ ca: authority.certificate }), {}, to)).status).toBe(200);
  });
});

describe('the abort signal of an outgoing request', () => {
  const reason = new Error('the deadline');

  test.each<[string, (res: ServerResponse) => unknown]>([
    ['before the response head arrives', () => undefined],
    ['while the response head arrives', (res) => res.socket?.write('HTTP/1.1 200 OK\r\nX-A:')],
    ['before the response body arrives', (res) => res.flushHeaders()],
    ['while the response body arrives', (res) => res.write('{')],
  ])('the abort signal of an outgoing request ends the request and its connection %s', async (_, begin) => {
    const controller = new AbortController();
    const closed = Promise.withResolvers<void>();
    respond = (req, res) => {
      req.socket.once('close', () => closed.resolve());
      begin(res);
      setImmediate(() => controller.abort(reason));
    };
    const response = send(make({ connections: 1 }), { signal: controller.signal });
    await expect(response).rejects.toBe(reason);
    await closed.promise;
  });

  test('the abort signal of an outgoing request ends a request that waits for a connection', async () => {
    const arrived = Promise.withResolvers<void>();
    respond = () => arrived.resolve();
    const client = make({ connections: 1 });
    const first = failureOf(send(client));
    await arrived.promise;
    const controller = new AbortController();
    const second = send(client, { signal: controller.signal });
    controller.abort(reason);
    await expect(second).rejects.toBe(reason);
    await client.close();
    await first;
    expect(requests).toBe(1);
  });

  test('an outgoing request whose abort signal is already aborted is not sent', async () => {
    await expect(send(make(), { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(requests).toBe(0);
  });
});

describe('the response to an outgoing request', () => {
  test('the response to an outgoing request has its status, headers and body', async () => {
    respond = (_, res) => {
      res.writeHead(418, { 'content-type': 'application/json', 'set-cookie': ['a=1', 'b=2'] });
      res.write('{"a":');
      res.end('"ö"}');
    };
    const { status, headers, body } = await send(make());
    expect([status, body.toString()]).toEqual([418, '{"a":"ö"}']);
    expect(headers).toMatchObject({ 'content-type': 'application/json', 'set-cookie': ['a=1', 'b=2'] });
  });

  test('a redirect in the response to an outgoing request is returned and not followed', async () => {
    respond = (_, res) => res.writeHead(302, { location: '/elsewhere' }).end();
    expect((await send(make())).status).toBe(302);
    expect(requests).toBe(1);
  });

  test('the response to an outgoing request is returned if its body has exactly the allowed number of bytes', async () => {
    respond = (_, res) => res.end('x'.repeat(1_000));
    expect((await send(make())).body).toHaveLength(1_000);
  });

  test('the response to an outgoing request with more bytes than allowed is rejected, and its connection ends', async () => {
    const closed = Promise.withResolvers<void>();
    respond = (_, res) => {
      res.once('close', () => closed.resolve());
      res.write('x'.repeat(1_001));
    };
    const error = await failureOf(send(make({ connections: 1 })));
    expect([error.failure, error.message]).toEqual(['too large', `the response from ${url.host} is too large`]);
    await closed.promise;
  });

  test.each([
    ['is cut off', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}', 'interrupted'],
    ['is not HTTP', 'no', 'malformed'],
    ['has an invalid body', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno', 'malformed'],
    ['has an invalid status', 'HTTP/1.1 000 No\r\nContent-Length: 2\r\n\r\n{}', 'malformed'],
    ['has two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}', 'malformed'],
    ['has a large head', `HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(20_000)}\r\n\r\n`, 'malformed'],
    ['is empty', '', 'unreachable'],
    ['has a truncated head', 'HTTP/1.1 200 OK\r\nX-', 'unreachable'],
  ])('an outgoing request fails if its response %s', async (_, bytes, failure) => {
    respond = raw(bytes);
    expect((await failureOf(send(make()))).failure).toBe(failure);
    expect(requests).toBe(1);
  });
});

/** Returns the number of connections that three requests use. */
async function connectionsOf(client: OutgoingClient): Promise<number> {
  const ports = new Set<number | undefined>();
  respond = (req, res) => {
    ports.add(req.socket.remotePort);
    res.end();
  };
  for (let count = 0; count < 3; count += 1) await send(client);
  return ports.size;
}

describe('the connections of an outgoing client', () => {
  test('an outgoing client with a connection limit reuses its connection', async () => {
    expect(await connectionsOf(make({ connections: 1 }))).toBe(1);
  });

  test('an outgoing client without a connection limit opens a connection for each request', async () => {
    expect(await connectionsOf(make())).toBe(3);
  });

  test('the connections of an outgoing client never exceed the limit', async () => {
    const waiting: ServerResponse[] = [];
    const arrived = Promise.withResolvers<void>();
    respond = (_, res) => {
      waiting.push(res);
      if (waiting.length === 2) arrived.resolve();
    };
    const client = make({ connections: 2 });
    const responses = [1, 2, 3].map(() => send(client));
    await arrived.promise;
    respond = (_, res) => res.end();
    for (const res of waiting) res.end();
    await Promise.all(responses);
    expect([waiting.length, requests]).toEqual([2, 3]);
  });

  test('a request of an outgoing client is repeated if its kept-alive connection ends', async () => {
    const client = make({ connections: 1 });
    await send(client);
    respond = (req) => {
      respond = (_, res) => res.end('again');
      req.socket.destroy();
    };
    expect((await send(client)).body.toString()).toBe('again');
    expect(requests).toBe(3);
  });

  test('a request of an outgoing client is not repeated if its new connection ends', async () => {
    respond = (req) => req.socket.destroy();
    expect((await failureOf(send(make({ connections: 1 })))).failure).toBe('unreachable');
    expect(requests).toBe(1);
  });

  test('closing an outgoing client aborts its request in progress, which is reported as unreachable', async () => {
    const arrived = Promise.withResolvers<void>();
    respond = () => arrived.resolve();
    const client = make({ connections: 1 });
    const failure = failureOf(send(client));
    await arrived.promise;
    await client.close();
    expect((await failure).failure).toBe('unreachable');
  });
});
