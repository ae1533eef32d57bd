/** Traces (docs/adr/0015-tracing.md), with a fake kube-apiserver, and a receiver that may fail. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { allRecorded } from '../../src/http/records.ts';
import { FakeKubeApiserver } from '../fakes/upstream.ts';
import { logOfLines } from '../fakes/log.ts';
import type { AppResponse } from '../fakes/request.ts';
import { TraceReceiver, type ReceivedSpan } from '../fakes/trace-receiver.ts';
import { login, startLab, type Lab, type LabRequest } from '../labs/conformance/lab.ts';

const configMaps = '/api/v1/namespaces/platform-system/configmaps';
const pods = '/api/v1/namespaces/default/pods';
const node = '/kapis/resources.platform.io/v1alpha3/nodes/n1';
const callerTrace = '4bf92f3577b34da6a3ce929d0e0e4736';
const callerSpan = '00f067aa0ba902b7';
const sampled = `00-${callerTrace}-${callerSpan}-01`;
const unsampled = `00-${callerTrace}-${callerSpan}-00`;
const { log, lines } = logOfLines();
const kube = new FakeKubeApiserver();

/** Receivers of all tests. They stay open, because the server may still send to them. */
const receivers: TraceReceiver[] = [];
const logStore = new FakeKubeApiserver();

let receiver: TraceReceiver;
let endpoint: string;
let lab: Lab;
let authorization: string;
beforeAll(async () => {
  const logging = { store: 'loki', loki: { url: await logStore.listen() } };
  lab = await startLab({ log, kubeApiserver: await kube.listen(), sections: { logging } });
  authorization = `Bearer ${String((await lab.token(login)).json()['access_token'])}`;
});
afterAll(async () => {
  await lab.stop();
  for (const one of [kube, logStore, ...receivers]) one.close();
});
beforeEach(async () => {
  kube.taken();
  receiver = new TraceReceiver();
  receivers.push(receiver);
  endpoint = await receiver.listen();
});

/** Applies the section, and resolves when the server has accepted the change. */
async function configure(tracing: object): Promise<void> {
  const current = lab.cluster.get(configMaps, 'platform-config')?.['data'] as { 'platform.yaml': string };
  const changed = JSON.stringify({ ...(JSON.parse(current['platform.yaml']) as object), tracing });
  lab.cluster.put(configMaps, { metadata: { name: 'platform-config' }, data: { 'platform.yaml': changed } });
  const accepted = (): string => JSON.stringify(lab.cluster.get(configMaps, 'platform-config-accepted') ?? '');
  while (!accepted().includes(JSON.stringify(changed))) await new Promise((resolve) => setTimeout(resolve, 5));
}

const send = (path: string, { headers, ...more }: LabRequest = {}): Promise<AppResponse> =>
  lab.gateway(path, { ...more, headers: { authorization, ...headers } });

/** Sends the traces of all requests to the receiver of this test. Resolves when the settings apply. */
async function configureAll(settings: object = {}): Promise<void> {
  await configure({ endpoint, samplingRatePerMillion: 1_000_000, ...settings });
  const isInForce = (line: string): boolean => line.includes('tracing started') && line.includes(endpoint);
  while (!lines().some(isInForce)) await new Promise((resolve) => setTimeout(resolve, 5));
}

const auditIDOf = (response: AppResponse): string => String(response.headers['audit-id']);
const serverSpan = (spans: readonly ReceivedSpan[], response: AppResponse): ReceivedSpan | undefined =>
  spans.find(({ attributes }) => attributes['audit-id'] === auditIDOf(response));

/** Sends a request and returns its response and its span. */
async function traced(path: string, request?: LabRequest): Promise<{ response: AppResponse; span: ReceivedSpan }> {
  const response = await send(path, request);
  const spans = await receiver.until((all) => serverSpan(all, response) !== undefined);
  return { response, span: serverSpan(spans, response) as ReceivedSpan };
}

describe('a server without an endpoint for traces', () => {
  test('a server without an endpoint for traces forwards the trace context of the caller unchanged', async () => {
    await send(pods, { headers: { traceparent: sampled, tracestate: 'vendor=1' } });
    const { headers } = kube.taken()[0] ?? {};
    expect(headers?.get('traceparent')).toEqual([sampled]);
    expect(headers?.get('tracestate')).toEqual(['vendor=1']);
  });

  test('a server without an endpoint for traces writes log lines without trace_id', async () => {
    const response = await send(node, { headers: { traceparent: sampled } });
    await allRecorded();
    expect(lines().find((line) => line.includes(auditIDOf(response)))).not.toContain('trace_id');
  });
});

describe('the span of a request', () => {
  beforeEach(() => configureAll());

  test('the span of a request has the attributes of the HTTP conventions, the route and the audit ID', async () => {
    const { response, span } = await traced(`${node}?fields=metadata.name`, { headers: { 'user-agent': 'console/1' } });
    expect(span).toMatchObject({
      name: 'GET /kapis/resources.platform.io/v1alpha3/nodes/:name',
      parentID: '',
      links: [],
    });
    expect(span.attributes).toEqual({
      'http.request.method': 'GET',
      'http.response.status_code': 200,
      'http.route': '/kapis/resources.platform.io/v1alpha3/nodes/:name',
      'url.scheme': 'http',
      'url.path': node,
      'network.protocol.version': '1.1',
      'client.address': '127.0.0.1',
      'user_agent.original': 'console/1',
      'audit-id': auditIDOf(response),
    });
  });

  test('the span of a forwarded request has the span of the request to kube-apiserver as its only child', async () => {
    const { span } = await traced(pods);
    const children = receiver.spans.filter(({ parentID }) => parentID === span.spanID);
    expect(children).toMatchObject([
      {
        name: 'GET',
        traceID: span.traceID,
        attributes: { 'service.peer.name': 'kube-apiserver', 'http.response.status_code': 200 },
      },
    ]);
    expect(kube.taken().map(({ headers }) => headers.get('traceparent'))).toEqual([
      [`00-${span.traceID}-${children[0]?.spanID}-01`],
    ]);
  });

  test('the span of a forwarded request names the resource only if the resource exists', async () => {
    const { span } = await traced('/apis/evil.example/v1/namespaces/a/one-of-many-names/b');
    expect(span.attributes['http.route']).toBe('/apis/:group/:version/namespaces/:namespace/:resource/:name');
  });

  test('the span of a log query has the span of the request to the log store as a child', async () => {
    logStore.taken();
    const { span } = await traced('/kapis/logging.platform.io/v1alpha2/logs?namespaces=default');
    const children = receiver.spans.filter(({ parentID }) => parentID === span.spanID);
    const child = children.find(({ attributes }) => attributes['service.peer.name'] === 'log-store');
    expect(child?.attributes['url.full']).toContain('/loki/api/v1/');
    const headers = logStore.taken().map((one) => one.headers.get('traceparent'));
    expect(headers).toContainEqual([`00-${span.traceID}-${child?.spanID}-01`]);
  });

  test('the access log and the error log of a request have the trace ID of its span', async () => {
    kube.serve = (_, res) => void res.destroy();
    const { response, span } = await traced(pods);
    kube.serve = (_, res) => void res.end('{}');
    expect(response.status).toBe(503);
    await allRecorded();
    const entries = lines()
      .filter((line) => line.includes(auditIDOf(response)))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(entries.map(({ level }) => level)).toEqual(['error', 'warn']);
    expect(entries.map((entry) => entry['trace_id'])).toEqual([span.traceID, span.traceID]);
  });

  test('no span contains a token, a query string, a username or a password', async () => {
    await lab.token(login);
    const token = authorization.split(' ')[1] ?? '';
    const response = await send(`${pods}/${token}?fieldSelector=spec.secret%3Dhush`, {
      headers: { 'user-agent': `tool Bearer ${token}` },
    });
    await receiver.until((spans) => serverSpan(spans, response) !== undefined);
    const all = receiver.requests.map(({ body }) => body.toString('latin1')).join('');
    for (const secret of [token, 'hush', 'alice', login.password]) expect(all).not.toContain(secret);
  });
});

describe('the trace context of a caller', () => {
  test('the trace context of an untrusted caller becomes a link of the span, which starts its own trace', async () => {
    await configureAll();
    const { span } = await traced(node, { headers: { traceparent: unsampled } });
    expect(span).toMatchObject({ parentID: '', links: [{ traceID: callerTrace, spanID: callerSpan }] });
    expect(span.traceID).not.toBe(callerTrace);
  });

  test('the sampled flag of an untrusted caller is not sent to kube-apiserver', async () => {
    await configureAll({ samplingRatePerMillion: 0 });
    await send(pods, { headers: { traceparent: sampled } });
    expect(kube.taken()[0]?.headers.get('traceparent')).toEqual([
      expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/),
    ]);
  });

  test('the trace context of a trusted caller continues in the span and at kube-apiserver, with its tracestate and sampled flag', async () => {
    await configureAll({ samplingRatePerMillion: 1_000_000, trustIncoming: true });
    const headers = { traceparent: sampled, tracestate: 'vendor=1' };
    const { span } = await traced(pods, { headers });
    expect(span).toMatchObject({ traceID: callerTrace, parentID: callerSpan, links: [] });
    kube.taken();
    await send(pods, { headers: { traceparent: unsampled } });
    await send(pods, { headers });
    const upstream = kube.taken().map((one) => one.headers);
    expect(upstream[0]?.get('traceparent')).toEqual([expect.stringMatching(`^00-${callerTrace}-[0-9a-f]{16}-00$`)]);
    expect(upstream[1]?.get('traceparent')).toEqual([expect.stringMatching(`^00-${callerTrace}-[0-9a-f]{16}-01$`)]);
    expect(upstream[1]?.get('tracestate')).toEqual(['vendor=1']);
  });

  test('a malformed traceparent of a trusted caller is ignored', async () => {
    await configureAll({ trustIncoming: true });
    const malformed: Readonly<Record<string, string | string[]>> = {
      empty: '',
      text: 'x',
      'upper case': sampled.toUpperCase(),
      'a trace ID of zeros': `00-${'0'.repeat(32)}-${callerSpan}-01`,
      'a span ID of zeros': `00-${callerTrace}-${'0'.repeat(16)}-01`,
      'version ff': sampled.replace(/^00/, 'ff'),
      'version 00 with a fifth field': `${sampled}-more`,
      'a short trace ID': `00-${callerTrace.slice(1)}-${callerSpan}-01`,
      'a long span ID': `00-${callerTrace}-${callerSpan}0-01`,
      'a flag that is not hexadecimal': `00-${callerTrace}-${callerSpan}-0g`,
      'two headers': [sampled, sampled.replace('4b', '4c')],
      '60 KB': `00-${'a'.repeat(60_000)}`.slice(0, 12_000),
    };
    const results = await Promise.all(
      Object.entries(malformed).map(async ([name, traceparent]) => {
        const { response, span } = await traced(node, { headers: { traceparent, tracestate: 'a=1' } });
        return [name, response.status, span.parentID, span.links.length, span.traceID === callerTrace];
      }),
    );
    expect(results).toEqual(Object.keys(malformed).map((name) => [name, 200, '', 0, false]));
  });
});

/** Returns the number of spans that the server has dropped. */
const lost = async (): Promise<number> =>
  Number(/^platform_apiserver_trace_spans_dropped_total (\d+)/m.exec((await send('/metrics')).text)?.[1]);

describe('the export of spans', () => {
  test('the export of spans sends protobuf to /v1/traces with the configured bearer token', async () => {
    lab.cluster.put('/api/v1/namespaces/platform-system/secrets', {
      metadata: { name: 'traces' },
      data: { token: Buffer.from('of-the-receiver').toString('base64') },
    });
    await configureAll({ tokenRef: { name: 'traces', key: 'token' } });
    await traced(node);
    expect(receiver.requests.at(-1)).toMatchObject({
      url: '/v1/traces',
      headers: { authorization: 'Bearer of-the-receiver', 'content-type': 'application/x-protobuf' },
    });
  });

  test('requests succeed while the export of spans fails; the server counts the lost spans and logs the failure once', async () => {
    receiver.serve = (res) => void res.writeHead(400).end();
    await configureAll();
    const before = await lost();
    for (let count = 0; count < 3; count += 1) {
      const { response } = await traced(node);
      expect(response.status).toBe(200);
    }
    while ((await lost()) < before + 3) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(lines().filter((line) => line.includes('trace export failed') && line.includes(endpoint))).toHaveLength(1);
  });
});
