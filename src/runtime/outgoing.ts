/**
 * HTTP client for every server but kube-apiserver: log stores, the audit webhook, OpenID providers, and the platform itself where the
 * credential plugin calls it. It speaks HTTP/1.1, verifies TLS, follows no redirect and ignores proxies of the environment.
 */
import type { Agent, Dispatcher } from 'undici';
import { readBody, untilAborted } from './promises.ts';

interface OutgoingOptions {
  /** PEM; the only CA that is trusted. Without it the CAs of Node are. */
  readonly ca?: string | undefined;
  /**
   * Maximum connections to each server, which are kept for later requests. A request is repeated once if its connection was kept and
   * ended before the response: it must be safe to repeat. Without this number each request has its own connection.
   */
  readonly connections?: number;
}

interface OutgoingRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** The only deadline, for the connection, the head and the body together. */
  readonly signal: AbortSignal;
  /** Maximum bytes of the response body. */
  readonly maxBytes: number;
}

export interface OutgoingResponse {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData['headers'];
  readonly body: Buffer;
}

/** `unreachable`: no response began. `interrupted`: it did not end. `malformed`: it is not HTTP. */
type OutgoingFailure = 'unreachable' | 'interrupted' | 'malformed' | 'too large';

/** Message and cause name the server at most, never the path, the headers or the body of the request. */
export class OutgoingError extends Error {
  readonly failure: OutgoingFailure;
  /** The code of Node, OpenSSL or undici. */
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
    // undici ends a request that waits for a connection only when it gets one.
    return await untilAborted(this.#sendOrRepeat(url, request), signal);
  }

  /** Ends all connections, and the requests on them. */
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
    const message = `the response of ${host} is too large`;
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

/** Loads undici, which takes 40 ms. */
async function openSender({ ca, connections }: OutgoingOptions): Promise<Sender> {
  const { default: UndiciAgent } = await import('undici/lib/dispatcher/agent.js');
  const { default: send } = await import('undici/lib/api/api-request.js');
  const agent = new UndiciAgent({
    allowH2: false,
    // undici's own timeouts; the signal of the request is the deadline.
    headersTimeout: 0,
    bodyTimeout: 0,
    ...(ca === undefined ? {} : { connect: { ca } }),
    ...(connections === undefined ? { pipelining: 0 } : { connections }),
  });
  return { agent, send };
}

/** Errors of undici about a response that is not HTTP, or whose head is too large. */
const malformed: ReadonlySet<string> = new Set([
  'AssertionError',
  'HTTPParserError',
  'HeadersOverflowError',
  'ResponseContentLengthMismatchError',
]);

function fail(failure: OutgoingFailure, cause: unknown, status?: number): never {
  if (cause instanceof OutgoingError) throw cause;
  const { name, message, code = name } = cause as NodeJS.ErrnoException;
  // An error about several addresses has no message of its own.
  throw new OutgoingError(malformed.has(name) ? 'malformed' : failure, message || code, cause as Error, status);
}

/** Did a kept connection end before the response? A new connection that ends has read nothing. */
function isStale(error: unknown): boolean {
  if (!(error instanceof OutgoingError) || error.failure !== 'unreachable') return false;
  const { socket } = error.cause as { socket?: { readonly bytesRead?: number } | null };
  return ['ECONNRESET', 'EPIPE'].includes(error.code ?? '') || (socket?.bytesRead ?? 0) > 0;
}
