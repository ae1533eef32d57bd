/** Upgraded connections of the gateway; the test simulates kube-apiserver. */
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { Request, Response } from 'express';
import { once } from 'node:events';
import http, { type IncomingMessage, type Server } from 'node:http';
import net, { type AddressInfo, type Socket } from 'node:net';
import { duplexPair, PassThrough, Readable, type Duplex } from 'node:stream';
import { upgrade } from '../../../src/gateway/upgrade.ts';
import type { RequestContext } from '../../../src/http/route.ts';
import { serveHandshakes } from '../../../src/http/listeners/web-socket.ts';
import type { Upstream, UpgradeResponse } from '../../../src/cluster/client/upstream.ts';

interface UpgradeRequest {
  readonly signal: AbortSignal;
  /** Sends the response of kube-apiserver. */
  readonly respond: (response: UpgradeResponse) => void;
  /** Resolves with the error of the handler of the request, or with undefined if the handler succeeds. */
  readonly handled: Promise<unknown>;
}

let server: Server;
let session: AbortController;
let changeUser: () => void;
let upgradeRequest: Promise<UpgradeRequest>;
const clients: Socket[] = [];
/** The server end of the latest client connection. */
let accepted: Socket;
beforeEach(async () => {
  session = new AbortController();
  const { promise, resolve } = Promise.withResolvers<UpgradeRequest>();
  upgradeRequest = promise;
  server = http.createServer().on('connection', (socket: Socket) => (accepted = socket));
  serveHandshakes(server, ((req: Request, res: Response) => {
    const response = Promise.withResolvers<UpgradeResponse>();
    const { promise: signalled, resolve: signalWith } = Promise.withResolvers<AbortSignal>();
    const upstream = {
      upgrade: (_request: unknown, _protocol: string, signal: AbortSignal) => {
        signalWith(signal);
        signal.addEventListener('abort', () => response.reject(signal.reason as Error));
        return response.promise;
      },
    } as unknown as Upstream;
    const context = {
      info: { verb: 'get', subresource: 'exec', isLongRunning: true },
      user: { username: 'anna', groups: [], via: 'token' },
      signal: session.signal,
      onUserChange: (listener: () => void) => (changeUser = listener),
    } as unknown as RequestContext;
    const handled = upgrade(upstream, req, res, context).catch((error: unknown) => {
      res.destroy();
      return error;
    });
    void signalled.then((signal) => resolve({ signal, respond: response.resolve, handled }));
  }) as unknown as Parameters<typeof serveHandshakes>[1]);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => {
  for (const client of clients.splice(0)) client.destroy();
  server.close();
});

/** A client that has requested SPDY. */
function connect(): Socket {
  const { port } = server.address() as AddressInfo;
  const client = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true }).setEncoding('utf8');
  client.on('error', () => undefined);
  client.write('GET /exec HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: spdy/3.1\r\n\r\n');
  clients.push(client);
  return client;
}

/** Returns a response of kube-apiserver, and a mock that records whether the socket of the response was destroyed. */
const headOf = (
  statusCode: number,
  headers: Readonly<Record<string, string>>,
  body: Readable = Readable.from([]),
): { readonly response: IncomingMessage; readonly destroy: jest.Mock<() => void> } => {
  const destroy = jest.fn<() => void>();
  const rawHeaders = Object.entries(headers).flat();
  const parts = { statusCode, statusMessage: 'Own', headers, rawHeaders, socket: { destroy } };
  return { response: Object.assign(body, parts) as unknown as IncomingMessage, destroy };
};

interface Joined {
  readonly client: Socket;
  /** kube-apiserver's end of the connection from the gateway. */
  readonly kube: Duplex;
  /** The gateway's end of the connection to kube-apiserver. */
  readonly connection: Duplex;
  readonly handled: Promise<unknown>;
  readonly destroy: jest.Mock<() => void>;
  readonly text: () => string;
}

async function join(first = ''): Promise<Joined> {
  const client = connect();
  const { respond, handled } = await upgradeRequest;
  const [connection, kube] = duplexPair();
  const { response, destroy } = headOf(101, { upgrade: 'SPDY/3.1', connection: 'Upgrade', 'X-Own': 'kept' });
  respond({ response, granted: { connection, first: Buffer.from(first) } });
  let text = '';
  client.on('data', (chunk) => (text += String(chunk)));
  while (!text.includes('\r\n\r\n')) await once(client, 'data');
  return { client, kube, connection, handled, destroy, text: () => text };
}

const bodyOf = (text: string): string => text.slice(text.indexOf('\r\n\r\n') + 4);

test('a client gets the response of kube-apiserver to an upgrade request, and the data that follows the response', async () => {
  const { client, kube, text } = await join('first ');
  kube.end('and last');
  await once(client, 'end');
  expect(text()).toMatch(/^HTTP\/1\.1 101 Own\r\n/);
  expect(text()).toMatch(/\r\nX-Own: kept\r\n/);
  expect(text().match(/^upgrade: .*$/gim)).toEqual(['Upgrade: SPDY/3.1']);
  expect(bodyOf(text())).toBe('first and last');
});

describe('one side of an upgraded connection', () => {
  test('kube-apiserver can send more data on an upgraded connection after the client has closed its side', async () => {
    const { client, kube, text, handled, destroy } = await join();
    client.end('from the client');
    kube.setEncoding('utf8');
    expect((await kube.toArray()).join('')).toBe('from the client');
    kube.end('from kube-apiserver');
    await once(client, 'close');
    expect(bodyOf(text())).toBe('from kube-apiserver');
    expect(await handled).toBeUndefined();
    expect(destroy).toHaveBeenCalled();
  });

  test('the client can send more data on an upgraded connection after kube-apiserver has closed its side', async () => {
    const { client, kube, handled } = await join();
    kube.end('from kube-apiserver');
    await once(client, 'end');
    client.end('from the client');
    expect(String(Buffer.concat((await kube.toArray()) as Buffer[]))).toBe('from the client');
    expect(await handled).toBeUndefined();
  });
});

const gone = (stream: Duplex): Promise<unknown> =>
  new Promise((resolve) => (stream.closed ? resolve(undefined) : stream.once('close', resolve)));

describe('both sides of an upgraded connection are closed', () => {
  test.each<[string, (joined: Joined) => void]>([
    ['the client disconnects', ({ client }) => client.resetAndDestroy()],
    ['kube-apiserver disconnects', ({ connection }) => void connection.destroy()],
    ['the connection to kube-apiserver fails', ({ connection }) => void connection.destroy(new Error('reset'))],
    ['the session is revoked', () => session.abort()],
    ['the user has changed', () => changeUser()],
  ])('both sides of an upgraded connection are closed when %s', async (_, end) => {
    const joined = await join();
    end(joined);
    await Promise.all([gone(accepted), gone(joined.connection)]);
    expect(await joined.handled).toBeUndefined();
    expect(joined.destroy).toHaveBeenCalled();
  });

  test('both sides of an upgraded connection are closed 2 s after kube-apiserver closed its side, even if the client does not respond', async () => {
    const { client, kube, connection } = await join();
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'performance', 'Date'] });
    try {
      const ended = once(client, 'end');
      kube.end();
      await ended;
      connection.destroy();
      await gone(connection);
      expect(accepted.destroyed).toBe(false);
      jest.advanceTimersByTime(2_000);
      await gone(accepted);
    } finally {
      jest.useRealTimers();
    }
  });
});

describe('before an upgrade gets a response', () => {
  test.each<[string, () => void]>([
    ['the session is revoked', () => session.abort()],
    ['the user has changed', () => changeUser()],
  ])('an upgrade request that has no response yet is aborted when %s', async (_, end) => {
    connect();
    const { signal, handled } = await upgradeRequest;
    end();
    expect(signal.aborted).toBe(true);
    expect(await handled).toMatchObject({ code: 503 });
  });

  test('a response to an upgrade request is not forwarded if the session is revoked as it arrives', async () => {
    const client = connect();
    const { respond, handled } = await upgradeRequest;
    const { response, destroy } = headOf(101, { upgrade: 'SPDY/3.1' });
    const [connection] = duplexPair();
    respond({ response, granted: { connection, first: Buffer.from('secret') } });
    session.abort();
    expect(await handled).toMatchObject({ code: 503 });
    expect(destroy).toHaveBeenCalled();
    client.end();
    expect(await client.toArray()).toEqual([]);
  });

  test('the gateway sends no upgrade request to kube-apiserver if the session was already revoked', async () => {
    session.abort();
    connect();
    expect((await upgradeRequest).signal.aborted).toBe(true);
  });
});

describe('a response that rejects an upgrade', () => {
  test('a response that rejects an upgrade reaches the client unchanged, and both connections are closed', async () => {
    const client = connect();
    const { respond, handled } = await upgradeRequest;
    const body = new PassThrough();
    const { response, destroy } = headOf(403, { 'Content-Length': '2', 'X-Own': 'kept' }, body);
    respond({ response });
    const [head] = (await once(client, 'data')) as [string];
    expect(head).toMatch(/^HTTP\/1\.1 403 Own\r\n[^]*X-Own: kept\r\n[^]*Connection: close\r\n/);
    expect(bodyOf(head)).toBe('');
    body.end('no');
    expect(((await client.toArray()) as string[]).join('')).toBe('no');
    expect(await handled).toBeUndefined();
    expect(destroy).toHaveBeenCalled();
  });

  test('a truncated response that rejects an upgrade is also truncated for the client', async () => {
    const client = connect();
    const { respond, handled } = await upgradeRequest;
    const body = new PassThrough();
    respond({ response: headOf(403, { 'Content-Length': '9' }, body).response });
    await once(client, 'data');
    const closed = once(client, 'close');
    body.destroy(new Error('reset'));
    client.end();
    await closed;
    expect(await handled).toBeUndefined();
  });
});
