/**
 * A document that is the same for all callers, and therefore encoded and compressed only once. A response uses no
 * memory except for the piece that is being sent, so a slow client needs no slot.
 */
import type { Request, Response } from 'express';
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { acceptsGzip, isKnown } from '../request/negotiate.ts';
import { anyObject, described, named } from '../schema.ts';
import { BodyWriter } from './body-writer.ts';
import { lengthOf } from './write.ts';
import type { RequestContext } from '../route.ts';

export const documentSchema = named('Document', described('Swagger or OpenAPI document', anyObject));

interface Kind {
  readonly contentType: string;
  /** Additional headers. They can replace the headers that filters/browser.ts sets. */
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Bytes that are written to the socket at a time. TLS encrypts each write into a copy, so larger pieces would take more
 * memory for each slow client.
 */
const pieceSize = 16 * 1024;

export class PreparedDocument {
  readonly #body: readonly Buffer[];
  readonly #contentType: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #hash: string;
  #gzipped: Promise<readonly Buffer[]> | undefined;

  /** `body` is a list of pieces, which are not joined. The default content type is JSON. */
  constructor(body: readonly Buffer[], { contentType, headers = {} }: Kind = { contentType: 'application/json' }) {
    this.#body = body;
    this.#contentType = contentType;
    this.#headers = headers;
    const hash = createHash('sha256');
    for (const piece of body) hash.update(piece);
    this.#hash = hash.digest('base64url');
  }

  /** Writes 200, or 304 if the client has the current version. */
  async write(req: Request, res: Response, context: Pick<RequestContext, 'freeSlots'>): Promise<void> {
    const gzip = acceptsGzip(req.headers['accept-encoding']);
    // RFC 9110 section 8.8.3.3: the compressed document is a different representation.
    const etag = `"${this.#hash}${gzip ? '.gzip' : ''}"`;
    const headers = { ETag: etag, Vary: 'Accept-Encoding', ...this.#headers };
    if (isKnown(req.headers['if-none-match'], etag)) {
      res.writeHead(304, headers).end();
      return;
    }
    const body = gzip ? await (this.#gzipped ??= compressed(this.#body)) : this.#body;
    if (res.headersSent || res.destroyed) return;
    res.writeHead(200, {
      ...headers,
      'Content-Type': this.#contentType,
      ...(gzip ? { 'Content-Encoding': 'gzip' } : {}),
      'Content-Length': lengthOf(body),
    });
    if (req.method === 'HEAD') {
      res.end();
      return;
    }
    context.freeSlots();
    await writePieces(res, body);
  }
}

async function writePieces(res: Response, body: readonly Buffer[]): Promise<void> {
  const writer = new BodyWriter(res);
  for (const part of body)
    for (let at = 0; at < part.length && !writer.closed; at += pieceSize)
      await writer.write(part.subarray(at, at + pieceSize));
  writer.end();
}

async function compressed(body: readonly Buffer[]): Promise<readonly Buffer[]> {
  const pieces: Buffer[] = [];
  for await (const piece of Readable.from(body).pipe(createGzip())) pieces.push(piece as Buffer);
  return pieces;
}
