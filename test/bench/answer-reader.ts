/**
 * Reads HTTP/1.1 responses with as little work as possible: the generator shares the machine with the server. The library autocannon
 * neither checks each byte of a response nor reads watches, and cannot send to two builds in turn at equal rates.
 */

export interface Answer {
  readonly status: number;
  /** Of the body as sent, without the framing of chunks. */
  readonly bytes: number;
  readonly gzip: boolean;
  /** Only if it was to be kept. */
  readonly body: Buffer | undefined;
}

export class AnswerReader {
  #kept: Buffer[] | undefined;
  /** The begin of a head or line whose end has not come. */
  #pending: Buffer | undefined;
  #inHead = true;
  #chunked = false;
  #lastChunk = false;
  /** Bytes of the body, or of its chunk, still to come. */
  #left = 0;
  #status = 0;
  #bytes = 0;
  #gzip = false;

  begin(keep: boolean): void {
    this.#kept = keep ? [] : undefined;
    this.#inHead = true;
    this.#lastChunk = false;
    this.#left = 0;
    this.#bytes = 0;
  }

  /** The answer once it is complete; `bytes` may be overwritten afterwards. */
  read(received: Buffer): Answer | undefined {
    const bytes = this.#pending === undefined ? received : Buffer.concat([this.#pending, received]);
    this.#pending = undefined;
    for (let at = 0; ;) {
      if (this.#left > 0) {
        const end = Math.min(bytes.length, at + this.#left);
        this.#kept?.push(Buffer.from(bytes.subarray(at, end)));
        this.#bytes += end - at;
        this.#left -= end - at;
        at = end;
        if (this.#left > 0) return undefined;
        if (!this.#chunked) return this.#end(bytes, at);
      }
      const mark = this.#inHead ? '\r\n\r\n' : '\r\n';
      const end = bytes.indexOf(mark, at, 'latin1');
      if (end < 0) {
        this.#pending = Buffer.from(bytes.subarray(at));
        return undefined;
      }
      const text = bytes.toString('latin1', at, end);
      at = end + mark.length;
      if (this.#inHead) {
        this.#readHead(text);
        if (!this.#chunked && this.#left === 0) return this.#end(bytes, at);
      } else if (text === '') {
        // The end of a chunk's data; after the last chunk, of all.
        if (this.#lastChunk) return this.#end(bytes, at);
      } else if (!this.#lastChunk) {
        this.#left = Number.parseInt(text, 16);
        this.#lastChunk = this.#left === 0;
      }
    }
  }

  #readHead(head: string): void {
    this.#inHead = false;
    this.#status = Number(head.slice(9, 12));
    this.#chunked = /\r\ntransfer-encoding: *chunked/i.test(head);
    this.#gzip = /\r\ncontent-encoding: *gzip/i.test(head);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (length === undefined && !this.#chunked) throw new Error(`an answer whose end cannot be known: ${head}`);
    this.#left = this.#chunked ? 0 : Number(length);
  }

  #end(bytes: Buffer, at: number): Answer {
    if (at < bytes.length) throw new Error('more came than the answer');
    const body = this.#kept === undefined ? undefined : Buffer.concat(this.#kept);
    return { status: this.#status, bytes: this.#bytes, gzip: this.#gzip, body };
  }
}
