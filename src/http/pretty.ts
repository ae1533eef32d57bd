import { Slice, type Waiting } from '../kube/slice.ts';

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const newline = 0x0a;
const space = 0x20;
/** Of a line for each level. */
const indent = 2;
/** Bytes of what comes out, and of what goes in between two looks at the clock. */
const blockSize = 256 * 1024;
const stride = 16 * 1024;

/**
 * The same JSON, indented by two spaces as Go's json.MarshalIndent does, whatever pieces it comes in. `document` has no white space
 * between its tokens. Made in slices; throws the signal's reason when that is aborted meanwhile.
 */
export async function prettyJson(document: readonly Buffer[], waiting: Waiting): Promise<Buffer[]> {
  const slice = new Slice(waiting);
  const indenter = new Indenter();
  for (const piece of document)
    for (let at = 0; at < piece.length; at += stride) {
      if (slice.isOver) await slice.next();
      indenter.push(piece.subarray(at, at + stride));
    }
  return indenter.end();
}

class Indenter {
  readonly #full: Buffer[] = [];
  #block = Buffer.allocUnsafeSlow(blockSize);
  #used = 0;
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  /** The last byte opened an object or array, which may be empty. */
  #isOpen = false;

  push(text: Buffer): void {
    for (const byte of text) {
      if (this.#inString) {
        this.#put(byte);
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === backslash) this.#isEscaped = true;
        else if (byte === quote) this.#inString = false;
        continue;
      }
      const closes = byte === closeBrace || byte === closeBracket;
      if (closes) this.#depth -= 1;
      if (this.#isOpen !== closes) this.#breakLine();
      this.#isOpen = byte === openBrace || byte === openBracket;
      this.#put(byte);
      if (this.#isOpen) this.#depth += 1;
      else if (byte === quote) this.#inString = true;
      else if (byte === comma) this.#breakLine();
      else if (byte === colon) this.#put(space);
    }
  }

  end(): Buffer[] {
    return [...this.#full, this.#block.subarray(0, this.#used)];
  }

  #put(byte: number): void {
    if (this.#used === this.#block.length) this.#next();
    this.#block[this.#used++] = byte;
  }

  #breakLine(): void {
    this.#put(newline);
    for (let i = this.#depth * indent; i > 0; i -= 1) this.#put(space);
  }

  #next(): void {
    this.#full.push(this.#block);
    this.#block = Buffer.allocUnsafeSlow(blockSize);
    this.#used = 0;
  }
}

/**
 * Does the caller want indented JSON: `?pretty=true`, or a program that people read the answers of
 * (k8s.io/apiserver negotiation.isPrettyPrint)?
 */
export function wantsPretty(query: URLSearchParams, userAgent: string | undefined): boolean {
  const asked = query.get('pretty');
  if (asked !== null && asked !== '') return asked === 'true' || asked === '1';
  return /^(curl|Wget|Mozilla\/5\.0)/.test(userAgent ?? '');
}
