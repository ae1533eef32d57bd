/** An answer as those read it who ask for themselves: as a whole, or its body as a stream. */
import { Readable } from 'node:stream';
import type { ResponseFlow, ResponseHandler, Sent } from './connection.ts';
import type { Connections } from './connections.ts';

/** By lower-case name; a list where it came more than once. */
export type ResponseHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface UpstreamResponse<Body> {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: Body;
}

export type UpstreamRequest = Omit<Sent, 'handler'>;

/** Rejects with the reason of the signal, or with what broke the connection. */
export function whole(
  connections: Connections,
  question: UpstreamRequest,
  signal?: AbortSignal,
): Promise<UpstreamResponse<Buffer>> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let status = 0;
    let headers: ResponseHeaders = {};
    const end = (): void => signal?.removeEventListener('abort', giveUp);
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
    // Nobody else could keep it waiting.
    const flow = connections.send({ ...question, silence: question.timeout, handler });
    function giveUp(): void {
      flow.abort();
      reject(signal?.reason as Error);
    }
    signal?.addEventListener('abort', giveUp, { once: true });
  });
}

/** The same, as soon as its head is there; the signal ends its body too. Who does not read it to its end destroys it. */
export function streamed(
  connections: Connections,
  question: UpstreamRequest,
  signal?: AbortSignal,
): Promise<UpstreamResponse<Readable>> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const end = (): void => signal?.removeEventListener('abort', giveUp);
    const body = new Body(end);
    let hasBegun = false;
    const fail = (error: Error): void => {
      if (hasBegun) body.destroy(error);
      else {
        end();
        reject(error);
      }
    };
    const flow = connections.send({
      ...question,
      handler: {
        onHead(status, _, raw) {
          hasBegun = true;
          resolve({ status, headers: headersOf(raw), body });
        },
        onData: (chunk) => body.append(chunk),
        onEnd: () => void body.push(null),
        onError: fail,
      },
    });
    body.flow = flow;
    function giveUp(): void {
      flow.abort();
      fail(signal?.reason as Error);
    }
    signal?.addEventListener('abort', giveUp, { once: true });
  });
}

class Body extends Readable {
  flow: ResponseFlow | undefined;
  readonly #end: () => void;

  constructor(end: () => void) {
    super();
    this.#end = end;
    // Who reads hears of it, also later; until somebody does it is nobody's fault.
    this.on('error', () => undefined);
  }

  append(chunk: Buffer): void {
    if (!this.push(chunk)) this.flow?.pause();
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
