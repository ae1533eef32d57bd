import type { Response } from 'express';
import { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { cutIfUnread, cutOff, http2StreamOf } from './cut-off.ts';

/** How a body is laid out where it is handed on: as it is, or in the chunks of RFC 9112 section 7.1. */
export type Framing = 'plain' | 'chunked';

const lineEnd = Buffer.from('\r\n');

/** Bytes that may wait for a reader, and one more part. */
const most = 16 * 1024;

/** The pieces as one part of a body, laid out so. */
export function framed(framing: Framing, pieces: readonly Buffer[]): Buffer {
  let length = 0;
  for (const piece of pieces) length += piece.length;
  return framing === 'plain'
    ? Buffer.concat(pieces, length)
    : Buffer.concat([Buffer.from(`${length.toString(16)}\r\n`), ...pieces, lineEnd]);
}

/**
 * The body of an answer that is written as things happen, in parts that it may share with thousands of other answers: a part is
 * framed once. Over HTTP/1.1 it goes to the socket past `res.write`, which would frame it anew for each and write it in three pieces.
 * The head must have been flushed.
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

  /** `last`: what is written before the end. */
  constructor(res: Response, last?: Buffer) {
    this.#res = res;
    this.#last = last;
    const stream = http2StreamOf(res);
    // An answer that waits for the one before it on its connection has no socket yet.
    const socket = res instanceof ServerResponse ? res.socket : null;
    this.#out = stream ?? socket ?? res;
    this.framing = socket !== null && res.chunkedEncoding ? 'chunked' : 'plain';
    res.once('close', this.#flushed);
  }

  /** So much waits for the reader that it had better read first. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** A part that is `framed`; nobody may alter it any more. */
  write(part: Buffer): void {
    if (!this.#isOpen) return;
    const out = this.#out;
    if (out.writableLength + part.length < most) return void out.write(part);
    this.#isFull = true;
    out.write(part, this.#flushed);
  }

  /** Resolves when a full one has handed on to the network what waited, or its reader has gone away. */
  drained(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isFull && this.#isOpen) this.#wake = resolve;
      else resolve();
    });
  }

  /** A reader that does not read never sees the end, nor what is before it. */
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

  /** Ends the response as incomplete. */
  cut(): void {
    cutOff(this.#res);
  }
}
