import type { Response } from 'express';

/**
 * Writes the body of a response in parts, at the pace of the client, over HTTP/1.1 and HTTP/2.
 *
 * The response is never corked. From Node 21.0 to 26.8, `res.cork(); res.write(a); res.end(b); res.uncork()` sends the
 * last chunk of a chunked body before the chunk of a and b. This order breaks the response and the next response on the
 * connection. In tests, Node 22.23.3, 24.21.0 and 25.9.0 were affected, and Node 20 and 26.9 were not. Node itself
 * corks the socket until the end of the tick, so that one system call writes all pieces.
 */
export class BodyWriter {
  readonly #res: Response;
  #closed: boolean;
  #wake: (() => void) | undefined;

  constructor(res: Response) {
    this.#res = res;
    this.#closed = res.destroyed || res.writableEnded;
    res.once('close', () => {
      this.#closed = true;
      this.#wake?.();
    });
  }

  /** True once the response has ended or the client has disconnected: nothing more can be written. */
  get closed(): boolean {
    return this.#closed;
  }

  /**
   * Resolves when the bytes are handed to the socket, so that their memory can be reused, or when the client has
   * disconnected.
   */
  write(...pieces: readonly Buffer[]): Promise<void> {
    return new Promise((resolve) => {
      if (this.#closed) return resolve();
      this.#wake = resolve;
      const written = (error?: Error | null): void => {
        if (error) this.#closed = true;
        resolve();
      };
      for (const piece of pieces.slice(0, -1)) this.#res.write(piece);
      this.#res.write(pieces.at(-1), written);
    });
  }

  /**
   * Writes these pieces and ends the body. Flushes the headers of an empty body, because Node would add a
   * Content-Length to the response to GET but not to HEAD.
   */
  end(...pieces: readonly Buffer[]): void {
    if (this.#closed) return;
    this.#closed = true;
    if (pieces.length === 0) this.#res.flushHeaders();
    for (const piece of pieces) this.#res.write(piece);
    this.#res.end();
  }
}
