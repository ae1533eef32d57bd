/** The gateway with the HTTP filters of production and a fake kube-apiserver. */
import { afterAll, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { once } from 'node:events';
import http, { type RequestListener, type ServerResponse } from 'node:http';
import { duplexPair } from 'node:stream';
import { gateway } from '../../../src/gateway/index.ts';
import { requestAborted } from '../../../src/gateway/proxy.ts';
import { createUpstream, shortRequestTimeout } from '../../../src/cluster/client/upstream.ts';
import { addressOf } from '../../../src/cluster/wire/connections.ts';
import { open } from '../../client/http1.ts';
import type { Message } from '../../client/message.ts';
import { sendRequest } from '../../fakes/request.ts';
import { FakeKubeApiserver } from '../../fakes/upstream.ts';
import { as, face } from '../../labs/http.ts';

const kube = new FakeKubeApiserver();
let renewed = 0;
let app: RequestListener;
beforeAll(async () => {
  const upstream = createUpstream({
    address: addressOf(await kube.listen(), { rejectUnauthorized: true }),
    credential: { headers: async () => ({}), renew: () => (renewed += 1) },
  });
  const client = { upstream, identity: async () => ({ username: 'the-server' }) };
  const accessTokens = { validate: async () => undefined };
  ({ app } = face({
    gateway: gateway({
      client,
      accessTokens,
      authorizer: { authorize: async () => ({ allowed: true, reason: '' }) },
      issuer: () => '',
    }),
  }));
});
afterAll(() => kube.close());
beforeEach(() => {
  renewed = 0;
  kube.taken();
});

const pods = '/api/v1/namespaces/default/pods';

/** Sends a request and returns the head of the response before its body. */
function opened(path: string): Promise<Message> {
  const [client, server] = duplexPair();
  http.createServer(app).emit('connection', server);
  return open(client, { path, headers: as('anna').headers as Record<string, string> });
}

/** Returns the next response of kube-apiserver, which the test completes. */
function held(): Promise<ServerResponse> {
  return new Promise((resolve) => {
    kube.serve = (_, res) => resolve(res);
  });
}

test.each([
  ['GET', 'the request exceeded its deadline'],
  ['DELETE', 'the request exceeded its deadline; the outcome of the change is unknown'],
])('the deadline of a forwarded %s is later than the timeout of its connection', async (method, message) => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'performance'] });
  try {
    const started = held();
    let isOver = false;
    const ended = sendRequest(app, pods, { ...as('anna'), method }).finally(() => (isOver = true));
    await started;
    jest.advanceTimersByTime(shortRequestTimeout + 1_000);
    await new Promise(setImmediate);
    expect(isOver).toBe(false);
    jest.advanceTimersByTime(10_000);
    const { status, json } = await ended;
    expect([status, json()]).toEqual([504, expect.objectContaining({ reason: 'Timeout', message })]);
  } finally {
    jest.useRealTimers();
  }
});

test.each([1, 2, 1_000])('a response in %d chunks arrives completely', async (count) => {
  const pieces = Array.from({ length: count }, (_, at) => `${at} ${'x'.repeat(at % 400)}\n`);
  kube.serve = (_, res) => {
    for (const piece of pieces) res.write(piece);
    res.end();
  };
  const { status, text } = await sendRequest(app, pods, as('anna'));
  expect([status, text]).toEqual([200, pieces.join('')]);
});

test.each([pods, `${pods}?watch=true`, `${pods}/p/log?follow=true`])(
  'received parts of a response are forwarded before the rest arrives: %s',
  async (path) => {
    const started = held();
    const message = opened(path);
    const response = await started;
    response.write('one');
    const body = await message;
    for (const piece of ['two', 'three']) {
      const [before] = (await once(body, 'data')) as [Buffer];
      expect(before.toString()).toMatch(/^(one|two)$/);
      response.write(piece);
    }
    response.end();
    const rest = await body.toArray();
    expect(Buffer.concat(rest).toString()).toBe('three');
  },
);

test.each([`${pods}?watch=true`, `${pods}/p/log?follow=true`])(
  'the head of a stream is forwarded before the first byte of its body: %s',
  async (path) => {
    const started = held();
    const message = opened(path);
    const response = await started;
    response.setHeader('X-Own', 'kept').flushHeaders();
    const { status, headers } = await message;
    expect([status, headers['x-own']]).toEqual([200, 'kept']);
    response.end();
  },
);

describe('a 401 of kube-apiserver', () => {
  beforeEach(() => {
    kube.serve = (_, res) => void res.writeHead(401, { 'WWW-Authenticate': 'Basic' }).end('of kube-apiserver');
  });

  test('a 401 of kube-apiserver causes the server to read its credential again', async () => {
    const { status, headers, text } = await sendRequest(app, pods, as('anna'));
    expect([status, headers['retry-after'], headers['www-authenticate']]).toEqual([503, '1', undefined]);
    expect(text).not.toContain('of kube-apiserver');
    expect(renewed).toBe(1);
  });

  test('a 401 of kube-apiserver on a proxy subresource comes from the proxied server and is forwarded', async () => {
    const { status, headers, text } = await sendRequest(app, '/api/v1/namespaces/d/services/s/proxy/', as('anna'));
    expect([status, headers['www-authenticate'], text]).toEqual([401, 'Basic', 'of kube-apiserver']);
    expect(renewed).toBe(0);
  });
});

test('a forwarded response has the headers of kube-apiserver instead of the default headers of this server', async () => {
  kube.serve = (_, res) => {
    res.writeHead(200, 'Fine', { 'Cache-Control': 'max-age=5', 'Content-Type': 'text/plain', ETag: '"a"' });
    res.end('body');
  };
  const { headers } = await sendRequest(app, pods, as('anna'));
  expect(headers).toMatchObject({ 'cache-control': 'max-age=5', 'content-type': 'text/plain', etag: '"a"' });
  kube.serve = (_, res) => void res.end('body');
  const plain = await sendRequest(app, pods, as('anna'));
  for (const name of ['cache-control', 'x-content-type-options']) expect(plain.headers).not.toHaveProperty(name);
});

test.each([
  ['GET', 503, '1'],
  ['HEAD', 503, '1'],
  ['POST', 502, undefined],
  ['DELETE', 502, undefined],
])(
  'an aborted %s request gets %d, since only requests without side effects can be retried safely',
  (method, code, retryAfter) => {
    const { code: actual, headers } = requestAborted({ method });
    expect([actual, headers['Retry-After']]).toEqual([code, retryAfter]);
  },
);
