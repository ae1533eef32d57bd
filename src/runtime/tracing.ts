/**
 * Spans of requests (ADR 15). The SDK is in src/tracing, which is loaded only while tracing is on. While tracing is
 * off, `tracing.tracer` is undefined and no request has a span.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingHttpHeaders } from 'node:http';

/** Trace context (W3C Trace Context) in headers, by lower-case name. */
export type TraceHeaders = Readonly<Record<string, string>>;

/** Names of the headers of the trace context. */
export const traceHeaders: ReadonlySet<string> = new Set(['traceparent', 'tracestate']);

/** A request of a client, as its span describes it. */
export interface ServedRequest {
  readonly method: string;
  /** Path without the query, with credentials redacted. */
  readonly path: string;
  /** Pattern of the path, such as `/api/:version/nodes/:name`; undefined if no route serves the path. */
  readonly route: string | undefined;
  readonly scheme: 'http' | 'https';
  /** Version of HTTP, such as 1.1. */
  readonly version: string;
  readonly sourceIP: string;
  readonly userAgent: string;
  readonly auditID: string;
  /** Status of the response; undefined if the client disconnected before the response. */
  readonly status: number | undefined;
}

/** Role of another server, for the attribute `service.peer.name`. */
export type Peer = 'kube-apiserver' | 'log-store' | 'identity-provider';

/** A request of this server to another server, as its span describes it. */
export interface SentRequest {
  readonly peer: Peer;
  /** HTTP method, or the name of the operation of another protocol. */
  readonly operation: string;
  /** Address of the server. Its username, password and query are ignored. */
  readonly url: URL;
  /** Path of an HTTP request. Its query is ignored. */
  readonly path?: string;
}

/** Span of a request of this server to another server. */
export interface ClientSpan {
  /** Headers that continue the trace at the other server. */
  readonly headers: TraceHeaders;
  /** Ends the span. `status`: HTTP status of the response, if there is one. */
  end(status: number | undefined, error?: unknown): void;
}

/** Span of a client's request. */
export interface ServerSpan {
  readonly traceID: string;
  readonly isOver: boolean;
  startClient(request: SentRequest): ClientSpan;
  /** Ends the span. `describe` is called only if the span is recorded. */
  end(describe: () => ServedRequest): void;
}

export interface Tracer {
  /** Starts the span of a request with these headers. Malformed headers are ignored. */
  startServer(headers: IncomingHttpHeaders): ServerSpan;
}

export const tracing: { tracer: Tracer | undefined } = { tracer: undefined };

const spans = new AsyncLocalStorage<ServerSpan | undefined>();

/** Runs `serve` and everything that it starts within the span. */
export const runWithin = <A>(span: ServerSpan, serve: (argument: A) => unknown, argument: A): void =>
  void spans.run(span, serve, argument);

/**
 * Runs shared work without the span of the request that happens to start the work. Timers, promises and sockets keep
 * the span in which they are created. Without this function, the requests and log lines of a shared timer, cache or
 * queue would become part of one caller's trace, for as long as that caller's request lasts.
 */
export const withoutSpan = <T>(work: () => T): T => spans.run(undefined, work);

/** Returns the span of the current request, or undefined after the end of the request. */
export function currentSpan(): ServerSpan | undefined {
  const span = spans.getStore();
  return span?.isOver === true ? undefined : span;
}

/**
 * Starts a child of the current request's span. Returns undefined if the current request has no span. Call this
 * function after waiting in queues of this server, because the span measures only the other server.
 */
export const startClientSpan = (request: SentRequest): ClientSpan | undefined => currentSpan()?.startClient(request);

/**
 * Sends a request within a child of the current request's span, if the current request has a span. `send` receives the
 * headers that continue the trace.
 */
export function inClientSpan<T>(
  request: SentRequest,
  send: (trace?: TraceHeaders) => Promise<T>,
  statusOf: (response: T) => number | undefined = () => undefined,
): Promise<T> {
  const span = startClientSpan(request);
  return span === undefined ? send() : sendWithin(span, send, statusOf);
}

async function sendWithin<T>(
  span: ClientSpan,
  send: (trace: TraceHeaders) => Promise<T>,
  statusOf: (response: T) => number | undefined,
): Promise<T> {
  try {
    const response = await send(span.headers);
    span.end(statusOf(response));
    return response;
  } catch (error) {
    span.end(undefined, error);
    throw error;
  }
}
