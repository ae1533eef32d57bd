import { beforeAll, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import http2, { type ClientHttp2Session } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { listenHTTP, listenTLS, type Listener } from '../../../src/http/listen.ts';
import { newMaterial, type ServingMaterial } from '../../../src/tls/authority.ts';
import { doing, face } from './lab.ts';

let material: ServingMaterial;
beforeAll(async () => {
  material = await newMaterial(['localhost'], Date.now());
});

const address = { host: '127.0.0.1', port: 0 };
const { app } = face({
  settings: { maxInFlight: 2, maxInFlightPerUser: 2 },
  routes: [doing((_, res) => void res.end('answered'), '/oauth/token', 'post')],
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
