import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { streamed, whole, type Question } from '../../../../src/kube/wire/answer.ts';
import { Connections } from '../../../../src/kube/wire/connections.ts';
import { FakeKubeApiserver } from '../../../fakes/upstream.ts';

const most = 2;
let kube: FakeKubeApiserver;
let connections: Connections;
/** Answers that the test has not given yet, by their path. */
let held: Map<string, ServerResponse>;
beforeEach(async () => {
  held = new Map();
  kube = new FakeKubeApiserver();
  kube.answer = ({ url = '' }, res) => void held.set(url, res);
  connections = new Connections(new URL(await kube.listen()), {}, most);
});
afterEach(() => {
  connections.close();
  kube.close();
});

const question = (target: string, patience = 0): Question => ({
  method: 'GET',
  head: `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`,
  patience,
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
