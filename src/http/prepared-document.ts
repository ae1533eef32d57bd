/** A document that is the same for everybody: its bytes are made once, and so is what they are when they are compressed. */
import type { Request, Response } from 'express';
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { acceptsGzip, isKnown } from './negotiate.ts';
import { described, named, open } from './schema.ts';
import { write } from './write.ts';

export const documentSchema = named('Document', described('In Swagger or OpenAPI', open({ type: 'object' })));

interface Kind {
  readonly contentType: string;
  /** In the place of, or beside, `Cache-Control: no-cache, private`. */
  readonly headers?: Readonly<Record<string, string>>;
}

export class PreparedDocument {
  readonly #body: readonly Buffer[];
  readonly #contentType: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #hash: string;
  #gzipped: Promise<Buffer> | undefined;

  /** `body`: in pieces, which are not joined. JSON unless stated. */
  constructor(body: readonly Buffer[], { contentType, headers = {} }: Kind = { contentType: 'application/json' }) {
    this.#body = body;
    this.#contentType = contentType;
    this.#headers = headers;
    const hash = createHash('sha256');
    for (const piece of body) hash.update(piece);
    this.#hash = hash.digest('base64url');
  }

  /** 200, or 304 to who has it. */
  async answer(req: Request, res: Response): Promise<void> {
    const gzip = acceptsGzip(req.headers['accept-encoding']);
    // RFC 9110 section 8.8.3.3: compressed it is another representation.
    const etag = `"${this.#hash}${gzip ? '.gzip' : ''}"`;
    const headers = { ETag: etag, Vary: 'Accept-Encoding', ...this.#headers };
    if (isKnown(req.headers['if-none-match'], etag)) {
      res.writeHead(304, headers).end();
      return;
    }
    const contentType = this.#contentType;
    if (!gzip) return write(req, res, { contentType, body: this.#body, headers });
    this.#gzipped ??= compressed(this.#body);
    const bytes = await this.#gzipped;
    if (res.headersSent || res.destroyed) return;
    res.writeHead(200, {
      ...headers,
      'Content-Type': contentType,
      'Content-Encoding': 'gzip',
      'Content-Length': bytes.length,
    });
    res.end(req.method === 'HEAD' ? undefined : bytes);
  }
}

async function compressed(body: readonly Buffer[]): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of Readable.from(body).pipe(createGzip())) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}
