/** Parses HTTP/1.1 responses one after the other, from chunks of any size. Throws for every deviation from RFC 9112. */

/** Receives the parts of a response. Headers are alternating names and values as received, one character per byte. */
export interface ResponseEvents {
  onHead(status: number, message: string, headers: string[]): void;
  onData(chunk: Buffer): void;
  onEnd(trailers: string[]): void;
}

const max = { head: 256 * 1024, sizeLine: 4 * 1024 };

const crlf = '\r\n';
const statusLine = /^HTTP\/1\.([01]) ([1-9][0-9]{2})(?: ([^\r\n\0]*))?$/;
/** Matches a token (RFC 9110 section 5.6.2). */
export const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Characters that are not allowed in header values (RFC 9110 section 5.5). */
export const notInValues = /[^\t\x20-\x7e\x80-\xff]/;
const chunkSize = /^([0-9a-fA-F]{1,13})[ \t]*(?:;[^\r\n\0]*)?$/;

type State = 'idle' | 'head' | 'length' | 'until close' | 'size' | 'chunk' | 'after chunk' | 'trailers';

export class ResponseParser {
  readonly #events: ResponseEvents;
  #state: State = 'idle';
  #isHead = false;
  /** Remaining bytes of the body or chunk. */
  #remaining = 0;
  /** Received bytes of an incomplete head or line. */
  #partial: Buffer | undefined;
  #isReusable = false;

  constructor(events: ResponseEvents) {
    this.#events = events;
  }

  /** True if no response is expected. */
  get isIdle(): boolean {
    return this.#state === 'idle';
  }

  /** True if a response is expected and its head is not complete. */
  get awaitsHead(): boolean {
    return this.#state === 'head';
  }

  /** True if the connection can be reused after this response. */
  get isReusable(): boolean {
    return this.#isReusable;
  }

  /** Expects the response to a request with this method. */
  expect(method: string): void {
    this.#state = 'head';
    this.#isHead = method === 'HEAD';
    this.#isReusable = false;
  }

  /** Parses the next bytes. Throws if the bytes are malformed or follow the end of the response. */
  read(chunk: Buffer): void {
    let bytes = chunk;
    if (this.#partial !== undefined) {
      bytes = Buffer.concat([this.#partial, chunk]);
      this.#partial = undefined;
    }
    let at = 0;
    while (at < bytes.length) {
      const next = this.#step(bytes, at);
      if (next === undefined) {
        this.#partial = bytes.subarray(at);
        return;
      }
      at = next;
    }
  }

  /** Handles the end of the connection. Throws if the response is incomplete. */
  finish(): void {
    if (this.#state === 'idle') return;
    if (this.#state !== 'until close') throw new Error('the response is incomplete');
    this.#end([]);
  }

  /** Parses one element and returns the position after it, or undefined if more bytes are needed. */
  #step(bytes: Buffer, at: number): number | undefined {
    if (this.#state === 'idle') throw new Error('unexpected bytes after the response');
    switch (this.#state) {
      case 'head':
        return this.#head(bytes, at);
      case 'length':
      case 'chunk':
      case 'until close':
        return this.#data(bytes, at);
      case 'after chunk':
        return this.#line(bytes, at, crlf.length, (line) => {
          if (line !== '') throw new Error('a chunk of the response is longer than its size');
          this.#state = 'size';
        });
      case 'size':
        return this.#line(bytes, at, max.sizeLine, (line) => this.#size(line));
      case 'trailers':
        break;
    }
    return this.#trailers(bytes, at);
  }

  #head(bytes: Buffer, at: number): number | undefined {
    const end = bytes.indexOf('\r\n\r\n', at, 'latin1');
    if ((end < 0 ? bytes.length : end) - at > max.head)
      throw new Error(`the head of the response is longer than ${max.head} bytes`);
    if (end < 0) return undefined;
    const text = bytes.toString('latin1', at, end + crlf.length);
    const first = text.indexOf(crlf);
    const [, minor, code, message = ''] = statusLine.exec(text.slice(0, first)) ?? [];
    if (code === undefined) throw new Error('the status line of the response is malformed');
    const status = Number(code);
    if (status === 101) throw new Error('the response switches to a protocol that was not requested');
    const headers = fieldsOf(text, first + crlf.length);
    // A final response follows a 1xx response (RFC 9110 section 15.2).
    if (status > 199) {
      this.#frame(status, headers, minor === '1');
      this.#events.onHead(status, message, headers);
      if (this.#state === 'length' && this.#remaining === 0) this.#end([]);
    }
    return end + 4;
  }

  /** Determines the framing of the body (RFC 9112 section 6.3). */
  #frame(status: number, headers: readonly string[], isKept: boolean): void {
    let length: number | undefined;
    let isChunked = false;
    this.#isReusable = isKept;
    for (let at = 0; at < headers.length; at += 2) {
      const name = headers[at] as string;
      const value = headers[at + 1] as string;
      // Compares the length first, because most names have other lengths.
      if (name.length === 14 && name.toLowerCase() === 'content-length') {
        if (length !== undefined || !/^[0-9]{1,15}$/.test(value))
          throw new Error('the Content-Length of the response is malformed or repeated');
        length = Number(value);
      } else if (name.length === 17 && name.toLowerCase() === 'transfer-encoding') {
        if (isChunked || value.toLowerCase() !== 'chunked' || !isKept)
          throw new Error('unsupported Transfer-Encoding of the response');
        isChunked = true;
      } else if (name.length === 10 && name.toLowerCase() === 'connection') {
        if (/(?:^|[\s,])close(?:$|[\s,])/i.test(value)) this.#isReusable = false;
      }
    }
    if (isChunked && length !== undefined)
      throw new Error('the response has both Content-Length and Transfer-Encoding');
    this.#remaining = this.#isHead || status === 204 || status === 304 ? 0 : (length ?? Infinity);
    if (isChunked && this.#remaining !== 0) this.#state = 'size';
    else if (this.#remaining === Infinity) this.#untilClose();
    else this.#state = 'length';
  }

  #untilClose(): void {
    this.#state = 'until close';
    this.#isReusable = false;
  }

  #data(bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + this.#remaining);
    this.#remaining -= end - at;
    this.#events.onData(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end));
    if (this.#remaining === 0) {
      if (this.#state === 'chunk') this.#state = 'after chunk';
      else this.#end([]);
    }
    return end;
  }

  #size(line: string): void {
    const [, hex] = chunkSize.exec(line) ?? [];
    if (hex === undefined) throw new Error('a chunk of the response has no valid size');
    this.#remaining = Number.parseInt(hex, 16);
    this.#state = this.#remaining === 0 ? 'trailers' : 'chunk';
  }

  #trailers(bytes: Buffer, at: number): number | undefined {
    if (bytes[at] === 13 && bytes[at + 1] === 10) {
      this.#end([]);
      return at + crlf.length;
    }
    const end = bytes.indexOf('\r\n\r\n', at, 'latin1');
    if ((end < 0 ? bytes.length : end) - at > max.head)
      throw new Error(`the trailers of the response are longer than ${max.head} bytes`);
    if (end < 0) return undefined;
    this.#end(fieldsOf(bytes.toString('latin1', at, end + crlf.length), 0));
    return end + 4;
  }

  /** Reads a line of at most `maxLength` bytes, not counting CRLF. */
  #line(bytes: Buffer, at: number, maxLength: number, handle: (line: string) => void): number | undefined {
    const end = bytes.indexOf(crlf, at, 'latin1');
    if ((end < 0 ? bytes.length : end) - at > maxLength)
      throw new Error('a line between chunks of the response is too long');
    if (end < 0) return undefined;
    handle(bytes.toString('latin1', at, end));
    return end + crlf.length;
  }

  #end(trailers: string[]): void {
    this.#state = 'idle';
    this.#events.onEnd(trailers);
  }
}

/** Parses header lines that all end with CRLF. */
function fieldsOf(text: string, from: number): string[] {
  const fields: string[] = [];
  for (let at = from; at < text.length;) {
    const end = text.indexOf(crlf, at);
    const colon = text.indexOf(':', at);
    if (colon < 0 || colon > end) throw new Error('a header of the response has no name');
    const name = text.slice(at, colon);
    let first = colon + 1;
    let last = end;
    while (first < last && isBlank(text.charCodeAt(first))) first += 1;
    while (last > first && isBlank(text.charCodeAt(last - 1))) last -= 1;
    const value = text.slice(first, last);
    if (!token.test(name) || notInValues.test(value)) throw new Error('a header of the response is malformed');
    fields.push(name, value);
    at = end + crlf.length;
  }
  return fields;
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09;
