import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer, type TLSSocket } from 'node:tls';
import { addressOf, Connections } from '../../../../src/cluster/wire/connections.ts';
import { streamed, whole, type UpstreamRequest } from '../../../../src/cluster/wire/response.ts';
import { newMaterial } from '../../../../src/tls/authority.ts';
import { FakeKubeApiserver } from '../../../fakes/upstream.ts';

const max = 2;
let kube: FakeKubeApiserver;
let server: string;
let connections: Connections;
/** Responses that the test has not sent yet, by their path. */
let held: Map<string, ServerResponse>;
beforeEach(async () => {
  held = new Map();
  kube = new FakeKubeApiserver();
  kube.serve = ({ url = '' }, res) => void held.set(url, res);
  server = await kube.listen();
  connections = new Connections(addressOf(server, { rejectUnauthorized: true }), max);
});
afterEach(() => {
  connections.close();
  kube.close();
});

const requestTo = (target: string, timeout = 0, method = 'GET'): UpstreamRequest => ({
  method,
  head: `${method} ${target} HTTP/1.1\r\nHost: a\r\n\r\n`,
  timeout,
});

async function responseTo(target: string): Promise<ServerResponse> {
  while (!held.has(target)) await sleep(1);
  const res = held.get(target) as ServerResponse;
  held.delete(target);
  return res;
}

const seen = (): string[] => kube.seen.map(({ url }) => url);

test('requests beyond the maximum number of connections to kube-apiserver wait in order, and aborted requests are skipped', async () => {
  const leave = new AbortController();
  const targets = ['/1', '/2', '/3', '/4', '/5'];
  const responses = targets.map((target) =>
    whole(connections, requestTo(target), target === '/3' ? leave.signal : undefined).then(
      ({ body }) => body.toString(),
      (error: unknown) => error,
    ),
  );
  await responseTo('/1');
  (await responseTo('/2')).end('2');
  leave.abort(new Error('left'));
  (await responseTo('/4')).end('4');
  (await responseTo('/5')).end('5');
  expect(seen().toSorted()).toEqual(['/1', '/2', '/4', '/5']);
  expect(kube.sockets.size).toBe(max);
  expect(await Promise.all(responses.slice(1))).toMatchObject(['2', { message: 'left' }, '4', '5']);
});

test('a broken connection to kube-apiserver makes room for a waiting request', async () => {
  const [first, second, third] = ['/1', '/2', '/3'].map((target) => whole(connections, requestTo(target)));
  (await responseTo('/1')).socket?.destroy();
  await expect(first).rejects.toThrow('the response is incomplete');
  (await responseTo('/3')).end('3');
  (await responseTo('/2')).end('2');
  expect((await third)?.body.toString()).toBe('3');
  expect((await second)?.body.toString()).toBe('2');
});

test('requests that wait for a connection fail when the server stops', async () => {
  const responses = ['/1', '/2', '/3'].map((target) => whole(connections, requestTo(target)));
  await responseTo('/2');
  connections.close();
  for (const { status, reason } of (await Promise.allSettled(responses)) as PromiseRejectedResult[])
    expect([status, (reason as Error).message]).toEqual(['rejected', 'the server is shutting down']);
  await expect(whole(connections, requestTo('/4'))).rejects.toThrow('the server is shutting down');
});

test('a request to kube-apiserver without a response fails after its timeout', async () => {
  await expect(whole(connections, requestTo('/1', 20))).rejects.toThrow('no response within the timeout');
  expect(seen()).toEqual(['/1']);
});

test('a response that is read as a whole fails after its timeout when no more data arrives', async () => {
  kube.serve = (_, res) => void res.writeHead(200, { 'content-length': '3' }).write('a');
  await expect(whole(connections, requestTo('/1', 50))).rejects.toThrow('no response within the timeout');
});

test('a streamed response has no timeout between two chunks', async () => {
  kube.serve = (_, res) => {
    res.write('a');
    setTimeout(() => res.end('b'), 100);
  };
  const { body } = await streamed(connections, requestTo('/1', 50));
  expect(await text(body)).toBe('ab');
});

test('interim responses of kube-apiserver do not extend the timeout of a request', async () => {
  kube.serve = (_, res) => {
    const more = setInterval(() => res.writeProcessing(), 5);
    res.once('close', () => clearInterval(more));
  };
  await expect(whole(connections, requestTo('/1', 50))).rejects.toThrow('no response within the timeout');
});

test('a response body of kube-apiserver is streamed with backpressure', async () => {
  const response = streamed(connections, requestTo('/1'));
  const res = await responseTo('/1');
  res.writeHead(201, { 'x-a': 'b', 'set-cookie': ['c', 'd'] }).flushHeaders();
  const { status, headers, body } = await response;
  expect([status, headers['x-a'], headers['set-cookie']]).toEqual([201, 'b', ['c', 'd']]);
  // The test does not read the response body yet.
  const piece = Buffer.alloc(1024 * 1024, 'a');
  let written = 0;
  while (res.write(piece) || written < 8) written += 1;
  const length = (written + 1) * piece.length;
  await sleep(50);
  expect(res.writableNeedDrain).toBe(true);
  expect(body.readableLength).toBeLessThan(length / 4);
  res.end();
  expect(await text(body)).toHaveLength(length);
});

test.each(['its reader', 'its signal'])(
  'a response body can be aborted by %s, and its connection to kube-apiserver is closed',
  async (user) => {
    const leave = new AbortController();
    const response = streamed(connections, requestTo('/1'), leave.signal);
    const res = await responseTo('/1');
    res.write('a');
    const { body } = await response;
    const closed = once(res, 'close');
    const failed = once(body, user === 'its reader' ? 'close' : 'error');
    if (user === 'its reader') body.destroy();
    else leave.abort(new Error('left'));
    await Promise.all([closed, failed]);
    expect(res.writableFinished).toBe(false);
  },
);

test.each([0, 50])('a truncated response body fails for a reader that starts after %d ms', async (delay) => {
  const response = streamed(connections, requestTo('/1'));
  const res = await responseTo('/1');
  res.write('a', () => res.destroy());
  const { body } = await response;
  await sleep(delay);
  await expect(text(body)).rejects.toThrow('the response is incomplete');
});

test('resending requests to kube-apiserver opens no more connections than the limit', async () => {
  const first = ['/1', '/2'].map((target) => whole(connections, requestTo(target)));
  for (const target of ['/1', '/2']) (await responseTo(target)).end();
  await Promise.all(first);
  const second = ['/3', '/4', '/5'].map((target) => whole(connections, requestTo(target)));
  for (const target of ['/3', '/4']) (await responseTo(target)).socket?.destroy();
  const again = [await responseTo('/3'), await responseTo('/4')];
  await sleep(50);
  expect([kube.sockets.size, held.has('/5')]).toEqual([max, false]);
  for (const res of again) res.end();
  (await responseTo('/5')).end();
  await Promise.all(second);
});

test('a write is not sent over a connection that is being closed', async () => {
  kube.serve = ({ url }, res) => void res.end(url);
  const opened: Socket[] = [];
  const note = (message: unknown): void => void opened.push((message as { socket: Socket }).socket);
  subscribe('net.client.socket', note);
  await whole(connections, requestTo('/1'));
  unsubscribe('net.client.socket', note);
  const change = once(opened[0] as Socket, 'end').then(() => whole(connections, requestTo('/2', 0, 'DELETE')));
  kube.cut();
  expect((await change).body.toString()).toBe('/2');
});

test('a connection whose response was abandoned is not reused', async () => {
  kube.serve = ({ url }, res) => void res.end(url);
  const one = new Connections(addressOf(server, { rejectUnauthorized: true }), 1);
  const handler = { onData: () => undefined, onEnd: () => undefined, onError: () => undefined };
  const flow = one.send({ ...requestTo('/1'), handler: { ...handler, onHead: () => flow.abort() } });
  expect((await whole(one, requestTo('/2', 0, 'DELETE'))).body.toString()).toBe('/2');
  one.close();
});

test('the head of a request to kube-apiserver arrives before its body', async () => {
  const arrived = Promise.withResolvers<Buffer>();
  kube.serve = (req, res) => {
    arrived.resolve(Buffer.from('a'));
    req.pipe(res);
  };
  const head = 'POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n';
  const body = (async function* () {
    yield await arrived.promise;
  })();
  expect((await whole(connections, { method: 'POST', head, timeout: 0, body })).body.toString()).toBe('a');
});

describe('over TLS', () => {
  test.each([
    ['localhost', {}, 'the server name localhost', 'localhost'],
    ['127.0.0.1', {}, 'no server name', false],
    ['127.0.0.1', { servername: 'localhost' }, 'the server name localhost', 'localhost'],
  ])('a TLS connection to %s with the options %j sends %s', async (host, options, _, expected) => {
    const material = await newMaterial(['localhost', '127.0.0.1'], Date.now());
    const names: unknown[] = [];
    const named = createServer({ cert: material['tls.crt'], key: material['tls.key'] }, (socket: TLSSocket) => {
      names.push(socket.servername);
      socket.on('error', () => undefined).end('HTTP/1.1 200 OK\r\n\r\nhello');
    });
    await once(named.listen(0, '127.0.0.1'), 'listening');
    const tls = { ...options, ca: material['ca.crt'], rejectUnauthorized: true };
    const secure = new Connections(addressOf(`https://${host}:${(named.address() as AddressInfo).port}`, tls), max);
    expect((await whole(secure, requestTo('/1'))).body.toString()).toBe('hello');
    // The client also sends the server name when it resumes the session of the first connection.
    await whole(secure, requestTo('/2'));
    expect(names).toEqual([expected, expected]);
    secure.close();
    named.close();
  });
});
