/**
 * Requests to a log store over HTTP: connections are kept, TLS is verified, and what is held of an answer is bounded. Whatever goes
 * wrong is a StatusError that tells callers neither address nor credentials; the cause is for the log.
 */
import http from 'node:http';
import https from 'node:https';
import { badGateway, serviceUnavailable, StatusError } from '../../../runtime/errors.ts';

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

interface Answer {
  readonly status: number;
  readonly body: Buffer;
}

const mebibyte = 1024 * 1024;
/** To one store. */
const mostConnections = 32;
/** Of what a store says of a failure, for the log. */
const mostLogged = 1_000;

/** As whoever writes there learns that the other side has gone. */
const ended: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE']);

/** Whoever asked for many records may ask for fewer. */
export class AnswerTooLarge extends StatusError {}

/** A connection that was kept had ended just as it was used again. */
class Stale extends Error {}

export class StoreClient {
  readonly #name: string;
  readonly #endpoint: StoreEndpoint;
  readonly #base: URL;
  readonly #agent: http.Agent;

  /** `name`: as the configuration has the store, and as errors call it. */
  constructor(name: string, endpoint: StoreEndpoint) {
    this.#name = name;
    this.#endpoint = endpoint;
    this.#base = new URL(endpoint.url);
    const { caCertificate: ca } = endpoint;
    const options = { keepAlive: true, maxSockets: mostConnections };
    this.#agent = this.#isSecure
      ? new https.Agent({ ...options, ...(ca === undefined ? {} : { ca }) })
      : new http.Agent(options);
  }

  get #isSecure(): boolean {
    return this.#base.protocol === 'https:';
  }

  close(): void {
    this.#agent.destroy();
  }

  /** What is not 200 too: the store's own words may say more. */
  async ask(question: Question): Promise<Answer> {
    for (;;)
      try {
        return await this.#send(question);
      } catch (error) {
        // There may be more of those, but not without end.
        if (error instanceof Stale) continue;
        if (question.signal.aborted) throw question.signal.reason;
        throw error;
      }
  }

  /** The body of a 200. `explain` may know better what another answer means. */
  async json(
    question: Question,
    explain?: (text: string, status: number) => StatusError | undefined,
  ): Promise<unknown> {
    const { status, body } = await this.ask(question);
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

  #unreachable(cause: unknown): StatusError {
    return serviceUnavailable(`the log store "${this.#name}" cannot be reached`, 5, cause);
  }

  #send(question: Question): Promise<Answer> {
    const { path, body, type = 'application/json', most = 32 * mebibyte, signal } = question;
    const authorization = this.#endpoint.authorization();
    const { protocol, hostname, port, pathname } = this.#base;
    const headers = {
      Accept: 'application/json',
      'User-Agent': 'platform-apiserver',
      ...this.#endpoint.headers,
      ...(authorization === undefined ? {} : { Authorization: authorization }),
      ...(body === undefined ? {} : { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) }),
    };
    const target = {
      protocol,
      hostname: hostname.replace(/^\[|\]$/g, ''),
      port,
      path: `${pathname.replace(/\/$/, '')}${path}`,
      method: body === undefined ? 'GET' : 'POST',
      headers,
      agent: this.#agent,
      signal,
    };
    const { request } = this.#isSecure ? https : http;
    return new Promise((resolve, reject) => {
      const asked = request(target, (answer) => {
        const chunks: Buffer[] = [];
        let size = 0;
        answer
          .on('data', (chunk: Buffer) => {
            size += chunk.length;
            chunks.push(chunk);
            if (size <= most) return;
            const message = `the log store "${this.#name}" answers more than ${most / mebibyte} MiB`;
            reject(new AnswerTooLarge('BadGateway', 502, message));
            asked.destroy();
          })
          .on('error', (cause) =>
            reject(badGateway(`the log store "${this.#name}" broke off in the middle of its answer`, { cause })),
          )
          .on('end', () => resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(chunks) }));
      }).on('error', (error: NodeJS.ErrnoException) => {
        if (asked.reusedSocket && ended.has(error.code) && !signal.aborted) reject(new Stale());
        else if (error.code?.startsWith('HPE_') === true) reject(this.nonsense(error));
        else reject(this.#unreachable(error));
      });
      asked.end(body);
    });
  }
}
