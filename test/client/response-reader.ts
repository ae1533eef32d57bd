/** Reads HTTP/1.1 responses strictly (RFC 9112). Faults that other clients tolerate or miss are errors here. */
import type { IncomingHttpHeaders } from 'node:http';

/** Error for a message whose framing is invalid, or whose content does not match its headers. */
export class FramingError extends Error {
  override readonly name = 'FramingError';
}

export interface Head {
  readonly status: number;
  /** Headers by lower-case name, as in node:http. */
  readonly headers: IncomingHttpHeaders;
}

export interface ResponseHandler {
  onHead(head: Head): void;
  onBody(bytes: Buffer): void;
  onEnd(): void;
}

type State = 'idle' | 'head' | 'body' | 'chunkSize' | 'chunk' | 'chunkEnd' | 'trailers';

const statusLine = /^HTTP\/1\.1 ([1-5]\d\d) [\t\x20-\x7e\x80-\xff]*$/;
const fieldLine =
  /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?[ \t]*$/;
const maxLine = 64 * 1024;

export class ResponseReader {
  readonly #handler: ResponseHandler;
  #state: State = 'idle';
  #method = '';
  /** Start of an incomplete line. */
  #line: Buffer = Buffer.alloc(0);
  #lines: string[] = [];
  /** Remaining bytes of the body or chunk, and number of bytes received. */
  #left = 0;
  #received = 0;
  #announced: number | undefined;

  constructor(handler: ResponseHandler) {
    this.#handler = handler;
  }

  /** Prepares for the response to a request with this method. */
  expect(method: string): void {
    if (this.#state !== 'idle') throw new Error('the response before this one has not ended');
    this.#method = method;
    this.#state = 'head';
    this.#received = 0;
    this.#announced = undefined;
  }

  /** Processes received bytes. Throws FramingError. */
  read(bytes: Buffer): void {
    for (let rest = bytes; rest.length > 0;) rest = this.#step(rest);
  }

  /** Processes the end of the connection. Throws FramingError in the middle of a message. */
  end(): void {
    if (!this.isIdle) throw new FramingError(`the connection ended ${this.#where}`);
  }

  get isIdle(): boolean {
    return this.#state === 'idle';
  }

  get #where(): string {
    if (this.#state === 'head') return 'in the head';
    const of = this.#announced === undefined ? 'in a chunked body' : `of ${this.#announced}`;
    return `after ${this.#received} bytes ${of}`;
  }

  #step(bytes: Buffer): Buffer {
    if (this.#state === 'idle')
      throw new FramingError(`${bytes.length} bytes follow the end of a message: ${quote(bytes)}`);
    return this.#state === 'body' || this.#state === 'chunk' ? this.#readBody(bytes) : this.#readLine(bytes);
  }

  #readBody(bytes: Buffer): Buffer {
    const part = bytes.subarray(0, this.#left);
    this.#left -= part.length;
    this.#received += part.length;
    this.#handler.onBody(part);
    if (this.#left === 0) {
      if (this.#state === 'chunk') this.#state = 'chunkEnd';
      else this.#finish();
    }
    return bytes.subarray(part.length);
  }

  #readLine(bytes: Buffer): Buffer {
    const end = bytes.indexOf('\n');
    const part = end === -1 ? bytes : bytes.subarray(0, end + 1);
    this.#line = Buffer.concat([this.#line, part]);
    if (this.#line.length > maxLine) throw new FramingError(`a line has more than ${maxLine} bytes ${this.#where}`);
    if (end === -1) return Buffer.alloc(0);
    const line = this.#line.toString('latin1');
    this.#line = Buffer.alloc(0);
    if (!line.endsWith('\r\n')) throw new FramingError(`a line ends without CR: ${JSON.stringify(line)}`);
    this.#onLine(line.slice(0, -2));
    return bytes.subarray(part.length);
  }

  #onLine(line: string): void {
    if (this.#state === 'chunkSize') return this.#onChunkSize(line);
    if (this.#state === 'chunkEnd') {
      if (line !== '') throw new FramingError(`a chunk is longer than its size: ${JSON.stringify(line)}`);
      this.#state = 'chunkSize';
      return;
    }
    if (line !== '') return void this.#lines.push(line);
    const lines = this.#lines;
    this.#lines = [];
    if (this.#state === 'head') return this.#onHead(lines);
    fieldsOf(lines);
    this.#finish();
  }

  #onChunkSize(line: string): void {
    // RFC 9112 allows chunk extensions, but the tested servers send none.
    if (!/^[0-9a-f]{1,8}$/i.test(line))
      throw new FramingError(`not a chunk size: ${JSON.stringify(line.slice(0, 80))}`);
    this.#left = Number.parseInt(line, 16);
    this.#state = this.#left === 0 ? 'trailers' : 'chunk';
  }

  #onHead([first = '', ...lines]: readonly string[]): void {
    const [, code] = statusLine.exec(first) ?? [];
    if (code === undefined) throw new FramingError(`not a status line: ${JSON.stringify(first.slice(0, 80))}`);
    const status = Number(code);
    const fields = fieldsOf(lines);
    const lengths = fields.filter(([name]) => name === 'content-length').map(([, value]) => value);
    const codings = fields.filter(([name]) => name === 'transfer-encoding').map(([, value]) => value);
    const isInformational = status < 200;
    if ((isInformational || status === 204) && lengths.length + codings.length > 0)
      throw new FramingError(`a response of ${status} must not announce a body`);
    if (lengths.length > 1) throw new FramingError(`${lengths.length} Content-Length fields`);
    if (lengths.length === 1 && codings.length > 0)
      throw new FramingError('both Content-Length and Transfer-Encoding are set');
    const [length] = lengths;
    if (length !== undefined && !/^(0|[1-9]\d{0,14})$/.test(length))
      throw new FramingError(`not a length: Content-Length: ${length}`);
    if (codings.some((coding) => coding !== 'chunked') || codings.length > 1)
      throw new FramingError(`Transfer-Encoding must be chunked, not ${codings.join(', ')}`);
    // The parser still expects a head, because the final response follows.
    if (isInformational && status !== 101) return;
    this.#handler.onHead({ status, headers: headersOf(fields) });
    if (isInformational || this.#method === 'HEAD' || status === 204 || status === 304) return this.#finish();
    if (length === undefined && codings.length === 0)
      throw new FramingError('neither Content-Length nor Transfer-Encoding determines where the body ends');
    this.#announced = length === undefined ? undefined : Number(length);
    this.#left = this.#announced ?? 0;
    if (this.#announced === undefined) this.#state = 'chunkSize';
    else if (this.#announced === 0) this.#finish();
    else this.#state = 'body';
  }

  #finish(): void {
    this.#state = 'idle';
    this.#handler.onEnd();
  }
}

type Field = readonly [name: string, value: string];

const fieldsOf = (lines: readonly string[]): Field[] =>
  lines.map((line) => {
    const [, name, value = ''] = fieldLine.exec(line) ?? [];
    if (name === undefined) throw new FramingError(`not a header field: ${JSON.stringify(line.slice(0, 80))}`);
    return [name.toLowerCase(), value];
  });

function headersOf(fields: readonly Field[]): IncomingHttpHeaders {
  const headers: IncomingHttpHeaders = {};
  for (const [name, value] of fields) {
    const known = headers[name];
    if (name === 'set-cookie') (headers['set-cookie'] ??= []).push(value);
    else headers[name] = typeof known === 'string' ? `${known}, ${value}` : value;
  }
  return headers;
}

const quote = (bytes: Buffer): string => JSON.stringify(bytes.toString('latin1', 0, 80));
