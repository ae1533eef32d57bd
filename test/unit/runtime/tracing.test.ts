import { expect, test } from '@jest/globals';
import { FileSink } from '../../../src/audit/log-sink.ts';
import { WebhookSink } from '../../../src/audit/webhook-sink.ts';
import { Reflector } from '../../../src/cluster/cache/reflector.ts';
import { addressOf, Connections } from '../../../src/cluster/wire/connections.ts';
import { WriteBehind } from '../../../src/cluster/write-behind.ts';
import { openapiRoutes } from '../../../src/docs/aggregated.ts';
import { createLogger, type Logger } from '../../../src/runtime/logger.ts';
import { systemClock } from '../../../src/runtime/time.ts';
import { currentSpan, inClientSpan, runWithin } from '../../../src/runtime/tracing.ts';
import { Wheel } from '../../../src/runtime/wheel.ts';
import { FakeSpan, within } from '../../fakes/span.ts';
import { get } from '../../labs/resources.ts';

const log = createLogger({ silent: true });
const ignore = (): void => undefined;
const unreachable = 'http://127.0.0.1:1';

test.each<[string, (work: () => void) => void]>([
  ['a timer wheel', (work) => void new Wheel(work).put({}, performance.now())],
  [
    'a reflector',
    (work) => {
      const stream = async (): Promise<never> => {
        work();
        reflector.stop();
        throw new Error('stopped');
      };
      const receivers = { decode: ignore, replace: ignore, apply: ignore };
      const reflector = new Reflector({
        client: { stream },
        path: '/api/v1/pods',
        log,
        clock: systemClock,
        ...receivers,
      });
      reflector.start();
    },
  ],
  [
    'the audit webhook',
    (work) => {
      const limits = { batchMaxSize: 1, batchMaxWait: 1, bufferSize: 1 };
      const token = (): never => {
        work();
        throw new Error('missing');
      };
      const sink = new WebhookSink({ url: unreachable, token, ...limits, log, dropped: ignore });
      sink.write('{}');
      void sink.close();
    },
  ],
  [
    'the audit log',
    (work) => {
      const error = (): void => {
        work();
        void sink.close();
      };
      const path = '/missing/audit.log';
      const failing = { error } as unknown as Logger;
      const sink = new FileSink({ path, maxSize: 1, maxBackups: 1, log: failing, dropped: ignore });
      sink.write('{}');
    },
  ],
  [
    'a write in the background',
    (work) => {
      const clock = { ...systemClock, after: (_: number, run: () => void) => systemClock.after(0, run) };
      const write = async (): Promise<void> => work();
      new WriteBehind({ what: 'a letter', write, merge: (waiting) => waiting, clock, log }).put('a', 'x');
    },
  ],
  [
    'a connection to kube-apiserver',
    (work) => {
      const handler = { onHead: ignore, onData: ignore, onEnd: ignore, onError: work };
      const connections = new Connections(addressOf(unreachable, { rejectUnauthorized: true }), 1);
      connections.send({ method: 'GET', head: 'GET / HTTP/1.1\r\n\r\n', timeout: 0, handler });
    },
  ],
  [
    'a refresh of the OpenAPI document',
    (work) => {
      const json = async (): Promise<never> => {
        work();
        throw new Error('unavailable');
      };
      void get(openapiRoutes({ client: { json }, log, version: '1', routes: [], resources: [] }), '/openapi/v2');
    },
  ],
])('the work of %s does not belong to the span of the request that causes the work', async (_, start) => {
  const span = new FakeSpan();
  const current = await new Promise((resolve) => runWithin(span, start, () => resolve(currentSpan())));
  expect(current).toBeUndefined();
});

const sent = { peer: 'log-store', operation: 'GET', url: new URL(unreachable), path: '/' } as const;

test('the span of a request to another server ends with the status of the response', async () => {
  const span = new FakeSpan();
  const response = await within(span, () =>
    inClientSpan(
      sent,
      async (trace) => ({ status: 204, trace }),
      ({ status }) => status,
    ),
  );
  expect(Object.keys(response.trace ?? {})).toEqual(['traceparent']);
  expect([span.started, span.ended]).toEqual([[sent], [[204]]]);
});

test('the span of a failed request to another server ends with the error', async () => {
  const span = new FakeSpan();
  const error = new Error('refused');
  await expect(within(span, () => inClientSpan(sent, () => Promise.reject(error)))).rejects.toBe(error);
  expect(span.ended).toEqual([[undefined, error]]);
});

const traceOf = (): Promise<unknown> => inClientSpan(sent, async (trace) => trace);

test.each([
  ['a task without a request', undefined],
  ['a task whose request has completed', Object.assign(new FakeSpan(), { isOver: true })],
])('%s sends requests without a span', async (_, span) => {
  expect(await (span === undefined ? traceOf() : within(span, traceOf))).toBeUndefined();
});
