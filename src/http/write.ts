/** Writing answers whose bytes are at hand: nothing is decoded or encoded here. */
import type { Request, Response } from 'express';
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
  else {
    await writePieces(res, body);
    res.end();
  }
}

/** A JSON document, with the newline that Kubernetes' own end with. */
export const writeJson = (req: Request, res: Response, value: unknown, answer: Partial<Answer> = {}): Promise<void> =>
  write(req, res, { contentType: 'application/json', ...answer, body: [Buffer.from(`${JSON.stringify(value)}\n`)] });

/** Writes the pieces, waiting for a slow reader. Returns early when the client has gone away. */
async function writePieces(
  res: NodeJS.WritableStream & { destroyed?: boolean },
  pieces: readonly Buffer[],
): Promise<void> {
  let batch: Buffer[] = [];
  let size = 0;
  for (const [index, piece] of pieces.entries()) {
    batch.push(piece);
    size += piece.length;
    if (size < batchSize && index < pieces.length - 1) continue;
    if (res.destroyed) return;
    if (!res.write(Buffer.concat(batch, size))) await drained(res);
    batch = [];
    size = 0;
  }
}

/** Resolves when the stream takes more, or will never again. */
export function drained(stream: NodeJS.WritableStream & { destroyed?: boolean }): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed) return resolve();
    const done = (): void => {
      stream.off('drain', done);
      stream.off('close', done);
      stream.off('error', done);
      resolve();
    };
    stream.on('drain', done);
    stream.on('close', done);
    stream.on('error', done);
  });
}

/** Compressed while it is written, off the event loop; level 1 as kube-apiserver does. */
async function writeGzip(res: Response, body: readonly Buffer[]): Promise<void> {
  const gzip = createGzip({ level: 1 });
  gzip.on('data', (chunk: Buffer) => {
    if (!res.destroyed && !res.write(chunk)) {
      gzip.pause();
      void drained(res).then(() => gzip.resume());
    }
  });
  const ended = new Promise<void>((resolve) => {
    gzip.once('end', resolve);
    gzip.once('close', resolve);
  });
  res.once('close', () => gzip.destroy());
  await writePieces(gzip, body);
  gzip.end();
  await ended;
  res.end();
}
