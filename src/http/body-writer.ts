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
      const written = (error?: Error | null): void => {
        if (error) this.#closed = true;
        resolve();
      };
      this.#together(pieces, (last) => this.#res.write(last, written));
    });
  }

  /** With these at the end. */
  end(...pieces: readonly Buffer[]): void {
    if (this.#closed) return;
    this.#closed = true;
    if (pieces.length === 0) this.#res.end();
    else this.#together(pieces, (last) => this.#res.end(last));
  }

  /** One system call for all; HTTP/2 has its own way. */
  #together(pieces: readonly Buffer[], finish: (last: Buffer) => void): void {
    const res = this.#res;
    const cork = pieces.length > 1 && !isHTTP2(res);
    if (cork) res.cork();
    for (const piece of pieces.slice(0, -1)) res.write(piece);
    finish(pieces.at(-1) as Buffer);
    if (cork) res.uncork();
  }
}
