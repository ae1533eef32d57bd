import type { Request, Response } from 'express';
import { Slice, type SignalSource } from '../../runtime/slice.ts';
import { Blocks, blockSize } from './blocks.ts';
import { prefersYAML } from '../request/negotiate.ts';
import { YAMLFormatter, yamlOf } from './yaml.ts';
import { write, writeJson, writeList, type Streamed } from './write.ts';

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const space = 0x20;
/** Bytes of input that are indented between two checks of the time slice. */
const stride = 16 * 1024;

/** A JSON document without white space between its tokens. */
interface Document {
  readonly contentType: string;
  readonly body: readonly Buffer[];
  readonly pretty: boolean;
}

const yaml = 'application/yaml';

/**
 * Writes a document as YAML if `contentType` is a YAML type, otherwise as JSON. The JSON is indented if `pretty` is
 * set.
 */
export async function writeDocument(
  req: Request,
  res: Response,
  { contentType, body, pretty }: Document,
  waiting: SignalSource,
): Promise<void> {
  if (!pretty && contentType !== yaml) return write(req, res, { contentType, body });
  await writeList(req, res, { contentType, items: body, plain: () => formatted([body], contentType, waiting) });
}

/** Writes a small object as JSON, or as YAML if the caller prefers it. */
export const writeObject: typeof writeJson = (req, res, value, response) =>
  prefersYAML(req.headers.accept)
    ? write(req, res, { contentType: yaml, ...response, body: [yamlOf(Buffer.from(JSON.stringify(value)))] })
    : writeJson(req, res, value, response);

/**
 * Returns the JSON as YAML, or indented by two spaces as Go's json.MarshalIndent does. Blocks after the first are
 * formatted in time slices while the client reads. The result has a length only if it fits into one block. Throws the
 * signal's reason.
 */
export async function formatted(
  parts: Streamed['parts'],
  contentType: string,
  waiting: SignalSource,
): Promise<Streamed> {
  const blocks = blocksOf(parts, contentType === yaml ? new YAMLFormatter() : new Indenter(), waiting);
  const first = (await blocks.next()).value as Buffer;
  if (first.length < blockSize) return { length: first.length, parts: [[first]] };
  async function* all(): AsyncGenerator<Buffer[]> {
    yield [first];
    for await (const block of blocks) yield [block];
  }
  return { length: undefined, parts: all() };
}

/** Yields full blocks of formatted text, and then the last block, which may not be full. */
async function* blocksOf(
  parts: Streamed['parts'],
  formatter: Indenter | YAMLFormatter,
  waiting: SignalSource,
): AsyncGenerator<Buffer> {
  const slice = new Slice(waiting);
  for await (const pieces of parts)
    for (const piece of pieces)
      for (let at = 0; at < piece.length;) {
        if (slice.isOver) await slice.next();
        at += formatter.push(piece.subarray(at, at + stride));
        for (const block of formatter.blocks.takeFull()) yield block;
      }
  formatter.end();
  for (const block of formatter.blocks.takeFull()) yield block;
  yield formatter.blocks.rest;
}

class Indenter {
  readonly blocks = new Blocks();
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  /** True if the previous token opened an object or array, which may be empty. */
  #isOpen = false;

  /**
   * Returns the number of consumed bytes. Stops when a block is full, because indentation makes deeply nested text a
   * thousand times as long.
   */
  push(text: Buffer): number {
    let taken = 0;
    for (const byte of text) {
      if (this.blocks.hasFull) break;
      taken += 1;
      if (this.#inString) {
        this.blocks.put(byte);
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === backslash) this.#isEscaped = true;
        else if (byte === quote) this.#inString = false;
        continue;
      }
      const closes = byte === closeBrace || byte === closeBracket;
      if (closes) this.#depth -= 1;
      if (this.#isOpen !== closes) this.blocks.breakLine(this.#depth);
      this.#isOpen = byte === openBrace || byte === openBracket;
      this.blocks.put(byte);
      if (this.#isOpen) this.#depth += 1;
      else if (byte === quote) this.#inString = true;
      else if (byte === comma) this.blocks.breakLine(this.#depth);
      else if (byte === colon) this.blocks.put(space);
    }
    return taken;
  }

  end(): void {
    // Indented JSON needs no work at the end of the document.
  }
}

/**
 * Returns true if the caller wants indented JSON: by `?pretty=true`, or because its User-Agent is that of a program
 * whose output people read (k8s.io/apiserver negotiation.isPrettyPrint).
 */
export function wantsPretty(pretty = '', userAgent = ''): boolean {
  if (pretty !== '') return pretty === 'true' || pretty === '1';
  return /^(curl|Wget|Mozilla\/5\.0)/.test(userAgent);
}
