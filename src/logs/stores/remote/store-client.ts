/**
 * HTTP requests to a log store. Every failure is a StatusError that tells callers neither the address nor the credentials; its cause is for
 * the log.
 */
import { badGateway, serviceUnavailable, StatusError } from '../../../runtime/errors.ts';
import { OutgoingClient, OutgoingError, type OutgoingResponse } from '../../../runtime/outgoing.ts';

export interface StoreEndpoint {
  /** May have a path; requests go below it. */
  readonly url: string;
  /** PEM; the only one that the store is believed by. */
  readonly caCertificate?: string | undefined;
  /** Of the header, asked for each request; undefined for none. Throws while a Secret is missing. */
  readonly authorization: () => string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Question {
  /** With the query. */
  readonly path: string;
  /** Sent by POST; without it the question is a GET. */
  readonly body?: string;
  /** Of the body; JSON unless stated. */
  readonly type?: string;
  /** Bytes of the answer; 32 MiB unless stated. */
  readonly most?: number | undefined;
  readonly signal: AbortSignal;
}

const mebibyte = 1024 * 1024;
/** To one store. */
const mostConnections = 32;
/** Of what a store says of a failure, for the log. */
const mostLogged = 1_000;

/** Whoever asked for many records may ask for fewer. */
export class AnswerTooLarge extends StatusError {}

export class StoreClient {
  readonly #name: string;
  readonly #endpoint: StoreEndpoint;
  /** Without a slash at its end. */
  readonly #base: string;
  readonly #client: OutgoingClient;

  /** `name`: as the configuration has the store, and as errors call it. */
  constructor(name: string, endpoint: StoreEndpoint) {
    this.#name = name;
    this.#endpoint = endpoint;
    this.#base = new URL(endpoint.url).href.replace(/\/$/, '');
    this.#client = new OutgoingClient({ ca: endpoint.caCertificate, connections: mostConnections });
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  /** The body of a 200. `explain` may know better what another answer means. */
  async json(
    question: Question,
    explain?: (text: string, status: number) => StatusError | undefined,
  ): Promise<unknown> {
    const { status, body } = await this.#send(question);
    const text = body.toString('utf8');
    if (status !== 200) throw explain?.(text, status) ?? this.refusal(status, text);
    try {
      return JSON.parse(text) as unknown;
    } catch (cause) {
      throw this.nonsense(cause);
    }
  }

  /** Of an answer that cannot be made sense of. */
  nonsense(cause: unknown): StatusError {
    return badGateway(`the log store "${this.#name}" gives an answer that makes no sense`, { cause });
  }

  refusal(status: number, text: string): StatusError {
    const cause = new Error(`status ${status}: ${text.slice(0, mostLogged)}`);
    if (status === 401 || status === 403)
      return badGateway(`the log store "${this.#name}" does not accept the credentials of this server`, { cause });
    if (status === 429 || status === 503)
      return serviceUnavailable(`the log store "${this.#name}" is not ready to answer`, 5, cause);
    if (status === 408 || status === 504)
      return new StatusError('Timeout', 504, `the log store "${this.#name}" did not answer in time`, { cause });
    return badGateway(`the log store "${this.#name}" answers with an error, status ${status}`, { cause });
  }

  async #send({
    path,
    body,
    type = 'application/json',
    most = 32 * mebibyte,
    signal,
  }: Question): Promise<OutgoingResponse> {
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
      return await this.#client.request(at, { method, headers, body, signal, maxBytes: most });
    } catch (error) {
      if (error instanceof OutgoingError) throw this.#failure(error, most);
      throw error;
    }
  }

  #failure(cause: OutgoingError, most: number): StatusError {
    const store = `the log store "${this.#name}"`;
    if (cause.failure === 'unreachable') return serviceUnavailable(`${store} cannot be reached`, 5, cause);
    if (cause.failure === 'malformed') return this.nonsense(cause);
    if (cause.failure === 'interrupted') return badGateway(`${store} broke off in the middle of its answer`, { cause });
    return new AnswerTooLarge('BadGateway', 502, `${store} answers more than ${most / mebibyte} MiB`);
  }
}
