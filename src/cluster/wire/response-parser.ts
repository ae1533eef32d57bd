/** Reads answers of HTTP/1.1 (RFC 9112), one after the other, however their bytes are cut. What is not just so is refused. */

/** What hears of an answer. Names and values of headers stand by turns, as they came, a byte a character. */
export interface ResponseEvents {
  onHead(status: number, message: string, headers: string[]): void;
  onData(chunk: Buffer): void;
  onEnd(trailers: string[]): void;
}

const most = { head: 256 * 1024, sizeLine: 4 * 1024 };

const crlf = '\r\n';
const statusLine = /^HTTP\/1\.([01]) ([1-9][0-9]{2})(?: ([^\r\n\0]*))?$/;
/** RFC 9110 section 5.6.2. */
export const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** RFC 9110 section 5.5: of what no value is made. */
export const notInValues = /[^\t\x20-\x7e\x80-\xff]/;
const chunkSize = /^([0-9a-fA-F]{1,13})[ \t]*(?:;[^\r\n\0]*)?$/;

type State = 'idle' | 'head' | 'length' | 'until close' | 'size' | 'chunk' | 'after chunk' | 'trailers';

export class ResponseParser {
  readonly #events: ResponseEvents;
  #state: State = 'idle';
  #isHead = false;
  /** Of the body, or of its chunk: the bytes that are still to come. */
  #left = 0;
  /** Of a head or a line that is not whole yet. */
  #partial: Buffer | undefined;
  #mayGoOn = false;

  constructor(events: ResponseEvents) {
    this.#events = events;
  }

  /** No answer is awaited. */
  get isIdle(): boolean {
    return this.#state === 'idle';
  }

  /** Of the answer nothing is known yet. */
  get awaitsHead(): boolean {
    return this.#state === 'head';
  }

  /** Whether the connection may be asked again after this answer. */
  get mayGoOn(): boolean {
    return this.#mayGoOn;
  }

  /** The next bytes are those of the answer to such a request. */
  expect(method: string): void {
    this.#state = 'head';
    this.#isHead = method === 'HEAD';
    this.#mayGoOn = false;
  }

  /** Throws for bytes that are no answer, or more than that. */
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

  /** Nothing more will come. Throws if there should have. */
  finish(): void {
    if (this.#state === 'idle') return;
    if (this.#state !== 'until close') throw new Error('the answer was broken off');
    this.#end([]);
  }

  /** From where to go on; undefined if that takes more bytes. */
  #step(bytes: Buffer, at: number): number | undefined {
    if (this.#state === 'idle') throw new Error('more came than was asked for');
    switch (this.#state) {
      case 'head':
        return this.#head(bytes, at);
      case 'length':
      case 'chunk':
      case 'until close':
        return this.#data(bytes, at);
      case 'after chunk':
        return this.#line(bytes, at, crlf.length, (line) => {
          if (line !== '') throw new Error('a chunk is longer than it said');
          this.#state = 'size';
        });
      case 'size':
        return this.#line(bytes, at, most.sizeLine, (line) => this.#size(line));
      case 'trailers':
        break;
    }
    return this.#trailers(bytes, at);
  }

  #head(bytes: Buffer, at: number): number | undefined {
    const end = bytes.indexOf('\r\n\r\n', at, 'latin1');
    if ((end < 0 ? bytes.length : end) - at > most.head) throw new Error('the head of the answer is too long');
    if (end < 0) return undefined;
    const text = bytes.toString('latin1', at, end + crlf.length);
    const first = text.indexOf(crlf);
    const [, minor, code, message = ''] = statusLine.exec(text.slice(0, first)) ?? [];
    if (code === undefined) throw new Error('the answer does not begin as one of HTTP/1.1 does');
    const status = Number(code);
    if (status === 101) throw new Error('the answer changes to a protocol that nobody asked for');
    const headers = fieldsOf(text, first + crlf.length);
    // RFC 9110 section 15.2: another one follows.
    if (status > 199) {
      this.#frame(status, headers, minor === '1');
      this.#events.onHead(status, message, headers);
      if (this.#state === 'length' && this.#left === 0) this.#end([]);
    }
    return end + 4;
  }

  /** RFC 9112 section 6.3. */
  #frame(status: number, headers: readonly string[], isKept: boolean): void {
    let length: number | undefined;
    let isChunked = false;
    this.#mayGoOn = isKept;
    for (let at = 0; at < headers.length; at += 2) {
      const name = headers[at] as string;
      const value = headers[at + 1] as string;
      // Most names have other lengths.
      if (name.length === 14 && name.toLowerCase() === 'content-length') {
        if (length !== undefined || !/^[0-9]{1,15}$/.test(value))
          throw new Error('the length of the answer is unclear');
        length = Number(value);
      } else if (name.length === 17 && name.toLowerCase() === 'transfer-encoding') {
        if (isChunked || value.toLowerCase() !== 'chunked' || !isKept)
          throw new Error('the answer is encoded in a way that this server does not read');
        isChunked = true;
      } else if (name.length === 10 && name.toLowerCase() === 'connection') {
        if (/(?:^|[\s,])close(?:$|[\s,])/i.test(value)) this.#mayGoOn = false;
      }
    }
    if (isChunked && length !== undefined) throw new Error('the length of the answer is said twice');
    this.#left = this.#isHead || status === 204 || status === 304 ? 0 : (length ?? Infinity);
    if (isChunked && this.#left !== 0) this.#state = 'size';
    else if (this.#left === Infinity) this.#untilClose();
    else this.#state = 'length';
  }

  #untilClose(): void {
    this.#state = 'until close';
    this.#mayGoOn = false;
  }

  #data(bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + this.#left);
    this.#left -= end - at;
    this.#events.onData(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end));
    if (this.#left === 0) {
      if (this.#state === 'chunk') this.#state = 'after chunk';
      else this.#end([]);
    }
    return end;
  }

  #size(line: string): void {
    const [, hex] = chunkSize.exec(line) ?? [];
    if (hex === undefined) throw new Error('a chunk of the answer has no size');
    this.#left = Number.parseInt(hex, 16);
    this.#state = this.#left === 0 ? 'trailers' : 'chunk';
  }

  #trailers(bytes: Buffer, at: number): number | undefined {
    if (bytes[at] === 13 && bytes[at + 1] === 10) {
      this.#end([]);
      return at + crlf.length;
    }
    const end = bytes.indexOf('\r\n\r\n', at, 'latin1');
    if ((end < 0 ? bytes.length : end) - at > most.head) throw new Error('the trailers of the answer are too long');
    if (end < 0) return undefined;
    this.#end(fieldsOf(bytes.toString('latin1', at, end + crlf.length), 0));
    return end + 4;
  }

  /** `longest`: without its end. */
  #line(bytes: Buffer, at: number, longest: number, hear: (line: string) => void): number | undefined {
    const end = bytes.indexOf(crlf, at, 'latin1');
    if ((end < 0 ? bytes.length : end) - at > longest) throw new Error('a line between chunks is too long');
    if (end < 0) return undefined;
    hear(bytes.toString('latin1', at, end));
    return end + crlf.length;
  }

  #end(trailers: string[]): void {
    this.#state = 'idle';
    this.#events.onEnd(trailers);
  }
}

/** Of lines that each have their end. */
function fieldsOf(text: string, from: number): string[] {
  const fields: string[] = [];
  for (let at = from; at < text.length;) {
    const end = text.indexOf(crlf, at);
    const colon = text.indexOf(':', at);
    if (colon < 0 || colon > end) throw new Error('a header of the answer has no name');
    const name = text.slice(at, colon);
    let first = colon + 1;
    let last = end;
    while (first < last && isBlank(text.charCodeAt(first))) first += 1;
    while (last > first && isBlank(text.charCodeAt(last - 1))) last -= 1;
    const value = text.slice(first, last);
    if (!token.test(name) || notInValues.test(value)) throw new Error('a header of the answer is malformed');
    fields.push(name, value);
    at = end + crlf.length;
  }
  return fields;
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09;
