/** Requests that the gateway sends to kube-apiserver. The test simulates the connection. */
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { Request, Response } from 'express';
import { once } from 'node:events';
import http, { type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { forward } from '../../../src/gateway/proxy.ts';
import type { RequestContext, RequestInfo } from '../../../src/http/route.ts';
import type {
  ResponseFlow,
  ResponseHandler,
  ForwardedRequest,
  Upstream,
} from '../../../src/cluster/client/upstream.ts';

interface Exchange {
  readonly request: ForwardedRequest;
  /** The handler that receives the response of kube-apiserver. */
  readonly handler: ResponseHandler;
  /** Reports to the gateway that the request is being sent. */
  readonly start: () => void;
  /** Aborts the request on its connection. */
  readonly abort: jest.Mock<() => void>;
  readonly pause: jest.Mock<() => void>;
  readonly resume: jest.Mock<() => void>;
  readonly res: Response;
  readonly changeUser: () => void;
}

let server: Server;
let info: Pick<RequestInfo, 'verb' | 'subresource' | 'isLongRunning'>;
let exchange: Promise<Exchange>;
beforeEach(async () => {
  const { promise, resolve } = Promise.withResolvers<Exchange>();
  exchange = promise;
  server = http.createServer((req, res) => {
    const [abort, pause, resume] = [jest.fn<() => void>(), jest.fn<() => void>(), jest.fn<() => void>()];
    let changeUser: () => void;
    const context = {
      info,
      user: { username: 'anna', groups: [], via: 'token' },
      signal: new AbortController().signal,
      onUserChange: (listener: () => void) => (changeUser = listener),
      onEnd: (cleanup: () => void) => res.once('close', cleanup),
    } as unknown as RequestContext;
    const started = Promise.withResolvers<ResponseFlow>();
    const start = (): void => started.resolve({ pause, resume, abort });
    const send = (request: ForwardedRequest, handler: ResponseHandler): Promise<ResponseFlow> => {
      // The gateway subscribes to events of the request only after this function returns.
      setImmediate(() =>
        resolve({
          request,
          handler,
          start,
          abort,
          pause,
          resume,
          res: res as Response,
          changeUser: () => changeUser(),
        }),
      );
      return started.promise;
    };
    forward({ send } as unknown as Upstream, req as Request, res as Response, context).catch(() => res.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

const watch = { verb: 'watch', subresource: '', isLongRunning: true };
const log = { verb: 'get', subresource: 'log', isLongRunning: true };
const list = { verb: 'list', subresource: '', isLongRunning: false };

function sendRequest(of: typeof info, method = 'GET', headers: http.OutgoingHttpHeaders = {}): http.ClientRequest {
  info = of;
  const target = { port: (server.address() as AddressInfo).port, host: '127.0.0.1', agent: false, method, headers };
  return http.request(target).on('error', () => undefined);
}

async function textOf(message: IncomingMessage): Promise<string> {
  return Buffer.concat(await message.toArray()).toString();
}

test('a request is aborted as soon as it is sent if its client has already disconnected', async () => {
  const sent = sendRequest(list).end();
  const { start, abort, res } = await exchange;
  sent.destroy();
  await once(res, 'close');
  expect(abort).not.toHaveBeenCalled();
  start();
  await nextTurn();
  expect(abort).toHaveBeenCalledTimes(1);
});

test('a request to kube-apiserver is not aborted after its response has ended', async () => {
  const sent = sendRequest(list).end();
  const { start, abort, handler, res } = await exchange;
  start();
  await nextTurn();
  handler.onHead(200, 'Fine Indeed', []);
  handler.onData(Buffer.from('all'));
  handler.onEnd([]);
  const [message] = (await once(sent, 'response')) as [IncomingMessage];
  expect([message.statusMessage, await textOf(message)]).toEqual(['Fine Indeed', 'all']);
  if (!res.closed) await once(res, 'close');
  expect(abort).not.toHaveBeenCalled();
});

test.each([
  ['a watch', watch, true],
  ['a log', log, false],
])('data of %s is not sent to the client after the user has changed', async (_, of, isWhole) => {
  const sent = sendRequest(of).end();
  const { start, abort, handler, res, changeUser } = await exchange;
  const errors: unknown[] = [];
  res.on('error', (error) => errors.push(error));
  start();
  await nextTurn();
  handler.onHead(200, 'OK', []);
  handler.onData(Buffer.from('one'));
  const [message] = (await once(sent, 'response')) as [IncomingMessage];
  message.on('error', () => undefined);
  await once(message, 'readable');
  handler.onData(Buffer.from('not written yet'));
  changeUser();
  expect(abort).toHaveBeenCalledTimes(1);
  handler.onData(Buffer.from('two'));
  handler.onEnd(['X-Sum', '7']);
  handler.onError(new Error('gone'), true);
  changeUser();
  await nextTurn();
  const ended = new Promise((resolve) => message.once('close', () => resolve(message.readableEnded)));
  let text = '';
  message.on('data', (chunk) => (text += String(chunk)));
  expect([await ended, text, errors]).toEqual([isWhole, 'one', []]);
  expect(abort).toHaveBeenCalledTimes(1);
});

test('the head of a response that arrives after the client has disconnected is not written', async () => {
  const sent = sendRequest(list).end();
  const { start, handler, res } = await exchange;
  start();
  sent.destroy();
  await once(res, 'close');
  handler.onHead(200, 'OK', ['X-Own', 'a']);
  expect(res.headersSent).toBe(false);
});

test('reading from kube-apiserver is paused once while the client does not read, and resumed once when the client reads', async () => {
  const sent = sendRequest(list).end();
  const { start, pause, resume, handler } = await exchange;
  start();
  await nextTurn();
  handler.onHead(200, 'OK', []);
  const much = Buffer.alloc(1024 * 1024, 'x');
  for (let count = 0; count < 32; count += 1) handler.onData(much);
  expect([pause.mock.calls.length, resume.mock.calls.length]).toEqual([1, 0]);
  const [message] = (await once(sent, 'response')) as [IncomingMessage];
  const resumed = new Promise<void>((resolve) => resume.mockImplementation(resolve));
  let length = 0;
  message.on('data', (chunk: Buffer) => (length += chunk.length));
  await resumed;
  handler.onEnd([]);
  await once(message, 'end');
  expect([length, pause.mock.calls.length, resume.mock.calls.length]).toEqual([32 * much.length, 1, 1]);
});

describe('small chunks of a response', () => {
  const piece = Buffer.alloc(2_048, 'x');

  test('small chunks of a response are written 64 KiB at a time', async () => {
    const sent = sendRequest(list).end();
    const { start, handler, res } = await exchange;
    const written = jest.spyOn(res, 'write');
    start();
    await nextTurn();
    handler.onHead(200, 'OK', []);
    for (let count = 0; count < 80; count += 1) handler.onData(piece);
    handler.onEnd([]);
    expect(written.mock.calls.map(([chunk]) => (chunk as Buffer).length)).toEqual([65_536, 65_536]);
    const [message] = (await once(sent, 'response')) as [IncomingMessage];
    expect(await textOf(message)).toHaveLength(80 * 2_048);
  });

  test('small chunks of a watch are written together in the next turn of the event loop', async () => {
    sendRequest(watch).end();
    const { start, handler, res } = await exchange;
    const written = jest.spyOn(res, 'write');
    start();
    await nextTurn();
    handler.onHead(200, 'OK', []);
    handler.onData(piece);
    handler.onData(piece);
    expect(written).not.toHaveBeenCalled();
    await nextTurn();
    expect(written.mock.calls.map(([chunk]) => (chunk as Buffer).length)).toEqual([4_096]);
  });
});

describe('a request body forwarded to kube-apiserver', () => {
  test.each<[string, http.OutgoingHttpHeaders, number | undefined]>([
    ['with its length', { 'content-length': '4' }, 4],
    ['without a length if the client sent no length', { 'transfer-encoding': 'chunked' }, undefined],
  ])('a request body is sent to kube-apiserver %s', async (_, headers, length) => {
    sendRequest(list, 'POST', headers).end('body');
    const { request } = await exchange;
    expect(request.length).toBe(length);
    const chunks: Buffer[] = [];
    for await (const chunk of request.body ?? []) chunks.push(chunk);
    expect(Buffer.concat(chunks).toString()).toBe('body');
  });

  test('a truncated request body is reported as an error of the client', async () => {
    const sent = sendRequest(list, 'POST', { 'content-length': '100' });
    sent.write('half');
    const { request, start } = await exchange;
    start();
    const read = async (): Promise<void> => {
      for await (const chunk of request.body ?? []) if (chunk.length > 0) sent.destroy();
    };
    await expect(read()).rejects.toMatchObject({ code: 400, cause: expect.objectContaining({ code: 'ECONNRESET' }) });
  });
});
