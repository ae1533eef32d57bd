/**
 * HTTP requests to a log store. Every failure is a StatusError whose message contains neither the address nor the
 * credentials of the store. The cause of the error is only logged.
 */
import { badGateway, serviceUnavailable, StatusError } from '../../../runtime/errors.ts';
import { OutgoingClient, OutgoingError, type OutgoingResponse } from '../../../runtime/outgoing.ts';

export interface StoreEndpoint {
  /** URL, possibly with a path, which is the prefix of all request paths. */
  readonly url: string;
  /** The only CA that is trusted for the store, in PEM. */
  readonly caCertificate?: string | undefined;
  /** Returns the header for each request; undefined for none. Throws while a Secret is missing. */
  readonly authorization: () => string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

interface StoreRequest {
  /** Path with query. */
  readonly path: string;
  /** Body of a POST request. A request without a body uses GET. */
  readonly body?: string;
  /** Media type of the body; JSON by default. */
  readonly type?: string;
  /** Maximum bytes of the response; 32 MiB by default. */
  readonly maxBytes?: number | undefined;
  readonly signal: AbortSignal;
}

const mebibyte = 1024 * 1024;
/** Maximum connections to one store. */
const maxConnections = 32;
/** Maximum logged characters of an error response. */
const maxLogged = 1_000;

/** Error for a response that is too large. A request for fewer records may succeed. */
export class ResponseTooLarge extends StatusError {}

export class StoreClient {
  readonly #name: string;
  readonly #endpoint: StoreEndpoint;
  /** URL without a trailing slash. */
  readonly #base: string;
  readonly #client: OutgoingClient;

  /** `name`: name of the store in the configuration and in errors. */
  constructor(name: string, endpoint: StoreEndpoint) {
    this.#name = name;
    this.#endpoint = endpoint;
    this.#base = new URL(endpoint.url).href.replace(/\/$/, '');
    this.#client = new OutgoingClient({
      ca: endpoint.caCertificate,
      connections: maxConnections,
      peer: 'log-store',
    });
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  /** Returns the body of a response with status 200. `explain` can return the error for any other response. */
  async json(
    request: StoreRequest,
    explain?: (text: string, status: number) => StatusError | undefined,
  ): Promise<unknown> {
    const { status, body } = await this.#send(request);
    const text = body.toString('utf8');
    if (status !== 200) throw explain?.(text, status) ?? this.errorOf(status, text);
    try {
      return JSON.parse(text) as unknown;
    } catch (cause) {
      throw this.invalidResponse(cause);
    }
  }

  /** Returns the error for an invalid response. */
  invalidResponse(cause: unknown): StatusError {
    return badGateway(`the log store "${this.#name}" returned an invalid response`, { cause });
  }

  /** Returns the error for a response that is not 200. */
  errorOf(status: number, text: string): StatusError {
    const cause = new Error(`status ${status}: ${text.slice(0, maxLogged)}`);
    if (status === 401 || status === 403)
      return badGateway(`the log store "${this.#name}" rejected the credentials of this server`, { cause });
    if (status === 429 || status === 503)
      return serviceUnavailable(`the log store "${this.#name}" is not ready`, 5, cause);
    if (status === 408 || status === 504)
      return new StatusError('Timeout', 504, `the log store "${this.#name}" did not respond in time`, { cause });
    return badGateway(`the log store "${this.#name}" returned an error: status ${status}`, { cause });
  }

  async #send({
    path,
    body,
    type = 'application/json',
    maxBytes = 32 * mebibyte,
    signal,
  }: StoreRequest): Promise<OutgoingResponse> {
    const authorization = this.#endpoint.authorization();
    const headers = {
      Accept: 'application/json',
      'User-Agent': 'platform-apiserver',
      ...this.#endpoint.headers,
      ...(authorization === undefined ? {} : { Authorization: authorization }),
      ...(body === undefined ? {} : { 'Content-Type': type }),
    };
    const method = body === undefined ? 'GET' : 'POST';
    try {
      const at = new URL(`${this.#base}${path}`);
      return await this.#client.request(at, { method, headers, body, signal, maxBytes });
    } catch (error) {
      if (error instanceof OutgoingError) throw this.#failure(error, maxBytes);
      throw error;
    }
  }

  #failure(cause: OutgoingError, maxBytes: number): StatusError {
    const store = `the log store "${this.#name}"`;
    if (cause.failure === 'unreachable') return serviceUnavailable(`${store} cannot be reached`, 5, cause);
    if (cause.failure === 'malformed') return this.invalidResponse(cause);
    if (cause.failure === 'interrupted')
      return badGateway(`${store} closed the connection before the end of its response`, { cause });
    return new ResponseTooLarge('BadGateway', 502, `${store} returned more than ${maxBytes / mebibyte} MiB`);
  }
}
