/** Writes responses from bytes that are already encoded. Large bodies are compressed if the client accepts gzip. */
import type { Request, Response } from 'express';
import { createGzip } from 'node:zlib';
import { BodyWriter } from './body-writer.ts';
import { acceptsGzip } from '../request/negotiate.ts';

export interface WholeResponse {
  /** Status; 200 by default. */
  readonly status?: number;
  readonly contentType: string;
  /** Pieces of the body. `write` does not modify them, and concatenates only small ones. */
  readonly body: readonly Buffer[];
  /** Additional headers. They can replace the headers that filters/browser.ts sets. */
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * A body whose parts are produced one at a time. Each part is produced after the previous part was handed to the
 * network. The body is never in memory as a whole.
 */
export interface Streamed {
  /** Bytes; undefined if the length is known only at the end. */
  readonly length: number | undefined;
  readonly parts: Iterable<readonly Buffer[]> | AsyncIterable<readonly Buffer[]>;
}

/** A list whose plain or compressed body is produced on demand. */
export interface ListResponse {
  readonly contentType: string;
  /** The items with their lengths in bytes. */
  readonly items: readonly { readonly length: number }[];
  readonly plain: () => Promise<Streamed>;
  /** Returns the body as a gzip member, if the list was compressed in advance. */
  readonly gzipped?: (() => Promise<readonly Buffer[]>) | undefined;
}

/** Minimum bytes of a body that is compressed, as in responsewriters of k8s.io/apiserver. */
const gzipFrom = 128 * 1024;
/**
 * Bytes that are written to the socket at a time. The next batch is produced only after the socket has accepted the
 * previous batch.
 */
const batchSize = 512 * 1024;
/**
 * Pieces with fewer bytes are copied and joined, because a separate write would cost more. The limit is low, because
 * copies are outside V8's heap, and many of them make V8 mark the whole heap repeatedly.
 */
const smallPiece = 1024;
/** Buffer allocates from its pool below this number of bytes. */
const pooled = Buffer.poolSize / 2;

/**
 * Resolves when everything is handed to the socket, or the client has disconnected. The response to HEAD contains only
 * the headers.
 */
export async function write(req: Request, res: Response, response: WholeResponse): Promise<void> {
  if (isWritten(res)) return;
  const { body } = response;
  const length = lengthOf(body);
  const isLarge = length > gzipFrom;
  const gzip = isLarge && acceptsGzip(req.headers['accept-encoding']);
  begin(res, response, isLarge);
  if (!gzip) return finish(req, res, body, length);
  res.setHeader('Content-Encoding', 'gzip');
  if (req.method === 'HEAD') res.end();
  else await writeGzip(res, [body]);
}

/** Writes a list, which may be too large to hold in memory. */
export async function writeList(req: Request, res: Response, response: ListResponse): Promise<void> {
  const isLarge = areLarge(response.items);
  const gzip = isLarge && acceptsGzip(req.headers['accept-encoding']);
  const gzipped = gzip ? await response.gzipped?.() : undefined;
  const plain = gzipped === undefined ? await response.plain() : undefined;
  if (isWritten(res)) return;
  begin(res, response, isLarge);
  if (gzip) res.setHeader('Content-Encoding', 'gzip');
  if (gzipped !== undefined) return finish(req, res, gzipped, lengthOf(gzipped));
  const { length, parts } = plain as Streamed;
  if (length !== undefined && !gzip) res.setHeader('Content-Length', length);
  if (req.method === 'HEAD') res.end();
  else await (gzip ? writeGzip(res, parts) : writeParts(res, parts));
}

/** Returns true if no response can be written, for example because the deadline has already written a response. */
const isWritten = (res: Response): boolean => res.headersSent || res.writableEnded || res.destroyed;

/** Sets the headers. `isLarge` is true if the body is large enough to compress. */
function begin(
  res: Response,
  { status = 200, contentType, headers = {} }: Omit<WholeResponse, 'body'>,
  isLarge: boolean,
): void {
  res.statusCode = status;
  res.setHeader('Content-Type', contentType);
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

/**
 * Returns true if the items are large enough to compress. Stops as soon as the result is known, because it is slow to
 * visit thousands of objects that are scattered in memory.
 */
function areLarge(items: ListResponse['items']): boolean {
  let size = 0;
  return items.some(({ length }) => (size += length) > gzipFrom);
}

/** Returns the total number of bytes in the pieces. */
export const lengthOf = (pieces: readonly Buffer[]): number => pieces.reduce((sum, piece) => sum + piece.length, 0);

/** Writes a JSON document that ends with a newline, as in Kubernetes. */
export const writeJson = (
  req: Request,
  res: Response,
  value: unknown,
  { pretty = false, ...response }: Partial<WholeResponse> & { readonly pretty?: boolean } = {},
): Promise<void> => {
  const text = JSON.stringify(value, undefined, pretty ? 2 : undefined);
  return write(req, res, { contentType: 'application/json', ...response, body: [Buffer.from(`${text}\n`)] });
};

/**
 * Ends a response with this body. Sets Content-Length, because Node would set this header in the response to GET but
 * not to HEAD.
 */
export function endWith(res: Response, body: string): void {
  const bytes = Buffer.from(body);
  res.setHeader('Content-Length', bytes.length);
  // Node omits the body of a response to HEAD.
  res.end(bytes);
}

/** Writes the Status that Kubernetes returns if there is no object to return. */
export const writeDone = (req: Request, res: Response): Promise<void> =>
  writeJson(req, res, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' });

/**
 * Calls `send` with batches of pieces, in which small pieces are joined. `send` resolves when it no longer needs the
 * batch, and resolves to false if it needs no further batches.
 */
async function inBatches(
  parts: Streamed['parts'],
  send: (batch: readonly Buffer[], isLast: boolean) => Promise<boolean>,
): Promise<void> {
  let batch: Buffer[] = [];
  let size = 0;
  let smallPieces: Buffer[] = [];
  let smallSize = 0;
  const join = (): void => {
    if (smallPieces.length > 0)
      batch.push(smallPieces.length === 1 ? (smallPieces[0] as Buffer) : Buffer.concat(smallPieces, smallSize));
    smallPieces = [];
    smallSize = 0;
  };
  for await (const part of parts)
    for (const piece of part) {
      if (piece.length < smallPiece) {
        smallPieces.push(piece);
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

/** Compresses the parts in a thread while they are written, with level 1 as kube-apiserver does. */
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
