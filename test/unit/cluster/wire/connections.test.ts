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

const most = 2;
let kube: FakeKubeApiserver;
let server: string;
let connections: Connections;
/** Answers that the test has not given yet, by their path. */
let held: Map<string, ServerResponse>;
beforeEach(async () => {
  held = new Map();
  kube = new FakeKubeApiserver();
  kube.answer = ({ url = '' }, res) => void held.set(url, res);
  server = await kube.listen();
  connections = new Connections(addressOf(server, { rejectUnauthorized: true }), most);
});
afterEach(() => {
  connections.close();
  kube.close();
});

const question = (target: string, timeout = 0, method = 'GET'): UpstreamRequest => ({
  method,
  head: `${method} ${target} HTTP/1.1\r\nHost: a\r\n\r\n`,
  timeout,
});

async function answerTo(target: string): Promise<ServerResponse> {
  while (!held.has(target)) await sleep(1);
  const res = held.get(target) as ServerResponse;
  held.delete(target);
  return res;
}

const seen = (): string[] => kube.seen.map(({ url }) => url);

test('more requests than connections wait in their order, but for those that nobody wants any more', async () => {
  const leave = new AbortController();
  const targets = ['/1', '/2', '/3', '/4', '/5'];
  const answers = targets.map((target) =>
    whole(connections, question(target), target === '/3' ? leave.signal : undefined).then(
      ({ body }) => body.toString(),
      (error: unknown) => error,
    ),
  );
  await answerTo('/1');
  (await answerTo('/2')).end('2');
  leave.abort(new Error('left'));
  (await answerTo('/4')).end('4');
  (await answerTo('/5')).end('5');
  expect(seen().toSorted()).toEqual(['/1', '/2', '/4', '/5']);
  expect(kube.sockets.size).toBe(most);
  expect(await Promise.all(answers.slice(1))).toMatchObject(['2', { message: 'left' }, '4', '5']);
});

test('a connection that breaks makes room for who waits', async () => {
  const [first, second, third] = ['/1', '/2', '/3'].map((target) => whole(connections, question(target)));
  (await answerTo('/1')).socket?.destroy();
  await expect(first).rejects.toThrow('broken off');
  (await answerTo('/3')).end('3');
  (await answerTo('/2')).end('2');
  expect((await third)?.body.toString()).toBe('3');
  expect((await second)?.body.toString()).toBe('2');
});

test('who waits for a server that stops is told', async () => {
  const answers = ['/1', '/2', '/3'].map((target) => whole(connections, question(target)));
  await answerTo('/2');
  connections.close();
  for (const { status, reason } of (await Promise.allSettled(answers)) as PromiseRejectedResult[])
    expect([status, (reason as Error).message]).toEqual(['rejected', 'this server stops']);
  await expect(whole(connections, question('/4'))).rejects.toThrow('this server stops');
});

test('what is not answered in time is given up', async () => {
  await expect(whole(connections, question('/1', 20))).rejects.toThrow('no answer in time');
  expect(seen()).toEqual(['/1']);
});

test('an answer that is asked for as a whole, and of which no more comes, is given up', async () => {
  kube.answer = (_, res) => void res.writeHead(200, { 'content-length': '3' }).write('a');
  await expect(whole(connections, question('/1', 50))).rejects.toThrow('no answer in time');
});

test('who reads an answer as it comes waits for more as long as it takes', async () => {
  kube.answer = (_, res) => {
    res.write('a');
    setTimeout(() => res.end('b'), 100);
  };
  const { body } = await streamed(connections, question('/1', 50));
  expect(await text(body)).toBe('ab');
});

test('what only goes before an answer is none, however much there is of it', async () => {
  kube.answer = (_, res) => {
    const more = setInterval(() => res.writeProcessing(), 5);
    res.once('close', () => clearInterval(more));
  };
  await expect(whole(connections, question('/1', 50))).rejects.toThrow('no answer in time');
});

test('a body is a stream, at the pace of who reads it', async () => {
  const answer = streamed(connections, question('/1'));
  const res = await answerTo('/1');
  res.writeHead(201, { 'x-a': 'b', 'set-cookie': ['c', 'd'] }).flushHeaders();
  const { status, headers, body } = await answer;
  expect([status, headers['x-a'], headers['set-cookie']]).toEqual([201, 'b', ['c', 'd']]);
  // Nobody reads yet.
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

test.each(['its reader', 'its signal'])('a body ends with %s, and kube-apiserver hears of it', async (who) => {
  const leave = new AbortController();
  const answer = streamed(connections, question('/1'), leave.signal);
  const res = await answerTo('/1');
  res.write('a');
  const { body } = await answer;
  const closed = once(res, 'close');
  const failed = once(body, who === 'its reader' ? 'close' : 'error');
  if (who === 'its reader') body.destroy();
  else leave.abort(new Error('left'));
  await Promise.all([closed, failed]);
  expect(res.writableFinished).toBe(false);
});

test.each([0, 50])('a body that is broken off is not whole for who reads it after %d ms', async (delay) => {
  const answer = streamed(connections, question('/1'));
  const res = await answerTo('/1');
  res.write('a', () => res.destroy());
  const { body } = await answer;
  await sleep(delay);
  await expect(text(body)).rejects.toThrow('broken off');
});

test('who waits while requests are sent again opens no connection too many', async () => {
  const first = ['/1', '/2'].map((target) => whole(connections, question(target)));
  for (const target of ['/1', '/2']) (await answerTo(target)).end();
  await Promise.all(first);
  const second = ['/3', '/4', '/5'].map((target) => whole(connections, question(target)));
  for (const target of ['/3', '/4']) (await answerTo(target)).socket?.destroy();
  const again = [await answerTo('/3'), await answerTo('/4')];
  await sleep(50);
  expect([kube.sockets.size, held.has('/5')]).toEqual([most, false]);
  for (const res of again) res.end();
  (await answerTo('/5')).end();
  await Promise.all(second);
});

test('a change is not sent over a connection that is just being closed', async () => {
  kube.answer = ({ url }, res) => void res.end(url);
  const opened: Socket[] = [];
  const note = (message: unknown): void => void opened.push((message as { socket: Socket }).socket);
  subscribe('net.client.socket', note);
  await whole(connections, question('/1'));
  unsubscribe('net.client.socket', note);
  const change = once(opened[0] as Socket, 'end').then(() => whole(connections, question('/2', 0, 'DELETE')));
  kube.cut();
  expect((await change).body.toString()).toBe('/2');
});

test('a connection whose answer was given up while it was read is not asked again', async () => {
  kube.answer = ({ url }, res) => void res.end(url);
  const one = new Connections(addressOf(server, { rejectUnauthorized: true }), 1);
  const handler = { onData: () => undefined, onEnd: () => undefined, onError: () => undefined };
  const flow = one.send({ ...question('/1'), handler: { ...handler, onHead: () => flow.abort() } });
  expect((await whole(one, question('/2', 0, 'DELETE'))).body.toString()).toBe('/2');
  one.close();
});

test('a request arrives before its body does', async () => {
  const arrived = Promise.withResolvers<Buffer>();
  kube.answer = (req, res) => {
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
    ['localhost', {}, 'localhost'],
    ['127.0.0.1', {}, false],
    ['127.0.0.1', { servername: 'localhost' }, 'localhost'],
  ])('a server at %s with %j hears the name %s', async (host, options, expected) => {
    const material = await newMaterial(['localhost', '127.0.0.1'], Date.now());
    const names: unknown[] = [];
    const named = createServer({ cert: material['tls.crt'], key: material['tls.key'] }, (socket: TLSSocket) => {
      names.push(socket.servername);
      socket.on('error', () => undefined).end('HTTP/1.1 200 OK\r\n\r\nhello');
    });
    await once(named.listen(0, '127.0.0.1'), 'listening');
    const tls = { ...options, ca: material['ca.crt'], rejectUnauthorized: true };
    const secure = new Connections(addressOf(`https://${host}:${(named.address() as AddressInfo).port}`, tls), most);
    expect((await whole(secure, question('/1'))).body.toString()).toBe('hello');
    // Also where the session of the first is taken up again.
    await whole(secure, question('/2'));
    expect(names).toEqual([expected, expected]);
    secure.close();
    named.close();
  });
});
