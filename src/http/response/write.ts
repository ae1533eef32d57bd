/** Writing answers whose bytes are at hand: nothing is decoded or encoded here. */
import type { Request, Response } from 'express';
import { createGzip } from 'node:zlib';
import { BodyWriter } from './body-writer.ts';
import { acceptsGzip } from '../request/negotiate.ts';

export interface WholeResponse {
  /** 200 unless stated. */
  readonly status?: number;
  readonly contentType: string;
  /** The body in pieces. They are not altered and not joined as a whole. */
  readonly body: readonly Buffer[];
  /** In the place of, or beside, `Cache-Control: no-cache, private`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A body in parts, each of which is made when those before it are with the network: nobody holds it as a whole. */
export interface Streamed {
  /** In bytes; undefined where that is known only when all is made. */
  readonly length: number | undefined;
  readonly parts: Iterable<readonly Buffer[]> | AsyncIterable<readonly Buffer[]>;
}

/** A list: only what is wanted is made. */
export interface ListAnswer {
  readonly contentType: string;
  /** What it holds; their lengths in bytes. */
  readonly items: readonly { readonly length: number }[];
  readonly plain: () => Promise<Streamed>;
  /** The whole as a gzip member, if that is at hand. */
  readonly gzipped?: (() => Promise<readonly Buffer[]>) | undefined;
}

/** k8s.io/apiserver responsewriters: smaller bodies are not worth the work. */
const gzipFrom = 128 * 1024;
/** So many bytes go to the socket at once; a slower reader makes the rest wait where it is. */
const batchSize = 512 * 1024;
/**
 * Handing on a piece costs more than copying so much. No more than that: what is copied lies outside V8's heap, and much of it a second
 * has V8 mark the whole heap again and again.
 */
const smallPiece = 1024;
/** Buffer's own pool holds what is smaller. */
const pooled = Buffer.poolSize / 2;

/** Resolves when everything is handed to the socket, or the client has gone away. HEAD gets the headers alone. */
export async function write(req: Request, res: Response, answer: WholeResponse): Promise<void> {
  if (isAnswered(res)) return;
  const { body } = answer;
  const length = lengthOf(body);
  const isLarge = length > gzipFrom;
  const gzip = isLarge && acceptsGzip(req.headers['accept-encoding']);
  begin(res, answer, isLarge);
  if (!gzip) return finish(req, res, body, length);
  res.setHeader('Content-Encoding', 'gzip');
  if (req.method === 'HEAD') res.end();
  else await writeGzip(res, [body]);
}

/** The same for a list, which may be larger than there is room for. */
export async function writeList(req: Request, res: Response, answer: ListAnswer): Promise<void> {
  const isLarge = areLarge(answer.items);
  const gzip = isLarge && acceptsGzip(req.headers['accept-encoding']);
  const gzipped = gzip ? await answer.gzipped?.() : undefined;
  const plain = gzipped === undefined ? await answer.plain() : undefined;
  if (isAnswered(res)) return;
  begin(res, answer, isLarge);
  if (gzip) res.setHeader('Content-Encoding', 'gzip');
  if (gzipped !== undefined) return finish(req, res, gzipped, lengthOf(gzipped));
  const { length, parts } = plain as Streamed;
  if (length !== undefined && !gzip) res.setHeader('Content-Length', length);
  if (req.method === 'HEAD') res.end();
  else await (gzip ? writeGzip(res, parts) : writeParts(res, parts));
}

/** The deadline may have done so. */
const isAnswered = (res: Response): boolean => res.headersSent || res.writableEnded || res.destroyed;

/** `isLarge`: so that it may be compressed. */
function begin(
  res: Response,
  { status = 200, contentType, headers = {} }: Omit<WholeResponse, 'body'>,
  isLarge: boolean,
): void {
  res.statusCode = status;
  res.setHeader('Content-Type', contentType);
  res.setHeader('Cache-Control', 'no-cache, private');
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  if (isLarge) res.appendHeader('Vary', 'Accept-Encoding');
}

async function finish(req: Request, res: Response, body: readonly Buffer[], length: number): Promise<void> {
  res.setHeader('Content-Length', length);
  if (req.method === 'HEAD') res.end();
  else if (body.length === 1) res.end(body[0]);
  else if (length < pooled) res.end(Buffer.concat(body, length));
  else await writeParts(res, [body]);
}

/** Looks at no more of them than it takes: thousands of objects lie far apart in memory. */
function areLarge(items: ListAnswer['items']): boolean {
  let size = 0;
  return items.some(({ length }) => (size += length) > gzipFrom);
}

/** In bytes. */
export const lengthOf = (pieces: readonly Buffer[]): number => pieces.reduce((sum, piece) => sum + piece.length, 0);

/** A JSON document, with the newline that Kubernetes' own end with. */
export const writeJson = (
  req: Request,
  res: Response,
  value: unknown,
  { pretty = false, ...answer }: Partial<WholeResponse> & { readonly pretty?: boolean } = {},
): Promise<void> => {
  const text = JSON.stringify(value, undefined, pretty ? 2 : undefined);
  return write(req, res, { contentType: 'application/json', ...answer, body: [Buffer.from(`${text}\n`)] });
};

/** Ends a response with this body. Node would announce its length in the response to GET alone, not to HEAD. */
export function endWith(res: Response, body: string): void {
  const bytes = Buffer.from(body);
  res.setHeader('Content-Length', bytes.length);
  // Node leaves the body of a response to HEAD out.
  res.end(bytes);
}

/** What Kubernetes answers where there is nothing to show. */
export const writeDone = (req: Request, res: Response): Promise<void> =>
  writeJson(req, res, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' });

/**
 * Hands the parts on in batches of pieces, small ones copied together. `send` is told which is the last, and resolves when it is done with one,
 * false to stop.
 */
async function inBatches(
  parts: Streamed['parts'],
  send: (batch: readonly Buffer[], isLast: boolean) => Promise<boolean>,
): Promise<void> {
  let batch: Buffer[] = [];
  let size = 0;
  let together: Buffer[] = [];
  let smallSize = 0;
  const join = (): void => {
    if (together.length > 0)
      batch.push(together.length === 1 ? (together[0] as Buffer) : Buffer.concat(together, smallSize));
    together = [];
    smallSize = 0;
  };
  for await (const part of parts)
    for (const piece of part) {
      if (piece.length < smallPiece) {
        together.push(piece);
        smallSize += piece.length;
      } else {
        join();
        batch.push(piece);
      }
      size += piece.length;
      if (size < batchSize) continue;
      join();
      if (!(await send(batch, false))) return;
      batch = [];
      size = 0;
    }
  join();
  await send(batch, true);
}

async function writeParts(res: Response, parts: Streamed['parts']): Promise<void> {
  const body = new BodyWriter(res);
  await inBatches(parts, async (batch, isLast) => {
    if (isLast) body.end(...batch);
    else await body.write(...batch);
    return !body.closed;
  });
}

/** Compressed while it is written, off the event loop; level 1 as kube-apiserver does. */
async function writeGzip(res: Response, parts: Streamed['parts']): Promise<void> {
  const body = new BodyWriter(res);
  const gzip = createGzip({ level: 1 });
  const compress = async (): Promise<void> => {
    await inBatches(parts, async (batch) => {
      for (const bytes of batch)
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
