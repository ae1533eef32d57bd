import type { Response } from 'express';

const isHTTP2 = (res: Response): boolean => 'stream' in res;

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
  write(...pieces: readonly Buffer[]): Promise<void> {
    return new Promise((resolve) => {
      if (this.#closed) return resolve();
      this.#wake = resolve;
      const res = this.#res;
      const last = pieces.length - 1;
      // One system call for all; HTTP/2 has its own way.
      const together = last > 0 && !isHTTP2(res);
      if (together) res.cork();
      for (const [index, bytes] of pieces.entries())
        res.write(bytes, (error) => {
          if (error) this.#closed = true;
          if (index === last) resolve();
        });
      if (together) res.uncork();
    });
  }

  end(): void {
    if (!this.#closed) this.#res.end();
    this.#closed = true;
  }
}
