/** Responses of the gateway that end early: the session is revoked, the user changes, or the client disconnects. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { Request, Response } from 'express';
import { once } from 'node:events';
import http, { type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { StatusError } from '../../../src/runtime/errors.ts';
import { forward } from '../../../src/gateway/proxy.ts';
import type { RequestContext, RequestInfo } from '../../../src/http/route.ts';
import type { Upstream } from '../../../src/cluster/client/upstream.ts';
import { FakeKubeApiserver, upstreamAt } from '../../fakes/upstream.ts';

const kube = new FakeKubeApiserver();
let upstream: Upstream;
beforeAll(async () => {
  upstream = upstreamAt(await kube.listen());
});
afterAll(() => {
  upstream.close();
  kube.close();
});

let server: Server;
/** Functions that trigger these events for the open request. */
let ends: Record<'its user changes' | 'its session is revoked', () => void>;
/** Resolves with the error of the request handler, or with undefined if the handler succeeds. */
let handled: Promise<unknown>;
let info: Pick<RequestInfo, 'verb' | 'subresource' | 'isLongRunning'>;
beforeEach(async () => {
  const session = new AbortController();
  const listeners: (() => void)[] = [];
  ends = {
    'its user changes': () => {
      for (const listener of listeners) listener();
    },
    'its session is revoked': () => session.abort(),
  };
  server = http.createServer((req, res) => {
    const context = {
      info,
      auditID: 'audit',
      sourceIP: '192.0.2.1',
      user: { username: 'anna', groups: [], via: 'token' },
      signal: session.signal,
      onUserChange: (listener: () => void) => listeners.push(listener),
      onEnd: (cleanup: () => void) => res.once('close', cleanup),
    } as unknown as RequestContext;
    handled = forward(upstream, req as Request, res as Response, context).catch((error: unknown) => {
      res.writeHead(500).end();
      return error;
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => {
  server.close();
  kube.cut();
});

const watch = { verb: 'watch', subresource: '', isLongRunning: true };
const log = { verb: 'get', subresource: 'log', isLongRunning: true };
const list = { verb: 'list', subresource: '', isLongRunning: false };

const request = (method = 'GET'): http.ClientRequest =>
  http.request({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', agent: false, method }).end();

/** Resolves when kube-apiserver gets the next request. `closed` resolves when the connection of the request closes. */
function nextRequest(): Promise<{ readonly response: ServerResponse; readonly closed: Promise<unknown> }> {
  return new Promise((resolve) => {
    kube.serve = (_, response) => resolve({ response, closed: once(response, 'close') });
  });
}

/** Returns the text that a client read, and whether the response was complete. */
async function read(message: IncomingMessage): Promise<readonly [text: string, isWhole: boolean]> {
  let text = '';
  try {
    for await (const chunk of message.setEncoding('utf8')) text += chunk;
    return [text, true];
  } catch {
    return [text, false];
  }
}

test.each([
  ['a watch ends normally', 'its user changes', watch, true],
  ['a watch ends normally', 'its session is revoked', watch, true],
  ['a log is cut off', 'its user changes', log, false],
  ['a log is cut off', 'its session is revoked', log, false],
] as const)('%s when %s, and its connection to kube-apiserver is closed', async (_, what, of, isWhole) => {
  info = of;
  const started = nextRequest();
  const sent = request();
  const { response, closed } = await started;
  response.write('one');
  const [message] = (await once(sent, 'response')) as [IncomingMessage];
  await once(message, 'readable');
  ends[what]();
  expect(await read(message)).toEqual(['one', isWhole]);
  expect(await handled).toBeUndefined();
  await closed;
});

test.each([
  ['GET', 503, 'its user changes'],
  ['GET', 503, 'its session is revoked'],
  ['POST', 502, 'its session is revoked'],
] as const)('a stream requested with %s gets %d when %s before kube-apiserver responds', async (method, code, what) => {
  info = log;
  const started = nextRequest();
  request(method).on('error', () => undefined);
  const { closed } = await started;
  ends[what]();
  const error = await handled;
  expect(error).toBeInstanceOf(StatusError);
  expect(error).toMatchObject({ code });
  await closed;
});

test.each(['its user changes', 'its session is revoked'] as const)(
  'a stream that has ended is unaffected when %s',
  async (what) => {
    info = watch;
    kube.serve = (_, res) => void res.end('all');
    const [message] = (await once(request(), 'response')) as [IncomingMessage];
    expect(await read(message)).toEqual(['all', true]);
    ends[what]();
    expect(await handled).toBeUndefined();
  },
);

test.each(['its user changes', 'its session is revoked'] as const)(
  'a list in transfer is completed even if %s',
  async (what) => {
    info = list;
    const started = nextRequest();
    const sent = request();
    const { response } = await started;
    response.write('one ');
    const [message] = (await once(sent, 'response')) as [IncomingMessage];
    ends[what]();
    response.end('two');
    expect(await read(message)).toEqual(['one two', true]);
  },
);

test.each([
  ['a watch', watch],
  ['a log', log],
  ['a list', list],
])('the request to kube-apiserver for %s is aborted when the client disconnects', async (_, of) => {
  info = of;
  const started = nextRequest();
  const sent = request().on('error', () => undefined);
  const { response, closed } = await started;
  response.write('one');
  const [message] = (await once(sent, 'response')) as [IncomingMessage];
  message.destroy();
  await closed;
  expect(await handled).toBeUndefined();
});

test.each([
  ['a watch', watch],
  ['a list', list],
])('the request to kube-apiserver for %s is aborted when the client disconnects before the response', async (_, of) => {
  info = of;
  const started = nextRequest();
  const sent = request().on('error', () => undefined);
  const { closed } = await started;
  sent.destroy();
  await closed;
  expect(await handled).toBeUndefined();
});
