import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { once } from 'node:events';
import { sendRequest, send, type AppResponse } from '../../../fakes/request.ts';
import { as, doing, face, resourcePath } from '../../../labs/http.ts';

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'performance'] });
});
afterEach(() => {
  jest.useRealTimers();
});

/** Sends a request whose handler never responds. `pass` reports whether the signal of the handler is aborted. */
function silent(query: string): { response: Promise<AppResponse>; pass: (milliseconds: number) => Promise<boolean> } {
  const { promise: handling, resolve } = Promise.withResolvers<AbortSignal>();
  const never = doing((_req, _res, context) => {
    resolve(context.signal);
  }, resourcePath);
  const response = sendRequest(face({ routes: [never] }).app, `${resourcePath}${query}`, as('alice'));
  return {
    response,
    pass: async (milliseconds: number): Promise<boolean> => {
      const signal = await handling;
      jest.advanceTimersByTime(milliseconds);
      return signal.aborted;
    },
  };
}

describe('a request whose handler never responds', () => {
  test.each([
    ['', 60_000],
    ['?timeout=32s', 32_000],
    ['?timeout=1m30s', 60_000],
    ['?timeout=0s', 60_000],
    ['?timeout=1500ms', 1_500],
    // The query schema rejects an invalid timeout only after the request is authorized.
    ['?timeout=32', 60_000],
    ['?timeout=soon', 60_000],
    ['?timeout=', 60_000],
  ])(
    'a request with the query %j whose handler never responds gets 504 after %d ms, and the handler is aborted',
    async (query, limit) => {
      const { response, pass } = silent(query);
      expect(await pass(limit - 1)).toBe(false);
      expect(await pass(1)).toBe(true);
      const { status, json } = await response;
      expect(status).toBe(504);
      expect(json()).toMatchObject({ kind: 'Status', reason: 'Timeout', code: 504 });
    },
  );
});

test.each([
  ['is sent after the watch if the response is ready', true, /first[^]*last[^]*second$/],
  ['ends the connection after the watch if the response is incomplete', false, /first[^]*last\r\n0\r\n\r\n/],
])('a pipelined response whose deadline passes during its wait behind a watch %s', async (_, isReady, expected) => {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const { promise: isHandled, resolve: handled } = Promise.withResolvers<void>();
  const both = doing(async (_req, res, { info, signal }) => {
    if (info.verb !== 'watch') {
      if (isReady) res.end('second');
      else res.write('second');
      handled();
      if (isReady) return;
      await once(signal, 'abort');
      signal.throwIfAborted();
    }
    res.write('first');
    await ended;
    res.end('last');
  }, resourcePath);
  const head = 'Host: a\r\nAuthorization: Bearer alice\r\n\r\n';
  const client = send(
    face({ routes: [both] }).app,
    `GET ${resourcePath}?watch=true HTTP/1.1\r\n${head}GET ${resourcePath}?timeout=1s HTTP/1.1\r\n${head}`,
  );
  let received = '';
  client.on('data', (bytes: Buffer) => (received += bytes.toString('latin1')));
  await isHandled;
  jest.advanceTimersByTime(1_000);
  await new Promise(setImmediate);
  end();
  while (!received.endsWith('second') && !client.readableEnded)
    await Promise.race([once(client, 'data'), once(client, 'end')]);
  client.destroy();
  expect(received).toMatch(expected);
});
