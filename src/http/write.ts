/** Writing answers whose bytes are at hand: nothing is decoded or encoded here. */
import type { Request, Response } from 'express';
import { createGzip } from 'node:zlib';
import { BodyWriter } from './body-writer.ts';
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
  else if (gzip) await writeGzip(res, body, length);
  else if (length <= batchSize) res.end(body.length === 1 ? body[0] : Buffer.concat(body, length));
  else await writePieces(res, body, length);
}

/** A JSON document, with the newline that Kubernetes' own end with. */
export const writeJson = (req: Request, res: Response, value: unknown, answer: Partial<Answer> = {}): Promise<void> =>
  write(req, res, { contentType: 'application/json', ...answer, body: [Buffer.from(`${JSON.stringify(value)}\n`)] });

/** Hands the pieces on in batches that share one piece of memory. `send` resolves when it is done with it, false to stop. */
async function inBatches(
  pieces: readonly Buffer[],
  length: number,
  send: (bytes: Buffer) => Promise<boolean>,
): Promise<void> {
  const memory = Buffer.allocUnsafeSlow(Math.min(length, batchSize));
  let used = 0;
  for (const piece of pieces)
    for (let at = 0; at < piece.length;) {
      const taken = piece.copy(memory, used, at);
      at += taken;
      used += taken;
      if (used < memory.length) continue;
      if (!(await send(memory))) return;
      used = 0;
    }
  if (used > 0) await send(memory.subarray(0, used));
}

async function writePieces(res: Response, pieces: readonly Buffer[], length: number): Promise<void> {
  const body = new BodyWriter(res);
  await inBatches(pieces, length, async (bytes) => {
    await body.write(bytes);
    return !body.closed;
  });
  body.end();
}

/** Compressed while it is written, off the event loop; level 1 as kube-apiserver does. */
async function writeGzip(res: Response, pieces: readonly Buffer[], length: number): Promise<void> {
  const body = new BodyWriter(res);
  const gzip = createGzip({ level: 1 });
  const compress = async (): Promise<void> => {
    await inBatches(pieces, length, async (bytes) => {
      await new Promise<void>((resolve) => {
        gzip.once('close', resolve);
        gzip.write(bytes, () => {
          gzip.off('close', resolve);
          resolve();
        });
      });
      return !gzip.destroyed;
    });
    gzip.end();
  };
  await Promise.all([
    compress(),
    (async () => {
      for await (const chunk of gzip) {
        await body.write(chunk as Buffer);
        if (body.closed) return;
      }
    })(),
  ]);
  body.end();
}
