/** A JSON document that is the same for everybody: its bytes are made once, and so is what they are when they are compressed. */
import type { Request, Response } from 'express';
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { acceptsGzip, isKnown } from './negotiate.ts';

const compress = promisify(gzip);

export class PreparedDocument {
  readonly #body: Buffer;
  readonly #etag: string;
  #gzipped: Promise<Buffer> | undefined;

  constructor(value: object) {
    this.#body = Buffer.from(`${JSON.stringify(value)}\n`);
    this.#etag = `"${createHash('sha256').update(this.#body).digest('base64url')}"`;
  }

  /** 200, or 304 to who has it. */
  async answer(req: Request, res: Response): Promise<void> {
    const headers = { ETag: this.#etag, Vary: 'Accept-Encoding' };
    if (isKnown(req.headers['if-none-match'], this.#etag)) {
      res.writeHead(304, headers).end();
      return;
    }
    const gzipped = acceptsGzip(req.headers['accept-encoding']);
    if (gzipped) this.#gzipped ??= compress(this.#body, { level: 9 });
    const body = gzipped ? ((await this.#gzipped) as Buffer) : this.#body;
    res.writeHead(200, {
      ...headers,
      'Content-Type': 'application/json',
      'Content-Length': body.length,
      ...(gzipped ? { 'Content-Encoding': 'gzip' } : {}),
    });
    res.end(req.method === 'HEAD' ? undefined : body);
  }
}
