import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { openTracer, type OpenTracer } from '../../../src/tracing/opentelemetry.ts';
import { eventually } from '../../labs/integration/eventually.ts';
import { TraceReceiver } from '../../fakes/trace-receiver.ts';

let receiver: TraceReceiver;
let endpoint: string;
beforeEach(async () => {
  receiver = new TraceReceiver();
  endpoint = await receiver.listen();
});
afterEach(() => receiver.close());

const request = {
  method: 'GET',
  path: '/livez',
  route: '/livez',
  scheme: 'http',
  version: '1.1',
  sourceIP: '192.0.2.1',
  userAgent: '',
  auditID: 'one',
  status: 200,
} as const;

let lost: number;
const open = (samplingRatePerMillion = 1_000_000, exportTimeout = 10_000): OpenTracer => {
  lost = 0;
  return openTracer({
    url: `${endpoint}/v1/traces`,
    ca: undefined,
    token: () => undefined,
    samplingRatePerMillion,
    trustIncoming: false,
    version: '1.2.3',
    exportTimeout,
    lost: (spans) => void (lost += spans),
  });
};

/** Records one span for each of `count` requests. */
function serve(tracer: OpenTracer, count: number, change: object = {}): void {
  for (let served = 0; served < count; served += 1) tracer.startServer({}).end(() => ({ ...request, ...change }));
}

describe('a tracer', () => {
  test('a tracer exports all ended spans when it is closed', async () => {
    const tracer = open();
    serve(tracer, 3);
    await tracer.close();
    expect(receiver.spans.map(({ name }) => name)).toEqual(['GET /livez', 'GET /livez', 'GET /livez']);
    expect(lost).toBe(0);
  });

  test('a receiver with a response that never ends does not prevent later exports of a tracer', async () => {
    const dripping: NodeJS.Timeout[] = [];
    receiver.serve = (res) => void dripping.push(setInterval(() => res.write(' '), 10));
    const tracer = open(1_000_000, 200);
    serve(tracer, 1);
    await eventually('the first export is given up', () => expect(lost).toBe(1));
    for (const timer of dripping) clearInterval(timer);
    receiver.serve = (res) => void res.end();
    serve(tracer, 1);
    await tracer.close();
    expect([lost, receiver.spans.length]).toEqual([1, 2]);
  });

  test('a tracer can be closed even if the receiver does not respond', async () => {
    receiver.serve = () => undefined;
    const tracer = open();
    serve(tracer, 1);
    await tracer.close();
    expect(receiver.spans).toHaveLength(1);
  });

  test('a tracer drops and counts the spans beyond 2,048 while the receiver does not respond', async () => {
    receiver.serve = () => undefined;
    const tracer = open();
    serve(tracer, 2_050);
    expect(lost).toBe(2);
    await tracer.close();
  });

  test('a tracer that is closed counts the spans of requests in progress as lost', async () => {
    const tracer = open();
    const span = tracer.startServer({});
    span.startClient({ peer: 'log-store', operation: 'GET', url: new URL(endpoint), path: '/' });
    await tracer.close();
    span.end(() => request);
    expect([receiver.spans.length, lost]).toEqual([0, 2]);
  });

  test('a tracer records about the configured fraction of all requests, and assigns a trace ID to every request', async () => {
    const tracer = open(500_000);
    let described = 0;
    const describeRequest = () => {
      described += 1;
      return request;
    };
    const ids = new Set<string>();
    for (let count = 0; count < 400; count += 1) {
      const span = tracer.startServer({});
      ids.add(span.traceID);
      span.end(describeRequest);
    }
    await tracer.close();
    expect(ids.size).toBe(400);
    // The probability of fewer than 100 or more than 300 of 400 is below 1e-20.
    expect(described).toBeGreaterThan(100);
    expect(described).toBeLessThan(300);
    expect(receiver.spans).toHaveLength(described);
  });
});

describe('a span', () => {
  test.each([
    ['a known method and route', {}, 'GET /livez', {}],
    ['an unknown method', { method: 'BREW' }, 'HTTP /livez', { 'http.request.method': '_OTHER' }],
    ['no route', { route: undefined }, 'GET', { 'http.route': undefined }],
    [
      'a failure of the server',
      { status: 502 },
      'GET /livez',
      { 'error.type': '502', 'http.response.status_code': 502 },
    ],
    [
      'a rejected request',
      { status: 403 },
      'GET /livez',
      { 'error.type': undefined, 'http.response.status_code': 403 },
    ],
    ['a client that disconnected', { status: undefined }, 'GET /livez', { 'error.type': 'aborted' }],
    ['a long path', { path: `/${'x'.repeat(5_000)}` }, 'GET /livez', { 'url.path': `/${'x'.repeat(1_023)}` }],
  ])('a span describes %s', async (_, change, name, attributes) => {
    const tracer = open();
    serve(tracer, 1, change);
    await tracer.close();
    const [span] = receiver.spans;
    expect(span?.name).toBe(name);
    for (const [key, value] of Object.entries(attributes)) expect(span?.attributes[key]).toBe(value);
  });

  test('a client span for a request without a response is exported as aborted when its parent span ends', async () => {
    const tracer = open();
    const span = tracer.startServer({});
    const url = new URL('https://user:hush@logs.example:9200');
    span.startClient({ peer: 'log-store', operation: 'POST', url, path: '/_search?q=hush' });
    span
      .startClient({ peer: 'identity-provider', operation: 'bind', url: new URL('ldap://[::1]:1389') })
      .end(undefined);
    span.end(() => request);
    await tracer.close();
    expect(receiver.spans.map(({ name, attributes }) => ({ name, attributes })).slice(0, 2)).toEqual([
      {
        name: 'bind',
        attributes: {
          'service.peer.name': 'identity-provider',
          'server.address': '::1',
          'server.port': 1389,
          'network.protocol.name': 'ldap',
        },
      },
      {
        name: 'POST',
        attributes: {
          'service.peer.name': 'log-store',
          'server.address': 'logs.example',
          'server.port': 9200,
          'http.request.method': 'POST',
          'url.full': 'https://logs.example:9200/_search',
          'error.type': 'aborted',
        },
      },
    ]);
  });
});
