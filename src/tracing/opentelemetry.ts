/**
 * Records traces with the OpenTelemetry SDK. Only this module, bounded-processor.ts and span-attributes.ts import
 * packages of OpenTelemetry. These modules are loaded only while tracing is on (ADR 15).
 */
import type { IncomingHttpHeaders } from 'node:http';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
  type Context,
  type Span,
  type SpanContext,
  type Tracer as SDKTracer,
} from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import { RandomIdGenerator, TracerProvider } from '@opentelemetry/sdk-trace';
import {
  ATTR_ERROR_TYPE,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_SERVICE_INSTANCE_ID,
  ATTR_SERVICE_NAME,
  ATTR_SERVICE_VERSION,
} from '@opentelemetry/semantic-conventions';
import type { ClientSpan, SentRequest, ServedRequest, ServerSpan, TraceHeaders, Tracer } from '../runtime/tracing.ts';
import { BoundedProcessor, type ReceiverOptions } from './bounded-processor.ts';
import { aborted, describeSent, describeServed, errorType } from './span-attributes.ts';

export interface TracerOptions extends ReceiverOptions {
  readonly samplingRatePerMillion: number;
  readonly trustIncoming: boolean;
  readonly version: string;
}

export interface OpenTracer extends Tracer {
  /** Exports the spans that have ended. Waits for the receiver at most `maxFlush` milliseconds. */
  close(): Promise<void>;
}

/** Milliseconds that `close` waits for the receiver. */
const maxFlush = 3_000;

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
