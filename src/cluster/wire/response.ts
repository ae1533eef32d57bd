/** Sends requests and returns the response with its body as a buffer or as a stream. */
import { Readable } from 'node:stream';
import type { ResponseFlow, ResponseHandler, SentRequest } from './connection.ts';
import type { Connections } from './connections.ts';

/** Headers by lower-case name. A repeated header has a list of values. */
export type ResponseHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface UpstreamResponse<Body> {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: Body;
}

export type UpstreamRequest = Omit<SentRequest, 'handler'>;

/** Returns the complete response. Rejects with the reason of the signal or with the error of the connection. */
export function whole(
  connections: Connections,
  request: UpstreamRequest,
  signal?: AbortSignal,
): Promise<UpstreamResponse<Buffer>> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let status = 0;
    let headers: ResponseHeaders = {};
    const end = (): void => signal?.removeEventListener('abort', onAbort);
    const handler: ResponseHandler = {
      onHead(code, _, raw) {
        status = code;
        headers = headersOf(raw);
      },
      onData: (chunk) => void chunks.push(chunk),
      onEnd() {
        end();
        const [only] = chunks;
        resolve({ status, headers, body: chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks) });
      },
      onError(error) {
        end();
        reject(error);
      },
    };
    signal?.throwIfAborted();
    // The body is read at once, so only the server can be slow.
    const flow = connections.send({ ...request, silence: request.timeout, handler });
    function onAbort(): void {
      flow.abort();
      reject(signal?.reason as Error);
    }
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/**
 * Returns the response once its head has arrived. The signal also aborts the body. Callers must read the body to its
 * end or destroy it.
 */
export function streamed(
  connections: Connections,
  request: UpstreamRequest,
  signal?: AbortSignal,
): Promise<UpstreamResponse<Readable>> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const end = (): void => signal?.removeEventListener('abort', onAbort);
    const body = new Body(end);
    let hasHead = false;
    const fail = (error: Error): void => {
      if (hasHead) body.destroy(error);
      else {
        end();
        reject(error);
      }
    };
    const flow = connections.send({
      ...request,
      handler: {
        onHead(status, _, raw) {
          hasHead = true;
          resolve({ status, headers: headersOf(raw), body });
        },
        onData: (chunk) => body.append(chunk),
        onEnd: () => body.finish(),
        onError: fail,
      },
    });
    body.flow = flow;
    function onAbort(): void {
      flow.abort();
      fail(signal?.reason as Error);
    }
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/**
 * Response body. kube-apiserver flushes every 2 to 4 KB, and each push costs more than the copy of its data, so all data
 * of one event-loop turn is pushed at once.
 */
class Body extends Readable {
  flow: ResponseFlow | undefined;
  readonly #end: () => void;
  /** Data received in this turn. */
  #pieces: Buffer[] = [];
  readonly #pushPieces = (): void => {
    if (this.#pieces.length === 0 || this.destroyed) return;
    const [only] = this.#pieces;
    const all = this.#pieces.length === 1 ? only : Buffer.concat(this.#pieces);
    this.#pieces = [];
    if (!this.push(all)) this.flow?.pause();
  };

  constructor(end: () => void) {
    super();
    this.#end = end;
    // Prevents an uncaught exception while the stream has no reader. A later reader still gets the error.
    this.on('error', () => undefined);
  }

  append(chunk: Buffer): void {
    this.#pieces.push(chunk);
    if (this.#pieces.length === 1) setImmediate(this.#pushPieces);
  }

  finish(): void {
    this.#pushPieces();
    this.push(null);
  }

  override _read(): void {
    this.flow?.resume();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#end();
    this.flow?.abort();
    done(error);
  }
}

function headersOf(raw: readonly string[]): ResponseHeaders {
  const headers: Record<string, string | string[]> = {};
  for (let at = 0; at < raw.length; at += 2) {
    const name = (raw[at] as string).toLowerCase();
    const value = raw[at + 1] as string;
    const before = headers[name];
    headers[name] = before === undefined ? value : [before, value].flat();
  }
  return headers;
}
