import type { Response } from 'express';
import { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { cutIfUnread, cutOff, http2StreamOf } from './cut-off.ts';

/** Framing of the body on the connection: none, or the chunked coding of RFC 9112 section 7.1. */
export type Framing = 'plain' | 'chunked';

const lineEnd = Buffer.from('\r\n');

/**
 * Number of bytes that can wait for the client before the body counts as full. The part that is written last may exceed
 * this limit.
 */
const maxWaiting = 16 * 1024;

/** Returns the pieces as one part of a body with this framing. */
export function framed(framing: Framing, pieces: readonly Buffer[]): Buffer {
  let length = 0;
  for (const piece of pieces) length += piece.length;
  return framing === 'plain'
    ? Buffer.concat(pieces, length)
    : Buffer.concat([Buffer.from(`${length.toString(16)}\r\n`), ...pieces, lineEnd]);
}

/**
 * The body of a response that is written as events happen. Thousands of responses may share a part, which is framed
 * only once. Over HTTP/1.1 a part is written directly to the socket, because `res.write` would frame it for each
 * response and write it in three pieces. The headers must have been flushed.
 */
export class StreamedBody {
  readonly framing: Framing;
  readonly #res: Response;
  readonly #last: Buffer | undefined;
  readonly #out: Writable;
  #isFull = false;
  #wake: (() => void) | undefined;
  readonly #flushed = (): void => {
    this.#isFull = false;
    this.#wake?.();
    this.#wake = undefined;
  };

  /** `last` is written when the body ends. */
  constructor(res: Response, last?: Buffer) {
    this.#res = res;
    this.#last = last;
    const stream = http2StreamOf(res);
    // A pipelined response that waits for the previous response has no socket yet.
    const socket = res instanceof ServerResponse ? res.socket : null;
    this.#out = stream ?? socket ?? res;
    this.framing = socket !== null && res.chunkedEncoding ? 'chunked' : 'plain';
    res.once('close', this.#flushed);
  }

  /** True if the client has too much unread data. Call `drained` before writing more. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Writes a part that `framed` returned. The caller must not modify the part afterwards. */
  write(part: Buffer): void {
    if (!this.#isOpen) return;
    const out = this.#out;
    if (out.writableLength + part.length < maxWaiting) return void out.write(part);
    this.#isFull = true;
    out.write(part, this.#flushed);
  }

  /** Resolves when the body is no longer full or the client has disconnected. */
  drained(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isFull && this.#isOpen) this.#wake = resolve;
      else resolve();
    });
  }

  /** Ends the body, and cuts the response later if the client does not read the rest. */
  end(): void {
    const res = this.#res;
    if (!this.#isOpen) return;
    const isLate = this.#out.writableLength > 0;
    if (this.#last !== undefined) this.#out.write(this.#last);
    res.end();
    if (isLate) cutIfUnread(res);
  }

  get #isOpen(): boolean {
    return !this.#res.destroyed && !this.#res.writableEnded;
  }

  /** Ends the response in a way that marks it as incomplete. */
  cut(): void {
    cutOff(this.#res);
  }
}
