import type { Response } from 'express';

/** The body of an answer that is written bit by bit, at the pace of its reader; for HTTP/1.1 and HTTP/2 alike. */
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

  /** The answer has ended or the client has gone away: nothing can be written any more. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Resolves when the bytes are with the socket, so that their memory can be used again, or when the client has gone away. */
  write(bytes: Buffer): Promise<void> {
    return new Promise((resolve) => {
      if (this.#closed) return resolve();
      this.#wake = resolve;
      this.#res.write(bytes, (error) => {
        if (error) this.#closed = true;
        resolve();
      });
    });
  }

  end(): void {
    if (!this.#closed) this.#res.end();
    this.#closed = true;
  }
}
