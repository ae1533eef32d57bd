/**
 * Records traces with the OpenTelemetry SDK. No other file imports the SDK. This module is loaded only while tracing is
 * on (ADR 15).
 */
import { Agent as HTTPAgent, type IncomingHttpHeaders } from 'node:http';
import { Agent as HTTPSAgent } from 'node:https';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
  type Attributes,
  type Context,
  type Span,
  type SpanContext,
  type Tracer as SDKTracer,
} from '@opentelemetry/api';
import { ExportResultCode, W3CTraceContextPropagator, type ExportResult } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  RandomIdGenerator,
  TracerProvider,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace';
import {
  ATTR_CLIENT_ADDRESS,
  ATTR_ERROR_TYPE,
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_HTTP_ROUTE,
  ATTR_NETWORK_PROTOCOL_NAME,
  ATTR_NETWORK_PROTOCOL_VERSION,
  ATTR_SERVER_ADDRESS,
  ATTR_SERVER_PORT,
  ATTR_SERVICE_INSTANCE_ID,
  ATTR_SERVICE_NAME,
  ATTR_SERVICE_VERSION,
  ATTR_URL_FULL,
  ATTR_URL_PATH,
  ATTR_URL_SCHEME,
  ATTR_USER_AGENT_ORIGINAL,
} from '@opentelemetry/semantic-conventions';
import { redactText } from '../runtime/redaction.ts';
import type { ClientSpan, SentRequest, ServedRequest, ServerSpan, TraceHeaders, Tracer } from '../runtime/tracing.ts';

export interface TracerOptions {
  /** URL to which spans are posted. */
  readonly url: string;
  /** The only trusted CA of the receiver, in PEM. Default: the CAs of Node.js. */
  readonly ca: string | undefined;
  /** Returns the bearer token; undefined for none. */
  readonly token: () => string | undefined;
  readonly samplingRatePerMillion: number;
  readonly trustIncoming: boolean;
  readonly version: string;
  /** Milliseconds to wait for the complete response of the receiver. */
  readonly exportTimeout: number;
  /** Called with the number of lost spans, and with the reason if the receiver did not accept them. */
  readonly lost: (spans: number, reason?: Error) => void;
}

export interface OpenTracer extends Tracer {
  /** Exports the spans that have ended. Waits for the receiver at most `maxFlush` milliseconds. */
  close(): Promise<void>;
}

/** Maximum spans that wait for export; further spans are dropped. */
const maxWaiting = 2_048;
const maxBatch = 512;
/** Milliseconds between two exports of a batch. */
const batchDelay = 1_000;
const maxFlush = 3_000;
/** Maximum characters of an attribute, because callers choose their paths and user agents. */
const maxAttribute = 1_024;

export function openTracer(options: TracerOptions): OpenTracer {
  const { samplingRatePerMillion, trustIncoming, version } = options;
  const provider = new TracerProvider({
    resource: defaultResource().merge(
      resourceFromAttributes({
        [ATTR_SERVICE_NAME]: 'platform-apiserver',
        [ATTR_SERVICE_VERSION]: version,
        [ATTR_SERVICE_INSTANCE_ID]: hostname(),
      }),
    ),
    spanProcessors: [new BoundedProcessor(options)],
  });
  const sdk = provider.getTracer('platform-apiserver', version);
  return {
    startServer(headers) {
      const context = headers['traceparent'] === undefined ? ROOT_CONTEXT : contextOf(headers);
      const caller = trace.getSpanContext(context);
      const parent = trustIncoming ? caller : undefined;
      // The sampling decision is made here, because the SDK would take 4 µs for a request that is not recorded.
      const isSampled =
        parent === undefined
          ? Math.random() * 1e6 < samplingRatePerMillion
          : (parent.traceFlags & TraceFlags.SAMPLED) !== 0;
      if (!isSampled) return new UnrecordedSpan(parent);
      const links = caller === undefined || parent !== undefined ? [] : [{ context: caller }];
      const from = parent === undefined ? ROOT_CONTEXT : context;
      return new RecordedSpan(sdk.startSpan('request', { kind: SpanKind.SERVER, links }, from), sdk);
    },
    async close() {
      await Promise.race([provider.shutdown(), sleep(maxFlush, undefined, { ref: false })]).catch(() => undefined);
    },
  };
}

const propagator = new W3CTraceContextPropagator();
const fromHeaders = {
  get: (headers: IncomingHttpHeaders, name: string) => headers[name],
  keys: (headers: IncomingHttpHeaders) => Object.keys(headers),
};
const intoHeaders = {
  set: (headers: Record<string, string>, name: string, value: string) => void (headers[name] = value),
};

const contextOf = (headers: IncomingHttpHeaders): Context => propagator.extract(ROOT_CONTEXT, headers, fromHeaders);

/** Returns the headers that name the span as the parent. */
function headersOf(span: SpanContext): TraceHeaders {
  const headers: Record<string, string> = {};
  propagator.inject(trace.setSpanContext(ROOT_CONTEXT, span), headers, intoHeaders);
  return headers;
}

const ids = new RandomIdGenerator();
const ignore = (): void => undefined;

/** Span that is not recorded. Its ID is used in the log, and by other servers that record their own spans. */
class UnrecordedSpan implements ServerSpan {
  isOver = false;
  readonly #parent: SpanContext | undefined;
  #traceID: string | undefined;

  constructor(parent: SpanContext | undefined) {
    this.#parent = parent;
  }

  get traceID(): string {
    return (this.#traceID ??= this.#parent?.traceId ?? ids.generateTraceId());
  }

  startClient(): ClientSpan {
    const { traceID: traceId } = this;
    const own = { traceId, spanId: ids.generateSpanId(), traceFlags: TraceFlags.NONE };
    return { headers: headersOf({ ...this.#parent, ...own }), end: ignore };
  }

  end(): void {
    this.isOver = true;
  }
}

class RecordedSpan implements ServerSpan {
  readonly traceID: string;
  isOver = false;
  readonly #span: Span;
  readonly #sdk: SDKTracer;
  /** Spans of requests to other servers that have not ended yet. */
  #children: Set<RecordedClientSpan> | undefined;

  constructor(span: Span, sdk: SDKTracer) {
    this.traceID = span.spanContext().traceId;
    this.#span = span;
    this.#sdk = sdk;
  }

  startClient(request: SentRequest): ClientSpan {
    const { name, attributes } = describeSent(request);
    const context = trace.setSpan(ROOT_CONTEXT, this.#span);
    const span = this.#sdk.startSpan(name, { kind: SpanKind.CLIENT, attributes }, context);
    const children = (this.#children ??= new Set());
    const child = new RecordedClientSpan(span, () => children.delete(child));
    children.add(child);
    return child;
  }

  end(describe: () => ServedRequest): void {
    if (this.isOver) return;
    this.isOver = true;
    // A request to another server ends without a response if the client disconnects.
    for (const child of this.#children ?? []) child.end(undefined, aborted);
    const { name, attributes, isFailure } = describeServed(describe());
    this.#span.updateName(name).setAttributes(attributes);
    if (isFailure) this.#span.setStatus({ code: SpanStatusCode.ERROR });
    this.#span.end();
  }
}

const aborted = { code: 'aborted' };

class RecordedClientSpan implements ClientSpan {
  readonly headers: TraceHeaders;
  readonly #span: Span;
  readonly #ended: () => void;

  constructor(span: Span, ended: () => void) {
    this.headers = headersOf(span.spanContext());
    this.#span = span;
    this.#ended = ended;
  }

  end(status: number | undefined, error?: unknown): void {
    if (!this.#span.isRecording()) return;
    if (status !== undefined) this.#span.setAttribute(ATTR_HTTP_RESPONSE_STATUS_CODE, status);
    const type = errorType(status !== undefined && status >= 400 ? String(status) : undefined, error);
    if (type !== undefined) this.#span.setAttribute(ATTR_ERROR_TYPE, type).setStatus({ code: SpanStatusCode.ERROR });
    this.#span.end();
    this.#ended();
  }
}

/** Returns the code or the class of an error. Messages are not recorded, because they may quote secrets. */
function errorType(status: string | undefined, error: unknown): string | undefined {
  if (error === undefined) return status;
  const { code, name } = error as { readonly code?: unknown; readonly name?: string };
  return typeof code === 'string' ? code : (name ?? '_OTHER');
}

/**
 * Returns a copy of at most `maxAttribute` characters. A substring would keep the whole text in memory while the span
 * waits.
 */
const shortened = (text: string): string =>
  text.length <= maxAttribute ? text : Buffer.from(text.slice(0, maxAttribute)).toString();

/** Methods that a span names (http.request.method). */
const methods: ReadonlySet<string> = new Set('CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT QUERY TRACE'.split(' '));

/** Returns the name and attributes of a server span by the semantic conventions for HTTP spans. */
function describeServed(request: ServedRequest) {
  const { route, status, userAgent } = request;
  const method = methods.has(request.method) ? request.method : undefined;
  const isFailure = status !== undefined && status >= 500;
  const attributes: Attributes = {
    [ATTR_HTTP_REQUEST_METHOD]: method ?? '_OTHER',
    [ATTR_URL_SCHEME]: request.scheme,
    [ATTR_URL_PATH]: shortened(request.path),
    [ATTR_NETWORK_PROTOCOL_VERSION]: request.version,
    [ATTR_CLIENT_ADDRESS]: request.sourceIP,
    // The spans of kube-apiserver have the same attribute.
    'audit-id': request.auditID,
    ...(route === undefined ? {} : { [ATTR_HTTP_ROUTE]: route }),
    ...(userAgent === '' ? {} : { [ATTR_USER_AGENT_ORIGINAL]: shortened(userAgent) }),
    ...(status === undefined ? { [ATTR_ERROR_TYPE]: aborted.code } : { [ATTR_HTTP_RESPONSE_STATUS_CODE]: status }),
    ...(isFailure ? { [ATTR_ERROR_TYPE]: String(status) } : {}),
  };
  return { name: [method ?? 'HTTP', ...(route === undefined ? [] : [route])].join(' '), attributes, isFailure };
}

const defaultPorts: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

function describeSent({ peer, operation, url, path }: SentRequest): { name: string; attributes: Attributes } {
  const { protocol, hostname: host } = url;
  const port = url.port === '' ? defaultPorts[protocol] : Number(url.port);
  const attributes = {
    'service.peer.name': peer,
    [ATTR_SERVER_ADDRESS]: host.replaceAll(/[[\]]/g, ''),
    ...(port === undefined ? {} : { [ATTR_SERVER_PORT]: port }),
    ...(path === undefined
      ? { [ATTR_NETWORK_PROTOCOL_NAME]: protocol.slice(0, -1) }
      : {
          [ATTR_HTTP_REQUEST_METHOD]: operation,
          [ATTR_URL_FULL]: shortened(redactText(`${url.origin}${path.split('?', 1)[0]}`)),
        }),
  };
  return { name: operation, attributes };
}

/** Batches the spans of the SDK. Limits the spans that wait for the receiver, and counts those that are lost. */
class BoundedProcessor implements SpanProcessor {
  readonly #batches: BatchSpanProcessor;
  readonly #lost: TracerOptions['lost'];
  readonly #exportTimeout: number;
  readonly #agent: HTTPAgent;
  #waiting = 0;
  /** True after the settings have changed, while requests that started before are still served. */
  #isClosed = false;

  constructor({ url, ca, token, exportTimeout, lost }: TracerOptions) {
    this.#lost = lost;
    this.#exportTimeout = exportTimeout;
    this.#agent = url.startsWith('https:')
      ? new HTTPSAgent({ keepAlive: true, ca })
      : new HTTPAgent({ keepAlive: true });
    const exporter = new OTLPTraceExporter({
      url,
      timeoutMillis: exportTimeout,
      userAgent: 'platform-apiserver',
      httpAgentOptions: () => this.#agent,
      headers: async (): Promise<Record<string, string>> => {
        const value = token();
        return value === undefined ? {} : { Authorization: `Bearer ${value}` };
      },
    });
    this.#batches = new BatchSpanProcessor({
      exporter: this.#counted(exporter),
      maxQueueSize: maxWaiting,
      maxExportBatchSize: maxBatch,
      scheduledDelayMillis: batchDelay,
      exportTimeoutMillis: exportTimeout,
    });
  }

  #counted(exporter: SpanExporter): SpanExporter {
    return {
      export: (spans, done) => {
        let isOver = false;
        const end = (result: ExportResult): void => {
          if (isOver) return;
          isOver = true;
          clearTimeout(timer);
          this.#waiting -= spans.length;
          if (result.code !== ExportResultCode.SUCCESS) this.#lost(spans.length, result.error);
          done(result);
        };
        // The timeout of the exporter starts again with each byte that it receives.
        const timer = setTimeout(() => {
          end({ code: ExportResultCode.FAILED, error: new Error('the response of the receiver took too long') });
          this.#agent.destroy();
        }, this.#exportTimeout).unref();
        exporter.export(spans, end);
      },
      shutdown: () => exporter.shutdown(),
    };
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    // The SDK drops the spans of a closed processor silently.
    if (this.#isClosed || this.#waiting >= maxWaiting) return this.#lost(1);
    this.#waiting += 1;
    this.#batches.onEnd(span);
  }

  forceFlush(): Promise<void> {
    return this.#batches.forceFlush();
  }

  shutdown(): Promise<void> {
    this.#isClosed = true;
    return this.#batches.shutdown();
  }
}
