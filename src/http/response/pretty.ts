import type { Request, Response } from 'express';
import { Slice, type WaitingSlice } from '../../runtime/slice.ts';
import { write, writeList, type Streamed } from './write.ts';

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
/** Bytes of one piece of the indented text, and of the text that is indented between two looks at the clock. */
const blockSize = 64 * 1024;
const stride = 16 * 1024;

/** A JSON document without white space between its tokens. */
interface Document {
  readonly contentType: string;
  readonly body: readonly Buffer[];
  readonly pretty: boolean;
}

/** Writes a document, indented if `pretty`. */
export async function writeDocument(
  req: Request,
  res: Response,
  { contentType, body, pretty }: Document,
  waiting: WaitingSlice,
): Promise<void> {
  if (!pretty) return write(req, res, { contentType, body });
  await writeList(req, res, { contentType, items: body, plain: () => indented([body], waiting) });
}

/**
 * Returns the same JSON, indented by two spaces as Go's json.MarshalIndent does, whatever pieces it comes in. It is indented while it is
 * read, in slices: only its first block is made before. It has a length if that is all. Throws the signal's reason.
 */
export async function indented(parts: Streamed['parts'], waiting: WaitingSlice): Promise<Streamed> {
  const blocks = blocksOf(parts, waiting);
  const first = (await blocks.next()).value as Buffer;
  if (first.length < blockSize) return { length: first.length, parts: [[first]] };
  async function* all(): AsyncGenerator<Buffer[]> {
    yield [first];
    for await (const block of blocks) yield [block];
  }
  return { length: undefined, parts: all() };
}

/** Yields full blocks, and one that is not full at the end. */
async function* blocksOf(parts: Streamed['parts'], waiting: WaitingSlice): AsyncGenerator<Buffer> {
  const slice = new Slice(waiting);
  const indenter = new Indenter();
  for await (const pieces of parts)
    for (const piece of pieces)
      for (let at = 0; at < piece.length;) {
        if (slice.isOver) await slice.next();
        at += indenter.push(piece.subarray(at, at + stride));
        for (const block of indenter.takeFull()) yield block;
      }
  yield indenter.rest;
}

class Indenter {
  #full: Buffer[] = [];
  #block = Buffer.allocUnsafeSlow(blockSize);
  #used = 0;
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  /** The last byte opened an object or array, which may be empty. */
  #isOpen = false;

  /** Returns how many bytes it took: deeply nested text grows a thousandfold, and it stops once a block is full. */
  push(text: Buffer): number {
    let taken = 0;
    for (const byte of text) {
      if (this.#full.length > 0) break;
      taken += 1;
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
    return taken;
  }

  /** Returns the blocks that are full, once each. */
  takeFull(): readonly Buffer[] {
    const full = this.#full;
    if (full.length > 0) this.#full = [];
    return full;
  }

  /** The block that is not full yet. */
  get rest(): Buffer {
    return this.#block.subarray(0, this.#used);
  }

  #put(byte: number): void {
    this.#block[this.#used++] = byte;
    if (this.#used === this.#block.length) this.#next();
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
export function wantsPretty(pretty = '', userAgent = ''): boolean {
  if (pretty !== '') return pretty === 'true' || pretty === '1';
  return /^(curl|Wget|Mozilla\/5\.0)/.test(userAgent);
}
