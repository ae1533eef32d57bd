import { afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { Response } from 'express';
import { once } from 'node:events';
import http2, {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import tls from 'node:tls';
import type { HttpHandler } from '../../../../src/http/listeners/http-handler.ts';
import { listenHTTP, listenTLS, type Listener } from '../../../../src/http/listeners/listen.ts';
import { registry } from '../../../../src/runtime/metrics/registry.ts';
import { PreparedDocument } from '../../../../src/http/response/prepared-document.ts';
import { newMaterial, type ServingMaterial } from '../../../../src/tls/authority.ts';
import { doing, face } from '../../../labs/http.ts';

let material: ServingMaterial;
beforeAll(async () => {
  material = await newMaterial(['localhost'], Date.now());
});

const address = { host: '127.0.0.1', port: 0 };
const { app } = face({
  settings: { maxInFlight: 2, maxInFlightPerUser: 2 },
  routes: [
    doing((_, res) => void res.end('answered'), '/oauth/token', 'post'),
    doing((_, res) => void res.end('answered')),
  ],
});
const plain = (): Promise<Listener> => listenHTTP(app, address);
const secure = (): Promise<Listener> =>
  listenTLS(app, address, { key: material['tls.key'], cert: material['tls.crt'] }, true);

async function opened(port: number): Promise<Socket> {
  const socket = connect(port, address.host);
  socket.on('error', () => undefined).resume();
  await once(socket, 'connect');
  return socket;
}

async function statusOf(stream: ClientHttp2Stream): Promise<unknown> {
  stream.on('error', () => undefined);
  const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders];
  return headers[':status'];
}

const half = 'POST /oauth/token HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n';

describe('a listener that closes', () => {
  test.each([
    ['of silent clients without TLS', plain, ''],
    ['of silent clients with TLS', secure, ''],
    ['of clients without TLS that never end their request', plain, half],
    ['of clients that send plain HTTP to the TLS port', secure, half],
  ])('a listener that closes ends the connections %s', async (_, listen, firstBytes) => {
    const listener = await listen();
    const sockets = await Promise.all(Array.from({ length: 3 }, () => opened(listener.port)));
    for (const socket of sockets) socket.write(firstBytes);
    const ended = sockets.map((socket) => socket.closed || new Promise((resolve) => socket.once('close', resolve)));
    await listener.close({ grace: 50, idle: 0 });
    for (const one of ended) await one;
    expect(sockets.map(({ closed }) => closed)).toEqual([true, true, true]);
  });
});

const get = 'GET /kapis/version HTTP/1.1\r\nHost: platform.example\r\n\r\n';
const tunnels: readonly [string, () => Promise<Listener>, (port: number) => Promise<Duplex>][] = [
  ['without TLS', plain, opened],
  [
    'with TLS',
    secure,
    async (port) => {
      const socket = tls.connect({ port, host: address.host, ca: material['ca.crt'], servername: 'localhost' });
      await once(socket, 'secureConnect');
      return socket.on('error', () => undefined);
    },
  ],
];

describe.each(tunnels)('a client %s', (_, listen, open) => {
  test('the first response after a shutdown starts closes the connection of the client', async () => {
    const listener = await listen();
    const socket = await open(listener.port);
    listener.drain();
    socket.write(get);
    const response = await text(socket);
    expect(response).toMatch(/^HTTP\/1\.1 200 /);
    expect(response).toMatch(/^connection: close\r$/im);
    await listener.close({ grace: 50, idle: 0 });
  });

  test('a client that connected before the listener started to close gets a response to its first request', async () => {
    const listener = await listen();
    const socket = await open(listener.port);
    const closed = listener.close({ grace: 20_000, idle: 10_000 });
    await expect(opened(listener.port)).rejects.toThrow('ECONNREFUSED');
    socket.write(get);
    const received: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => received.push(chunk));
    await once(socket, 'data');
    expect(Buffer.concat(received).toString()).toMatch(/^HTTP\/1\.1 200 /);
    socket.destroy();
    await closed;
  });
});

test.each([
  ['1.0', 'resets', 'ECONNRESET'],
  // The client can read the received data, and detects that the body is incomplete.
  ['1.1', 'closes', undefined],
])('a shutdown during an unread response over HTTP/%s %s the connection', async (version, _, code) => {
  const { promise: isWritten, resolve: written } = Promise.withResolvers<void>();
  const { app: endless } = face({
    routes: [
      doing((_req, res) => {
        res.write(Buffer.alloc(8 * 1024 * 1024));
        written();
      }),
    ],
  });
  const listener = await listenHTTP(endless, address);
  const socket = connect(listener.port, address.host);
  let error: NodeJS.ErrnoException | undefined;
  socket.on('error', (one) => (error = one));
  socket.write(`GET /kapis/version HTTP/${version}\r\nHost: platform.example\r\n\r\n`);
  await isWritten;
  await listener.close({ grace: 1, idle: 0 });
  await new Promise((resolve) => socket.resume().once('close', resolve));
  expect(error?.code).toBe(code);
});

test('a request over HTTP/2 that never ends is closed when the response is sent, and releases its slot', async () => {
  const listener = await secure();
  const client: ClientHttp2Session = http2.connect(`https://localhost:${listener.port}`, { ca: material['ca.crt'] });
  const statuses: unknown[] = [];
  for (let number = 0; number < 5; number += 1) {
    const stream = client.request({ ':method': 'POST', ':path': '/oauth/token', 'content-length': '10' });
    stream.on('response', (headers) => statuses.push(headers[':status']));
    stream.resume();
    await once(stream, 'close');
    expect(stream.rstCode).toBe(http2.constants.NGHTTP2_NO_ERROR);
  }
  expect(statuses).toEqual([200, 200, 200, 200, 200]);
  client.destroy();
  await listener.close({ grace: 50, idle: 0 });
});

/** Connects an HTTP/2 client with a flow-control window of 0, to which the server cannot send a response body. */
async function unread(port: number): Promise<ClientHttp2Session> {
  const client = http2.connect(`https://localhost:${port}`, {
    ca: material['ca.crt'],
    settings: { initialWindowSize: 0 },
  });
  client.on('error', () => undefined);
  await once(client, 'remoteSettings');
  return client;
}

/** Opens streams, and returns them when the client has received the headers of all responses. */
async function openStreams(
  client: ClientHttp2Session,
  count: number,
  headers: OutgoingHttpHeaders = {},
): Promise<ClientHttp2Stream[]> {
  const streams = Array.from({ length: count }, () => client.request({ ':path': '/kapis/version', ...headers }));
  await Promise.all(streams.map(statusOf));
  return streams;
}

/** Resolves when the client has received everything that the server sent before this call. */
const roundTrip = (client: ClientHttp2Session): Promise<unknown> =>
  new Promise((resolve) => client.ping((_, duration) => resolve(duration)));

const cutOff = (streams: readonly ClientHttp2Stream[]): number[] =>
  streams.flatMap(({ rstCode }, index) => (rstCode === http2.constants.NGHTTP2_INTERNAL_ERROR ? [index] : []));

const serve = (served: HttpHandler): Promise<Listener> =>
  listenTLS(served, address, { key: material['tls.key'], cert: material['tls.crt'] }, false);

/** Waits until this many streams are closed, and until data that the server sent afterwards has arrived. */
async function settled(streams: readonly ClientHttp2Stream[], closed: number): Promise<void> {
  while (streams.filter((stream) => stream.closed).length < closed) await new Promise(setImmediate);
  for (const client of new Set(streams.flatMap(({ session }) => session ?? [])))
    await roundTrip(client as ClientHttp2Session);
}

describe('over HTTP/2', () => {
  test('a response over HTTP/2 that a shutdown interrupts ends with an error, so that clients do not consider it complete', async () => {
    const { app: endless } = face({ routes: [doing((_, res) => void res.write('{"items":['))] });
    const { 'tls.key': key, 'tls.crt': cert } = material;
    const listener = await listenTLS(endless, address, { key, cert }, false);
    const client = http2.connect(`https://localhost:${listener.port}`, { ca: material['ca.crt'] });
    client.on('error', () => undefined);
    const stream = client.request({ ':path': '/kapis/version' });
    const failed = once(stream, 'error');
    await once(stream, 'data');
    await listener.close({ grace: 1, idle: 0 });
    await expect(failed).resolves.toHaveLength(1);
    client.destroy();
  });

  test('a shutdown resets every stream of an HTTP/2 connection with INTERNAL_ERROR', async () => {
    const { app: endless } = face({
      settings: { maxInFlight: 40, maxInFlightPerUser: 40 },
      routes: [doing((_, res) => void res.write(Buffer.alloc(256 * 1024)))],
    });
    const listener = await serve(endless);
    const client = http2.connect(`https://localhost:${listener.port}`, { ca: material['ca.crt'] });
    client.on('error', () => undefined);
    const streams = await openStreams(client, 8);
    const results = streams.map(async (stream) => {
      try {
        for await (const _ of stream);
        return 'complete';
      } catch {
        return stream.rstCode;
      }
    });
    await listener.close({ grace: 1, idle: 0 });
    expect(await Promise.all(results)).toEqual(streams.map(() => http2.constants.NGHTTP2_INTERNAL_ERROR));
    client.destroy();
  });

  test('the server aborts the oldest response over HTTP/2 when more than 4,000 small responses are unread', async () => {
    const listener = await serve(app);
    const clients = await Promise.all(Array.from({ length: 5 }, () => unread(listener.port)));
    const streams: ClientHttp2Stream[] = [];
    for (const client of clients) streams.push(...(await openStreams(client, 850)));
    await settled(streams, 250);
    expect(cutOff(streams)).toEqual(Array.from({ length: 250 }, (_, index) => index));
    expect(streams.filter((stream) => stream.closed)).toHaveLength(250);
    for (const client of clients) client.destroy();
    await listener.close({ grace: 50, idle: 0 });
  });

  test.each([
    ['address', () => '192.0.2.2'],
    ['IPv6 /48', (number: number) => `2001:db8:1:${number}::1`],
  ])('the server aborts unread responses over HTTP/2 of the %s with the most unread responses', async (_, attacker) => {
    const { app: proxied } = face({ settings: { trustedProxies: ['127.0.0.1'] } });
    const listener = await serve(proxied);
    const clients = await Promise.all(Array.from({ length: 6 }, () => unread(listener.port)));
    const [reader, ...attackers] = clients as [ClientHttp2Session, ...ClientHttp2Session[]];
    const kept = await openStreams(reader, 1, { 'x-forwarded-for': '192.0.2.1' });
    const streams: ClientHttp2Stream[] = [];
    for (const [number, client] of attackers.entries())
      streams.push(...(await openStreams(client, 850, { 'x-forwarded-for': attacker(number) })));
    await settled([...kept, ...streams], 251);
    expect(cutOff(kept)).toEqual([]);
    expect(cutOff(streams)).toEqual(Array.from({ length: 251 }, (__, index) => index));
    for (const client of clients) client.destroy();
    await listener.close({ grace: 50, idle: 0 });
  });

  test('a document that a client reads slowly over HTTP/2 is not aborted because of unread small responses to the same address', async () => {
    const document = new PreparedDocument([Buffer.alloc(1024 * 1024)]);
    const { app: documents } = face({
      routes: [
        doing((req, res, context) => document.write(req, res, context)),
        doing((_, res) => void res.end('small'), '/livez'),
      ],
    });
    const listener = await serve(documents);
    const reader = http2.connect(`https://localhost:${listener.port}`, { ca: material['ca.crt'] });
    const [slow] = (await openStreams(reader, 1)) as [ClientHttp2Stream];
    const isClosed = once(slow, 'close');
    const clients = await Promise.all(Array.from({ length: 5 }, () => unread(listener.port)));
    const streams: ClientHttp2Stream[] = [];
    for (const client of clients) streams.push(...(await openStreams(client, 850, { ':path': '/livez' })));
    await settled(streams, 250);
    let bytes = 0;
    slow.on('data', (piece: Buffer) => (bytes += piece.length));
    await isClosed;
    expect([slow.rstCode, bytes]).toEqual([http2.constants.NGHTTP2_NO_ERROR, 1024 * 1024]);
    for (const client of [...clients, reader]) client.destroy();
    await listener.close({ grace: 50, idle: 0 });
  });

  test('the server aborts the oldest document over HTTP/2 when more than 1,000 are unread', async () => {
    const document = new PreparedDocument([Buffer.alloc(1024 * 1024)]);
    const { app: documents } = face({ routes: [doing((req, res, context) => document.write(req, res, context))] });
    const listener = await serve(documents);
    const clients = await Promise.all(Array.from({ length: 2 }, () => unread(listener.port)));
    const streams: ClientHttp2Stream[] = [];
    for (const client of clients) streams.push(...(await openStreams(client, 550)));
    await settled(streams, 100);
    expect(cutOff(streams)).toEqual(Array.from({ length: 100 }, (_, index) => index));
    for (const client of clients) client.destroy();
    await listener.close({ grace: 50, idle: 0 });
  });

  test('the server destroys the HTTP/2 connection of an aborted response if its client stops reading from TCP', async () => {
    const document = new PreparedDocument([Buffer.alloc(1024 * 1024)]);
    const { promise: areCut, resolve: cut } = Promise.withResolvers<void>();
    let handled = 0;
    let closed = 0;
    const { app: documents } = face({
      routes: [
        doing((req, res, context) => {
          handled += 1;
          res.once('close', () => {
            closed += 1;
            if (handled - closed <= 1_000) cut();
          });
          return document.write(req, res, context);
        }),
      ],
    });
    const listener = await serve(documents);
    const sockets: Socket[] = [];
    // Node.js does not allow an HTTP/2 client to pause its socket.
    const relay = createServer((downstream) => {
      const upstream = connect(listener.port, address.host);
      sockets.push(upstream, downstream);
      for (const socket of [upstream, downstream]) socket.on('error', () => undefined);
      downstream.pipe(upstream);
      upstream.pipe(downstream);
    }).listen(0, address.host);
    await once(relay, 'listening');
    const { port } = relay.address() as AddressInfo;
    const clients: ClientHttp2Session[] = [];
    for (let number = 0; number < 2; number += 1) {
      const client = http2.connect(`https://localhost:${port}`, {
        ca: material['ca.crt'],
        settings: { initialWindowSize: 2 ** 31 - 1 },
      });
      client.on('error', () => undefined);
      client.once('connect', () => client.setLocalWindowSize(2 ** 31 - 1));
      await once(client, 'remoteSettings');
      await roundTrip(client);
      clients.push(client);
    }
    for (const socket of sockets.filter((_, index) => index % 2 === 0)) socket.unpipe().pause();
    for (const client of clients)
      for (let number = 0; number < 550; number += 1)
        client.request({ ':path': '/kapis/version' }).on('error', () => undefined);
    await areCut;
    expect(handled).toBe(1_100);
    expect(closed).toBeGreaterThanOrEqual(100);
    for (const client of clients) client.destroy();
    for (const socket of sockets) socket.destroy();
    relay.close();
    await listener.close({ grace: 50, idle: 0 });
  });
});

describe('an HTTP/2 connection', () => {
  beforeEach(() => {
    jest.useFakeTimers({
      doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'setTimeout', 'clearTimeout', 'Date'],
    });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  test('an HTTP/2 connection is closed when it is idle, even if only the TLS handshake took place', async () => {
    const listener = await secure();
    const options = { port: listener.port, host: 'localhost', ca: material['ca.crt'], ALPNProtocols: ['h2'] };
    const silent = tls.connect(options);
    silent.on('error', () => undefined).resume();
    const client = http2.connect(`https://localhost:${listener.port}`, options);
    await Promise.all([once(silent, 'secureConnect'), once(client, 'remoteSettings')]);
    await once(client.request({ ':path': '/nobody' }).resume(), 'close');
    const isClosed = (): boolean[] => [silent.destroyed, client.destroyed];
    jest.advanceTimersByTime(60_000);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(isClosed()).toEqual([false, false]);
    while (isClosed().includes(false)) {
      jest.advanceTimersByTime(15_000);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await listener.close({ grace: 50, idle: 0 });
  });

  test('an HTTP/2 connection stays open while a request is in flight', async () => {
    const { promise: handled, resolve: handling } = Promise.withResolvers<Response>();
    const { app: slow } = face({ routes: [doing((_, res) => handling(res))] });
    const { 'tls.key': key, 'tls.crt': cert } = material;
    const listener = await listenTLS(slow, address, { key, cert }, false);
    const client = http2.connect(`https://localhost:${listener.port}`, { ca: material['ca.crt'] });
    const response = statusOf(client.request({ ':path': '/kapis/version' }));
    const res = await handled;
    jest.advanceTimersByTime(600_000);
    res.end();
    expect(await response).toBe(200);
    client.destroy();
    await listener.close({ grace: 50, idle: 0 });
  });
});

describe('a client that does not read its response', () => {
  test('a client that does not read its response holds no slot for a small response', async () => {
    const listener = await secure();
    const client = await unread(listener.port);
    const statuses: unknown[] = [];
    for (const path of ['/nobody', '/nobody', '/nobody', '/oauth/nothing', '/oauth/nothing', '/oauth/nothing'])
      statuses.push(await statusOf(client.request({ ':path': path })));
    expect(statuses).toEqual([401, 401, 401, 404, 404, 404]);
    client.destroy();
    await listener.close({ grace: 50, idle: 0 });
  });

  test('a client that does not read its response holds no slot for a document that is the same for all users', async () => {
    const document = new PreparedDocument([Buffer.alloc(1024 * 1024)]);
    const { app: shared } = face({
      settings: { maxInFlight: 2, maxInFlightPerUser: 2 },
      routes: [doing((req, res, context) => document.write(req, res, context))],
    });
    const { 'tls.key': key, 'tls.crt': cert } = material;
    const listener = await listenTLS(shared, address, { key, cert }, false);
    const client = await unread(listener.port);
    const statuses: unknown[] = [];
    for (let number = 0; number < 5; number += 1)
      statuses.push(await statusOf(client.request({ ':path': '/kapis/version' })));
    expect(statuses).toEqual([200, 200, 200, 200, 200]);
    client.destroy();
    await listener.close({ grace: 50, idle: 0 });
  });

  // The body exceeds what both ends of an HTTP/1.1 connection buffer, and what Node.js buffers for HTTP/2.
  const large = doing((req, res) => void res.end(Buffer.alloc((req.httpVersionMajor === 1 ? 8 : 1) * 1024 * 1024)));
  const late = '/kapis/version?timeout=2s';
  const { app: generous } = face({ settings: { maxInFlight: 8, maxInFlightPerUser: 8 }, routes: [large] });

  test('a client that does not read a large response over HTTP/2 is disconnected after a timeout, which releases the slot', async () => {
    const { 'tls.key': key, 'tls.crt': cert } = material;
    const listener = await listenTLS(generous, address, { key, cert }, false);
    const client = await unread(listener.port);
    const all = [client.request({ ':path': late }), client.request({ ':path': late })];
    const closed = all.map((stream) => new Promise((resolve) => stream.once('close', resolve)));
    expect(await Promise.all(all.map(statusOf))).toEqual([200, 200]);
    expect(await statusOf(client.request({ ':path': late }))).toBe(429);
    await Promise.all(closed);
    expect(all.map(({ rstCode }) => rstCode)).toEqual(all.map(() => http2.constants.NGHTTP2_INTERNAL_ERROR));
    expect(await statusOf(client.request({ ':path': late }))).toBe(200);
    client.destroy();
    await listener.close({ grace: 50, idle: 0 });
  });

  test('a client that does not read a large response over HTTP/1.1 is disconnected after a timeout, which releases the slot', async () => {
    const listener = await listenHTTP(generous, address);
    const requestHead = `GET ${late} HTTP/1.1\r\nHost: a\r\n\r\n`;
    const socket = await opened(listener.port);
    socket.pause().write(requestHead.repeat(2));
    const other = await opened(listener.port);
    const responses = other.setEncoding('latin1').iterator() as AsyncIterator<string>;
    const send = async (): Promise<string> => {
      other.write(requestHead.replace('GET', 'HEAD'));
      return String((await responses.next()).value).slice(0, 12);
    };
    while ((await send()) !== 'HTTP/1.1 429') continue;
    let status = '';
    while (status !== 'HTTP/1.1 200') status = await send();
    expect(status).toBe('HTTP/1.1 200');
    other.destroy();
    socket.resume();
    await listener.close({ grace: 50, idle: 0 });
  });
});

const anonymous = async (): Promise<number> =>
  Number(/_in_flight\{kind="anonymous"\} (.+)/.exec(await registry.metrics())?.[1] ?? 0);

test('a client that disconnects releases its slot once, even if its request is rejected later', async () => {
  const { promise: authenticated, resolve: authenticate } = Promise.withResolvers<void>();
  const refused = async (): Promise<void> => {
    await authenticated;
    throw new Error('too late');
  };
  const listener = await listenHTTP(face({ routes: [doing(refused)] }).app, address);
  const before = await anonymous();
  const gone = await opened(listener.port);
  gone.write('GET /kapis/version HTTP/1.1\r\nHost: a\r\n\r\n');
  while ((await anonymous()) === before) await new Promise(setImmediate);
  gone.destroy();
  while ((await anonymous()) !== before) await new Promise(setImmediate);
  authenticate();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(await anonymous()).toBe(before);
  await listener.close({ grace: 50, idle: 0 });
});

test('anonymous requests of one address cannot take all slots of anonymous requests', async () => {
  const { app: open } = face({
    settings: { maxInFlight: 40, maxInFlightPerUser: 8 },
    routes: [doing((_, res) => void res.end(Buffer.alloc(1024 * 1024)))],
  });
  const { 'tls.key': key, 'tls.crt': cert } = material;
  const listener = await listenTLS(open, address, { key, cert }, false);
  const client = await unread(listener.port);
  const statuses: unknown[] = [];
  for (let number = 0; number < 3; number += 1)
    statuses.push(await statusOf(client.request({ ':path': '/kapis/version' })));
  expect(statuses).toEqual([200, 200, 429]);
  client.destroy();
  await listener.close({ grace: 50, idle: 0 });
});

test('a listener that requests client certificates does not resume TLS sessions, even after the server certificate changed', async () => {
  const certificate = { key: material['tls.key'], cert: material['tls.crt'] };
  const listener = await listenTLS(app, address, certificate, true);
  const handshake = async (session?: Buffer): Promise<tls.TLSSocket> => {
    const socket = tls.connect({
      port: listener.port,
      host: 'localhost',
      ca: material['ca.crt'],
      // With TLS 1.2 the client has the session ticket as soon as the handshake is complete.
      maxVersion: 'TLSv1.2',
      ...(session === undefined ? {} : { session }),
    });
    socket.on('error', () => undefined);
    await once(socket, 'secureConnect');
    return socket;
  };
  const isResumed = async (): Promise<boolean> => {
    const first = await handshake();
    const second = await handshake(first.getSession());
    const isReused = second.isSessionReused();
    for (const socket of [first, second]) socket.destroy();
    return isReused;
  };
  try {
    expect(await isResumed()).toBe(false);
    listener.setCertificate(certificate);
    expect(await isResumed()).toBe(false);
  } finally {
    await listener.close({ grace: 0, idle: 0 });
  }
});
