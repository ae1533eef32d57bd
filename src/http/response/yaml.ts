import { Blocks } from './blocks.ts';

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
const dash = 0x2d;

/** Maximum bytes of a string that can be written without quotes. */
const maxPlain = 64;
/** Matches quoted strings that YAML 1.1 and YAML 1.2 parse as the same string without the quotes. */
const plain = /^"(?!(?:true|false|yes|no|on|off|null|y|n)")[a-z][a-z0-9._/-]*"$/i;

/**
 * Turns JSON without white space into YAML in block style. JSON strings are also YAML strings, so only simple strings
 * are rewritten, without quotes. The library yaml is not used, because it needs whole objects and would block the event
 * loop for large ones.
 */
export class YAMLFormatter {
  readonly blocks = new Blocks();
  /** The open objects and arrays, by their first byte. */
  readonly #open: number[] = [];
  /** True if the previous token opened an object or array, which may be empty. */
  #isOpen = false;
  #isAfterColon = false;
  #isInString = false;
  #isEscaped = false;
  /**
   * The current string so far. Undefined if the start of the string is already written, because the string is too long
   * to be plain.
   */
  #text: number[] | undefined;

  /**
   * Returns the number of consumed bytes. Stops when a block is full, because indentation makes deeply nested text a
   * thousand times as long.
   */
  push(json: Buffer): number {
    let taken = 0;
    for (const byte of json) {
      if (this.blocks.hasFull) break;
      taken += 1;
      if (this.#isInString) this.#putText(byte);
      else if (byte !== newline) this.#putToken(byte);
    }
    return taken;
  }

  end(): void {
    this.blocks.put(newline);
  }

  #putToken(byte: number): void {
    if (byte === closeBrace || byte === closeBracket) {
      if (this.#isOpen) {
        this.#startScalar();
        this.blocks.put(byte === closeBrace ? openBrace : openBracket);
        this.blocks.put(byte);
      }
      this.#isOpen = false;
      this.#open.pop();
      return;
    }
    if (this.#isOpen || byte === comma) this.#startItem(byte === comma);
    if (byte === comma) return;
    if (byte === colon) {
      this.blocks.put(colon);
      this.#isAfterColon = true;
    } else if (byte === openBrace || byte === openBracket) {
      this.#open.push(byte);
      this.#isOpen = true;
    } else {
      this.#startScalar();
      if (byte !== quote) return this.blocks.put(byte);
      this.#isInString = true;
      this.#text = [quote];
    }
  }

  #startScalar(): void {
    if (this.#isAfterColon) this.blocks.put(space);
    this.#isAfterColon = false;
  }

  /** Starts an item. The first item of a list or object inside a list is written on the line of the preceding dash. */
  #startItem(isNext: boolean): void {
    if (isNext || this.#isAfterColon) this.blocks.breakLine(this.#open.length - 1);
    this.#isOpen = false;
    this.#isAfterColon = false;
    if (this.#open.at(-1) !== openBracket) return;
    this.blocks.put(dash);
    this.blocks.put(space);
  }

  #putText(byte: number): void {
    const isEnd = byte === quote && !this.#isEscaped;
    this.#isEscaped = byte === backslash && !this.#isEscaped;
    if (this.#text === undefined) this.blocks.put(byte);
    else {
      this.#text.push(byte);
      if (isEnd || this.#text.length > maxPlain) this.#putStart(this.#text);
    }
    if (isEnd) this.#isInString = false;
  }

  /** Writes a short string, or the start of a long string. */
  #putStart(text: readonly number[]): void {
    const isPlain = plain.test(String.fromCharCode(...text));
    for (const byte of isPlain ? text.slice(1, -1) : text) this.blocks.put(byte);
    this.#text = undefined;
  }
}

/** Returns a small JSON document as YAML. Blocks the event loop for 9 ms per MiB. */
export function yamlOf(json: Buffer): Buffer {
  const formatter = new YAMLFormatter();
  const blocks: Buffer[] = [];
  for (let at = 0; at < json.length; blocks.push(...formatter.blocks.takeFull()))
    at += formatter.push(json.subarray(at));
  formatter.end();
  return Buffer.concat([...blocks, ...formatter.blocks.takeFull(), formatter.blocks.rest]);
}
