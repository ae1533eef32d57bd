/** Finds the end and the resourceVersion of each event in a watch response, with minimal work. */
export interface Receiver {
  event(resourceVersion: number): void;
  /** Reports a problem of a watch. The end of the watch is also a problem. */
  problem(what: string): void;
}

const newline = 0x0a;
const mark = Buffer.from('"resourceVersion":"');
/** Index of the first letter of the event type, which follows `{"type":"`. */
const typeAt = 9;
const [bookmark, error] = Buffer.from('BE');
/** Maximum bytes from the start of an event to `mark`. */
const headLength = 1024;

export class WatchReader {
  readonly #receiver: Receiver;
  #status = 0;
  #inHead = true;
  /** Start of an incomplete HTTP line. */
  #pending = '';
  /** Remaining bytes of the chunk. */
  #left = 0;
  /** Start of an incomplete event. */
  #started: Buffer | undefined;

  constructor(receiver: Receiver) {
    this.#receiver = receiver;
  }

  /** Status of the response; 0 until it has started. */
  get status(): number {
    return this.#status;
  }

  /** Parses received bytes. The caller can overwrite `bytes` afterwards. */
  read(bytes: Buffer): void {
    if (this.#status !== 0 && this.#status !== 200) return; // The body is the text of an error.
    for (let at = 0; at < bytes.length;) {
      if (this.#left > 0) {
        const end = Math.min(bytes.length, at + this.#left);
        this.#readEvents(bytes, at, end);
        this.#left -= end - at;
        at = end;
        continue;
      }
      const end = bytes.indexOf(newline, at);
      this.#pending += bytes.toString('latin1', at, end < 0 ? bytes.length : end + 1);
      if (end < 0) return;
      at = end + 1;
      if (this.#inHead) this.#readHead();
      else this.#readChunkSize();
    }
  }

  #readHead(): void {
    if (!this.#pending.endsWith('\r\n\r\n')) return;
    this.#status = Number(this.#pending.slice(9, 12));
    if (this.#status === 200 && !/\r\ntransfer-encoding: *chunked/i.test(this.#pending))
      this.#receiver.problem('the response to a watch has no chunks');
    this.#pending = '';
    this.#inHead = false;
  }

  #readChunkSize(): void {
    const size = this.#pending.trim();
    this.#pending = '';
    if (size === '') return; // The line ends the previous chunk.
    this.#left = Number.parseInt(size, 16);
    if (this.#left === 0) this.#receiver.problem('a watch has ended');
  }

  #readEvents(bytes: Buffer, from: number, to: number): void {
    for (let at = from; at < to;) {
      const end = bytes.indexOf(newline, at);
      if (end < 0 || end >= to) {
        this.#keep(bytes, at, to);
        return;
      }
      if (this.#started === undefined) this.#readEvent(bytes, at, end);
      else {
        this.#keep(bytes, at, end);
        this.#readEvent(this.#started, 0, this.#started.length);
        this.#started = undefined;
      }
      at = end + 1;
    }
  }

  #keep(bytes: Buffer, from: number, to: number): void {
    const before = this.#started ?? Buffer.alloc(0);
    const missing = headLength - before.length;
    if (missing > 0) this.#started = Buffer.concat([before, bytes.subarray(from, Math.min(to, from + missing))]);
  }

  #readEvent(bytes: Buffer, from: number, to: number): void {
    const type = bytes[from + typeAt];
    if (type === bookmark) return;
    if (type === error) return this.#receiver.problem(bytes.toString('utf8', from, to));
    let at = bytes.indexOf(mark, from);
    if (at < 0 || at >= to) return this.#receiver.problem('an event without a resourceVersion at its begin');
    let resourceVersion = 0;
    for (at += mark.length; bytes[at] !== 0x22; at++) resourceVersion = resourceVersion * 10 + (bytes[at] ?? 0) - 0x30;
    this.#receiver.event(resourceVersion);
  }
}
