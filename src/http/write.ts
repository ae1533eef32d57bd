/** Writing answers whose bytes are at hand: nothing is decoded or encoded here. */
import type { Request, Response } from 'express';
import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { acceptsGzip } from './negotiate.ts';

export interface Answer {
  /** 200 unless stated. */
  readonly status?: number;
  readonly contentType: string;
  /** The body in pieces. They are not altered and not joined as a whole. */
  readonly body: readonly Buffer[];
  /** In the place of, or beside, `Cache-Control: no-cache, private`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** k8s.io/apiserver responsewriters: smaller bodies are not worth the work. */
const gzipFrom = 128 * 1024;
/** So many bytes go to the socket at once; a slower reader makes the rest wait where it is. */
const batchSize = 512 * 1024;

/** Resolves when everything is handed to the socket, or the client has gone away. HEAD gets the headers alone. */
export async function write(req: Request, res: Response, answer: Answer): Promise<void> {
  // The deadline may have answered already.
  if (res.headersSent || res.writableEnded || res.destroyed) return;
  const { body } = answer;
  let length = 0;
  for (const piece of body) length += piece.length;
  const gzip = length > gzipFrom && acceptsGzip(req.headers['accept-encoding']);
  res.statusCode = answer.status ?? 200;
  res.setHeader('Content-Type', answer.contentType);
  res.setHeader('Cache-Control', 'no-cache, private');
  for (const [name, value] of Object.entries(answer.headers ?? {})) res.setHeader(name, value);
  if (length > gzipFrom) res.appendHeader('Vary', 'Accept-Encoding');
  if (gzip) res.setHeader('Content-Encoding', 'gzip');
  else res.setHeader('Content-Length', length);
  if (req.method === 'HEAD') res.end();
  else if (gzip) await writeGzip(res, body);
  else if (length <= batchSize) res.end(body.length === 1 ? body[0] : Buffer.concat(body, length));
  else await writePieces(res, body);
}

/** A JSON document, with the newline that Kubernetes' own end with. */
export const writeJson = (req: Request, res: Response, value: unknown, answer: Partial<Answer> = {}): Promise<void> =>
  write(req, res, { contentType: 'application/json', ...answer, body: [Buffer.from(`${JSON.stringify(value)}\n`)] });

/** The body of an answer that is written bit by bit, at the pace of its reader; for HTTP/1.1 and HTTP/2 alike. */
export class BodyWriter {
  readonly #res: Response;
  #closed: boolean;
  #waiting: (() => void) | undefined;

  constructor(res: Response) {
    this.#res = res;
    this.#closed = res.destroyed || res.writableEnded;
    const wake = (): void => {
      this.#waiting?.();
      this.#waiting = undefined;
    };
    res.on('drain', wake);
    res.once('close', () => {
      this.#closed = true;
      wake();
    });
  }

  /** The answer has ended or the client has gone away: nothing can be written any more. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Resolves when the reader is ready for more; undefined if it is already. */
  write(bytes: Buffer): Promise<void> | undefined {
    if (this.#closed || this.#res.write(bytes)) return undefined;
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  end(): void {
    if (!this.#closed) this.#res.end();
    this.#closed = true;
  }
}

/** The pieces joined to some hundred KB each. */
function* batches(pieces: readonly Buffer[]): Generator<Buffer> {
  let batch: Buffer[] = [];
  let size = 0;
  for (const piece of pieces) {
    batch.push(piece);
    size += piece.length;
    if (size < batchSize) continue;
    yield Buffer.concat(batch, size);
    batch = [];
    size = 0;
  }
  if (size > 0) yield Buffer.concat(batch, size);
}

async function writePieces(res: Response, pieces: readonly Buffer[]): Promise<void> {
  const body = new BodyWriter(res);
  for (const batch of batches(pieces)) {
    if (body.closed) return;
    await body.write(batch);
  }
  body.end();
}

/** Compressed while it is written, off the event loop; level 1 as kube-apiserver does. */
async function writeGzip(res: Response, pieces: readonly Buffer[]): Promise<void> {
  const body = new BodyWriter(res);
  const gzip = Readable.from(batches(pieces)).pipe(createGzip({ level: 1 }));
  for await (const chunk of gzip) {
    if (body.closed) return;
    await body.write(chunk as Buffer);
  }
  body.end();
}
