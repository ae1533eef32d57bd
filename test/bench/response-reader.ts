/**
 * Reads HTTP/1.1 responses with as little work as possible, because the load generator shares the machine with the
 * server. The library autocannon neither checks each byte of a response nor reads watches, and cannot alternate between
 * two builds at equal rates.
 */

export interface ParsedResponse {
  readonly status: number;
  /** Size of the body as sent, without chunk framing. */
  readonly bytes: number;
  readonly gzip: boolean;
  /** The body, if it was requested. */
  readonly body: Buffer | undefined;
}

export class ResponseReader {
  #kept: Buffer[] | undefined;
  /** Start of an incomplete head or line. */
  #pending: Buffer | undefined;
  #inHead = true;
  #chunked = false;
  #lastChunk = false;
  /** Remaining bytes of the body or its current chunk. */
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

  /** Returns the response once it is complete; The caller can overwrite `received` afterwards. */
  read(received: Buffer): ParsedResponse | undefined {
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
        // The line ends the data of a chunk or, after the last chunk, the response.
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
    if (length === undefined && !this.#chunked) throw new Error(`a response without a length: ${head}`);
    this.#left = this.#chunked ? 0 : Number(length);
  }

  #end(bytes: Buffer, at: number): ParsedResponse {
    if (at < bytes.length) throw new Error('data follows the response');
    const body = this.#kept === undefined ? undefined : Buffer.concat(this.#kept);
    return { status: this.#status, bytes: this.#bytes, gzip: this.#gzip, body };
  }
}
