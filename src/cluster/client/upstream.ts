/**
 * Forwards the requests of callers to kube-apiserver unchanged, streaming in both directions over persistent
 * connections. Rejects requests that impersonate nobody: they would run with this server's own rights, which are
 * root-equivalent.
 */
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { Duplex } from 'node:stream';
import { badGateway, StatusError, timeout } from '../../runtime/errors.ts';
import {
  inClientSpan,
  startClientSpan,
  traceHeaders,
  type ClientSpan,
  type SentRequest,
  type TraceHeaders,
} from '../../runtime/tracing.ts';
import { unreachable } from './kube-error.ts';
import { impersonationHeaders, type UpstreamIdentity } from './impersonation.ts';
import { type Address, Connections } from '../wire/connections.ts';
import { ResponseTimeout, isSafe, type ResponseFlow, type ResponseHandler } from '../wire/connection.ts';
import { assertOneIdentity, fieldsOf, headOf } from '../wire/request-head.ts';

export type { ResponseFlow, ResponseHandler };

export interface ForwardedRequest {
  readonly method: string;
  /** Path and query as received. */
  readonly target: string;
  /** Alternating names and values, without credentials or impersonation headers. */
  readonly headers: readonly string[];
  /** User to impersonate. */
  readonly user: UpstreamIdentity;
  readonly body?: AsyncIterable<Buffer> | undefined;
  /** Bytes of the body, if known. */
  readonly length?: number | undefined;
  /** True for a request without a timeout, such as a watch. */
  readonly isLongRunning: boolean;
}

/** Connection after a protocol upgrade. `first` holds the bytes that were already received. */
export interface UpgradedConnection {
  readonly connection: Duplex;
  readonly first: Buffer;
}

/** Response to an upgrade request. The caller must destroy its socket at the end. */
export interface UpgradeResponse {
  readonly response: IncomingMessage;
  /** Connection, undefined if kube-apiserver refused the upgrade. */
  readonly granted?: UpgradedConnection;
}

export interface Upstream {
  /** Throws StatusError for a request that cannot be serialized. Later errors are reported to the handler. */
  send(request: ForwardedRequest, handler: ResponseHandler): Promise<ResponseFlow>;
  /**
   * Requests another protocol on a dedicated connection. Throws StatusError if there is no response, and the signal's
   * reason if the signal is aborted.
   */
  upgrade(request: ForwardedRequest, protocol: string, signal: AbortSignal): Promise<UpgradeResponse>;
  /** Numbers of open connections, not counting upgraded ones. */
  readonly connections: Connections['counts'];
  /** Reads the credential of this server again before the next request, after kube-apiserver rejected it. */
  renewCredential(): void;
  close(): void;
}

export interface UpstreamOptions {
  readonly address: Address;
  readonly credential: { headers(): Promise<Readonly<Record<string, string>>>; renew(): void };
}

/**
 * Timeout of a response in milliseconds. The timeout exceeds the limit of kube-apiserver for short requests (60 s),
 * because the error message of kube-apiserver is better than the message of this server.
 */
export const shortRequestTimeout = 65_000;
/** Timeout of the response to an upgrade in milliseconds. kube-apiserver contacts a kubelet before it responds. */
const handshakeTimeout = 60_000;
const maxHeaderSize = 256 * 1024;

const identities = new WeakMap<UpstreamIdentity, readonly string[]>();

/** Returns the impersonation headers of a caller, which are built once per caller. */
export function identityOf(user: UpstreamIdentity): readonly string[] {
  let headers = identities.get(user);
  if (headers === undefined) {
    headers = fieldsOf(impersonationHeaders(user));
    identities.set(user, headers);
  }
  return headers;
}

export function createUpstream({ address, credential }: UpstreamOptions): Upstream {
  const { url, hostname, prefix } = address;
  const { host, port, protocol } = url;
  // The number of connections is unlimited: otherwise requests would wait for clients that read slowly. The filters
  // limit the number of requests.
  const connections = new Connections(address, Infinity);

  const describe = ({ method, target }: ForwardedRequest): SentRequest => ({
    peer: 'kube-apiserver',
    operation: method,
    url,
    path: `${prefix}${target}`,
  });

  /** Returns the value of the Authorization header of this server. */
  async function authorize(): Promise<string | undefined> {
    const { Authorization: authorization } = await credential.headers().catch((cause: unknown) => {
      throw unreachable(cause).toStatusError();
    });
    return authorization;
  }

  function forward(
    request: ForwardedRequest,
    handler: ResponseHandler,
    authorization: string | undefined,
    trace?: TraceHeaders,
  ): ResponseFlow {
    const { method, target, body, length, isLongRunning } = request;
    const headers = headersOf(request, authorization, trace);
    const head = headOf({ method, target: `${prefix}${target}`, host, headers, length, hasBody: body !== undefined });
    return connections.send({
      method,
      head,
      body,
      length,
      timeout: isLongRunning ? 0 : shortRequestTimeout,
      handler,
    });
  }

  return {
    async send(request, handler) {
      const authorization = await authorize();
      const span = startClientSpan(describe(request));
      if (span === undefined) return forward(request, handler, authorization);
      try {
        return forward(request, new TracedHandler(handler, span), authorization, span.headers);
      } catch (error) {
        span.end(undefined, error);
        throw error;
      }
    },

    async upgrade(request, requestedProtocol, signal) {
      const authorization = await authorize();
      signal.throwIfAborted();
      const sendUpgrade = (trace?: TraceHeaders): Promise<UpgradeResponse> => {
        const client = (protocol === 'https:' ? https : http).request({
          ...address.tls,
          hostname,
          port,
          agent: false,
          method: request.method,
          path: `${prefix}${request.target}`,
          // Without a Content-Length, Node ends the empty body of a POST with a chunk. kube-apiserver would read that
          // chunk as data of the new protocol.
          headers: [
            'Host',
            host,
            ...withOneIdentity(headersOf(request, authorization, trace)),
            'Content-Length',
            '0',
            'Connection',
            'Upgrade',
            'Upgrade',
            requestedProtocol,
          ],
          maxHeaderSize,
        });
        client.end();
        return responseOf(client, signal);
      };
      return await inClientSpan(describe(request), sendUpgrade, ({ response }) => response.statusCode);
    },

    get connections() {
      return connections.counts;
    },

    renewCredential: () => credential.renew(),

    close: () => connections.close(),
  };
}

/** Returns the headers of a forwarded request. `trace` replaces the trace context of the caller. */
const headersOf = (
  { headers, user }: ForwardedRequest,
  authorization: string | undefined,
  trace: TraceHeaders | undefined,
): string[] => withIdentity(trace === undefined ? headers : withTrace(headers, trace), authorization, identityOf(user));

/**
 * Appends the credential and the impersonation headers. Throws if the headers already contain one of them. Whether the
 * result impersonates exactly one user is checked where the head of the request is written.
 */
function withIdentity(
  headers: readonly string[],
  authorization: string | undefined,
  identity: readonly string[],
): string[] {
  for (let at = 0; at < headers.length; at += 2)
    if (/^(?:impersonate-|authorization$)/i.test(headers[at] ?? ''))
      throw new Error(`a forwarded request must not have the header ${headers[at]}`);
  if (identity[0] !== 'impersonate-user') throw new Error('a forwarded request must impersonate a user');
  return [...headers, ...(authorization === undefined ? [] : ['Authorization', authorization]), ...identity];
}

/** Returns the headers of an upgrade request. Throws like `assertOneIdentity`. */
function withOneIdentity(headers: string[]): string[] {
  assertOneIdentity(headers);
  return headers;
}

/** Replaces the trace context of the caller. */
function withTrace(headers: readonly string[], trace: TraceHeaders): string[] {
  const all: string[] = [];
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at] ?? '';
    if (!traceHeaders.has(name.toLowerCase())) all.push(name, headers[at + 1] ?? '');
  }
  return [...all, ...Object.entries(trace).flat()];
}

/** Ends a span when the head of the response arrives. */
class TracedHandler implements ResponseHandler {
  readonly #handler: ResponseHandler;
  readonly #span: ClientSpan;

  constructor(handler: ResponseHandler, span: ClientSpan) {
    this.#handler = handler;
    this.#span = span;
  }

  onHead(status: number, message: string, headers: string[]): void {
    this.#span.end(status);
    this.#handler.onHead(status, message, headers);
  }

  onData(chunk: Buffer): void {
    this.#handler.onData(chunk);
  }

  onEnd(trailers: string[]): void {
    this.#handler.onEnd(trailers);
  }

  onError(error: Error, isSent: boolean): void {
    this.#span.end(undefined, error);
    this.#handler.onError(error, isSent);
  }
}

function responseOf(client: ClientRequest, signal: AbortSignal): Promise<UpgradeResponse> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => client.destroy(timedOut()), handshakeTimeout);
    const giveUp = (): void => void client.destroy(signal.reason as Error);
    signal.addEventListener('abort', giveUp);
    const settle = (upgrade: UpgradeResponse): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', giveUp);
      resolve(upgrade);
    };
    client.once('upgrade', (response, connection, first) => settle({ response, granted: { connection, first } }));
    client.once('response', (response) => settle({ response }));
    client.on('error', (error) => {
      clearTimeout(timer);
      reject(failureOf(error, client, client.writableFinished));
    });
  });
}

const noResponseInTime = 'kube-apiserver did not respond in time';
const timedOut = (): StatusError => timeout(noResponseInTime);

/** Returns true if a retry could apply the request twice. */
export const isChange = (request: Pick<ForwardedRequest, 'method'>): boolean => !isSafe(request);

/** Returns an error without Retry-After, because client-go would then repeat the change. */
export const unknownOutcome = (problem: string, cause?: unknown): StatusError =>
  badGateway(`${problem}; the outcome of the change is unknown`, { cause });

/** Returns the error for a response that is missing or incomplete. */
export function failureOf(error: Error, request: Pick<ForwardedRequest, 'method'>, isSent: boolean): StatusError {
  if (error instanceof StatusError) return error;
  const isOutcomeUnknown = isSent && isChange(request);
  if (error instanceof ResponseTimeout) return isOutcomeUnknown ? unknownOutcome(noResponseInTime) : timedOut();
  return isOutcomeUnknown
    ? unknownOutcome('kube-apiserver did not respond', error)
    : unreachable(error).toStatusError();
}
