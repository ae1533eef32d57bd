/**
 * HTTP client for every server except kube-apiserver: log stores, the audit webhook, OpenID providers, and this server
 * when the credential plugin calls it. The client uses HTTP/1.1, verifies TLS, follows no redirects and ignores the
 * proxy variables of the environment.
 */
import type { Agent, Dispatcher } from 'undici';
import { readBody, untilAborted } from './promises.ts';
import { inClientSpan, type Peer, type TraceHeaders } from './tracing.ts';

interface OutgoingOptions {
  /** The only trusted CAs, in PEM. Default: the CAs of Node. */
  readonly ca?: string | undefined;
  /**
   * Maximum persistent connections to each server. A request on a persistent connection is retried once if the
   * connection ended before the response, so requests must be safe to retry. If undefined, each request opens its own
   * connection.
   */
  readonly connections?: number;
  /** Role of the servers in traces. Default: requests are not traced. */
  readonly peer?: Peer;
}

interface OutgoingRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** Signal that is the only deadline of the request. The deadline covers the connection, the head and the body. */
  readonly signal: AbortSignal;
  /** Maximum bytes of the response body. */
  readonly maxBytes: number;
}

export interface OutgoingResponse {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData['headers'];
  readonly body: Buffer;
}

/**
 * `unreachable`: no response started. `interrupted`: the response is incomplete. `malformed`: the response is not HTTP.
 */
type OutgoingFailure = 'unreachable' | 'interrupted' | 'malformed' | 'too large';

/**
 * Error for a failed request. The message and cause can contain the address of the server, but never contain the path,
 * headers or body of the request.
 */
export class OutgoingError extends Error {
  readonly failure: OutgoingFailure;
  /** Error code of Node, OpenSSL or undici. */
  readonly code: string | undefined;
  /** Status of the response, if its head arrived. */
  readonly status: number | undefined;

  constructor(failure: OutgoingFailure, message: string, cause?: NodeJS.ErrnoException, status?: number) {
    super(message, { cause });
    this.failure = failure;
    this.code = cause?.code;
    this.status = status;
  }
}

export class OutgoingClient {
  readonly #options: OutgoingOptions;
  #sender: Promise<Sender> | undefined;

  constructor(options: OutgoingOptions) {
    this.#options = options;
  }

  /** Throws OutgoingError, or the reason of the signal. */
  async request(url: URL, request: OutgoingRequest): Promise<OutgoingResponse> {
    const { signal } = request;
    signal.throwIfAborted();
    const { peer } = this.#options;
    const send = (trace?: TraceHeaders): Promise<OutgoingResponse> => {
      const headers = { ...request.headers, ...trace };
      // undici cannot abort a request while the request waits for a new connection.
      return untilAborted(this.#sendOrRepeat(url, { ...request, headers }), signal);
    };
    if (peer === undefined) return await send();
    const sent = { peer, operation: request.method, url, path: url.pathname };
    return await inClientSpan(sent, send, ({ status }) => status);
  }

  /** Closes all connections and aborts the requests on them. */
  async close(): Promise<void> {
    await (await this.#sender)?.agent.destroy();
  }

  async #sendOrRepeat(url: URL, request: OutgoingRequest): Promise<OutgoingResponse> {
    try {
      return await this.#send(url, request);
    } catch (error) {
      if (this.#options.connections === undefined || !isStale(error)) throw error;
      return await this.#send(url, request);
    }
  }

  async #send(url: URL, { method, headers, body, signal, maxBytes }: OutgoingRequest): Promise<OutgoingResponse> {
    const { agent, send } = await (this.#sender ??= openSender(this.#options));
    const { origin, host, pathname, search } = url;
    const options = {
      origin,
      path: `${pathname}${search}`,
      method: method as 'GET',
      headers,
      body: body ?? null,
      signal,
    };
    const response = await send.call(agent, options).catch((cause: unknown) => fail('unreachable', cause));
    const { statusCode: status, headers: fields } = response;
    const message = `the response from ${host} is too large`;
    const tooLarge = (): Error => new OutgoingError('too large', message, undefined, status);
    const bytes = readBody(response.body, maxBytes, tooLarge).catch((cause: unknown) =>
      fail('interrupted', cause, status),
    );
    return { status, headers: fields, body: await bytes };
  }
}

interface Sender {
  readonly agent: Agent;
  readonly send: (this: Dispatcher, options: Dispatcher.RequestOptions) => Promise<Dispatcher.ResponseData>;
}

/** Loads undici on first use, because loading takes 40 ms. */
async function openSender({ ca, connections }: OutgoingOptions): Promise<Sender> {
  const { default: UndiciAgent } = await import('undici/lib/dispatcher/agent.js');
  const { default: send } = await import('undici/lib/api/api-request.js');
  const agent = new UndiciAgent({
    allowH2: false,
    // Disables the timeouts of undici: the signal of the request is the deadline.
    headersTimeout: 0,
    bodyTimeout: 0,
    ...(ca === undefined ? {} : { connect: { ca } }),
    ...(connections === undefined ? { pipelining: 0 } : { connections }),
  });
  return { agent, send };
}

/** Names of undici errors for a response that is not HTTP or whose head is too large. */
const malformed: ReadonlySet<string> = new Set([
  'AssertionError',
  'HTTPParserError',
  'HeadersOverflowError',
  'ResponseContentLengthMismatchError',
]);

function fail(failure: OutgoingFailure, cause: unknown, status?: number): never {
  if (cause instanceof OutgoingError) throw cause;
  const { name, message, code = name } = cause as NodeJS.ErrnoException;
  // If the host name has several addresses, the cause is an AggregateError with an empty message.
  throw new OutgoingError(malformed.has(name) ? 'malformed' : failure, message || code, cause as Error, status);
}

/** Returns true if a persistent connection ended before the response. A connection that has read no bytes is new. */
function isStale(error: unknown): boolean {
  if (!(error instanceof OutgoingError) || error.failure !== 'unreachable') return false;
  const { socket } = error.cause as { socket?: { readonly bytesRead?: number } | null };
  return ['ECONNRESET', 'EPIPE'].includes(error.code ?? '') || (socket?.bytesRead ?? 0) > 0;
}
