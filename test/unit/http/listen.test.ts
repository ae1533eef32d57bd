import { afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { Response } from 'express';
import { once } from 'node:events';
import http2, { type ClientHttp2Session, type ClientHttp2Stream, type IncomingHttpHeaders } from 'node:http2';
import { connect, type Socket } from 'node:net';
import tls from 'node:tls';
import { listenHTTP, listenTLS, type Listener } from '../../../src/http/listen.ts';
import { registry } from '../../../src/http/metrics.ts';
import { PreparedDocument } from '../../../src/http/prepared-document.ts';
import { newMaterial, type ServingMaterial } from '../../../src/tls/authority.ts';
import { doing, face } from './lab.ts';

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
    ['without TLS, of clients that say nothing', plain, ''],
    ['with TLS, of clients that say nothing', secure, ''],
    ['without TLS, of clients that never end their request', plain, half],
    ['with TLS, of clients that speak without it', secure, half],
  ])('ends the connections %s', async (_, listen, said) => {
    const listener = await listen();
    const sockets = await Promise.all(Array.from({ length: 3 }, () => opened(listener.port)));
    for (const socket of sockets) socket.write(said);
    const ended = sockets.map((socket) => socket.closed || new Promise((resolve) => socket.once('close', resolve)));
    await listener.close(50);
    for (const one of ended) await one;
    expect(sockets.map(({ closed }) => closed)).toEqual([true, true, true]);
  });
});

test('over HTTP/2 a request that never ends is closed when it is answered, and gives its place back', async () => {
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
  await listener.close(50);
});

/** A client that never reads what it is answered: over HTTP/2 it need not even take it from its socket. */
async function unread(port: number): Promise<ClientHttp2Session> {
  const client = http2.connect(`https://localhost:${port}`, {
    ca: material['ca.crt'],
    settings: { initialWindowSize: 0 },
  });
  client.on('error', () => undefined);
  await once(client, 'remoteSettings');
  return client;
}

test('of small responses that are not read over HTTP/2 the oldest are cut, and others are served', async () => {
  const listener = await secure();
  const clients = await Promise.all(Array.from({ length: 5 }, () => unread(listener.port)));
  const cut = Promise.withResolvers<void>();
  const codes: number[] = [];
  let open = 0;
  for (const client of clients)
    for (let number = 0; number < 850; number += 1) {
      const stream = client.request({ ':path': '/kapis/version' });
      open += 1;
      stream.on('error', () => undefined);
      stream.once('close', () => {
        codes.push(stream.rstCode);
        open -= 1;
        if (open === 4_000) cut.resolve();
      });
    }
  await cut.promise;
  const reader = http2.connect(`https://localhost:${listener.port}`, { ca: material['ca.crt'] });
  expect(await statusOf(reader.request({ ':path': '/kapis/version' }).resume())).toBe(200);
  expect(new Set(codes)).toEqual(new Set([http2.constants.NGHTTP2_CANCEL]));
  for (const client of [...clients, reader]) client.destroy();
  await listener.close(50);
});

describe('a connection of HTTP/2', () => {
  beforeEach(() => {
    jest.useFakeTimers({
      doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'setTimeout', 'clearTimeout', 'Date'],
    });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  test('is closed when it has had no request for a while, also where nothing but TLS was ever spoken', async () => {
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
    await listener.close(50);
  });

  test('stays while a request is under way', async () => {
    const { promise: handled, resolve: handling } = Promise.withResolvers<Response>();
    const { app: slow } = face({ routes: [doing((_, res) => handling(res))] });
    const { 'tls.key': key, 'tls.crt': cert } = material;
    const listener = await listenTLS(slow, address, { key, cert }, false);
    const client = http2.connect(`https://localhost:${listener.port}`, { ca: material['ca.crt'] });
    const answer = statusOf(client.request({ ':path': '/kapis/version' }));
    const res = await handled;
    jest.advanceTimersByTime(600_000);
    res.end();
    expect(await answer).toBe(200);
    client.destroy();
    await listener.close(50);
  });
});

describe('whoever does not read an answer', () => {
  test('keeps no place with a small one', async () => {
    const listener = await secure();
    const client = await unread(listener.port);
    const statuses: unknown[] = [];
    for (const path of ['/nobody', '/nobody', '/nobody', '/oauth/nothing', '/oauth/nothing', '/oauth/nothing'])
      statuses.push(await statusOf(client.request({ ':path': path })));
    expect(statuses).toEqual([401, 401, 401, 404, 404, 404]);
    client.destroy();
    await listener.close(50);
  });

  test('takes no slot with a document that is the same for everybody', async () => {
    const document = new PreparedDocument([Buffer.alloc(1024 * 1024)]);
    const { app: shared } = face({
      settings: { maxInFlight: 2, maxInFlightPerUser: 2 },
      routes: [doing((req, res, context) => document.answer(req, res, context))],
    });
    const { 'tls.key': key, 'tls.crt': cert } = material;
    const listener = await listenTLS(shared, address, { key, cert }, false);
    const client = await unread(listener.port);
    const statuses: unknown[] = [];
    for (let number = 0; number < 5; number += 1)
      statuses.push(await statusOf(client.request({ ':path': '/kapis/version' })));
    expect(statuses).toEqual([200, 200, 200, 200, 200]);
    client.destroy();
    await listener.close(50);
  });

  // Over HTTP/1.1 more than both ends of a connection hold, over HTTP/2 no more than Node lets one hold.
  const large = doing((req, res) => void res.end(Buffer.alloc((req.httpVersionMajor === 1 ? 8 : 1) * 1024 * 1024)));
  const late = '/kapis/version?timeout=2s';
  const { app: generous } = face({ settings: { maxInFlight: 8, maxInFlightPerUser: 8 }, routes: [large] });

  test('is cut off when it is late, and then gives back the place of a large one: HTTP/2', async () => {
    const { 'tls.key': key, 'tls.crt': cert } = material;
    const listener = await listenTLS(generous, address, { key, cert }, false);
    const client = await unread(listener.port);
    const all = [client.request({ ':path': late }), client.request({ ':path': late })];
    const closed = all.map((stream) => once(stream, 'close'));
    expect(await Promise.all(all.map(statusOf))).toEqual([200, 200]);
    expect(await statusOf(client.request({ ':path': late }))).toBe(429);
    await Promise.all(closed);
    expect(all.map(({ rstCode }) => rstCode)).toEqual(all.map(() => http2.constants.NGHTTP2_CANCEL));
    expect(await statusOf(client.request({ ':path': late }))).toBe(200);
    client.destroy();
    await listener.close(50);
  });

  test('is cut off when it is late, and then gives back the place of a large one: HTTP/1.1', async () => {
    const listener = await listenHTTP(generous, address);
    const asked = `GET ${late} HTTP/1.1\r\nHost: a\r\n\r\n`;
    const socket = await opened(listener.port);
    socket.pause().write(asked.repeat(2));
    const other = await opened(listener.port);
    const answers = other.setEncoding('latin1').iterator() as AsyncIterator<string>;
    const ask = async (): Promise<string> => {
      other.write(asked.replace('GET', 'HEAD'));
      return String((await answers.next()).value).slice(0, 12);
    };
    while ((await ask()) !== 'HTTP/1.1 429') continue;
    let status = '';
    while (status !== 'HTTP/1.1 200') status = await ask();
    expect(status).toBe('HTTP/1.1 200');
    other.destroy();
    socket.resume();
    await listener.close(50);
  });
});

const anonymous = async (): Promise<number> =>
  Number(/_in_flight\{kind="anonymous"\} (.+)/.exec(await registry.metrics())?.[1] ?? 0);

test('a client that goes away gives its place back once, also where its request is refused later', async () => {
  const { promise: judged, resolve: judge } = Promise.withResolvers<void>();
  const refused = async (): Promise<void> => {
    await judged;
    throw new Error('too late');
  };
  const listener = await listenHTTP(face({ routes: [doing(refused)] }).app, address);
  const before = await anonymous();
  const gone = await opened(listener.port);
  gone.write('GET /kapis/version HTTP/1.1\r\nHost: a\r\n\r\n');
  while ((await anonymous()) === before) await new Promise(setImmediate);
  gone.destroy();
  while ((await anonymous()) !== before) await new Promise(setImmediate);
  judge();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(await anonymous()).toBe(before);
  await listener.close(50);
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
  await listener.close(50);
});

test('a session of a client with a certificate is not resumed, nor after the certificate of the server changed', async () => {
  const certificate = { key: material['tls.key'], cert: material['tls.crt'] };
  const listener = await listenTLS(app, address, certificate, true);
  const handshake = async (session?: Buffer): Promise<tls.TLSSocket> => {
    const socket = tls.connect({
      port: listener.port,
      host: 'localhost',
      ca: material['ca.crt'],
      // Its client has the ticket when the handshake is over.
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
    await listener.close(0);
  }
});
