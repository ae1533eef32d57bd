/** Texts of answers, which may be long, as they are shown. */

const spaces = (depth: number): string => '  '.repeat(Math.min(depth, 40));

/** Indents JSON while it comes, also such as has no end, or more than one document. Numbers stay as they were sent. */
export class Indenter {
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  /** What opened is still empty. */
  #justOpened = false;
  /** A document is over. */
  #isOver = false;

  add(text: string): string {
    let out = '';
    for (const one of text) out += this.#inString ? this.#within(one) : this.#between(one);
    return out;
  }

  #within(one: string): string {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (one === '\\') this.#isEscaped = true;
    else if (one === '"') this.#inString = false;
    return one;
  }

  #between(one: string): string {
    if (one === ' ' || one === '\t' || one === '\r' || one === '\n') return '';
    if (one === '}' || one === ']') return this.#close(one);
    const before = this.#before();
    if (one === '{' || one === '[') {
      this.#depth += 1;
      this.#justOpened = true;
      return before + one;
    }
    if (one === '"') this.#inString = true;
    if (one === ',') return `${before},\n${spaces(this.#depth)}`;
    return before + (one === ':' ? ': ' : one);
  }

  #before(): string {
    const { depth, justOpened, isOver } = { depth: this.#depth, justOpened: this.#justOpened, isOver: this.#isOver };
    this.#justOpened = false;
    this.#isOver = false;
    if (isOver) return '\n';
    return justOpened ? `\n${spaces(depth)}` : '';
  }

  #close(one: string): string {
    const wasEmpty = this.#justOpened;
    this.#justOpened = false;
    this.#depth = Math.max(0, this.#depth - 1);
    this.#isOver = this.#depth === 0;
    return wasEmpty ? one : `\n${spaces(this.#depth)}${one}`;
  }
}

/** The beginning of a text, or of one that goes on and on its end. */
export class Excerpt {
  readonly #limit: number;
  readonly #keeps: 'beginning' | 'end';
  #pieces: string[] = [];
  #length = 0;
  #isCut = false;

  /** `limit`: in characters. */
  constructor(limit: number, keeps: 'beginning' | 'end') {
    this.#limit = limit;
    this.#keeps = keeps;
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  /** What is kept of an end begins with a line. */
  get text(): string {
    const text = this.#pieces.join('');
    this.#pieces = [text];
    if (this.#keeps === 'beginning' || !this.#isCut) return text;
    return text.slice(text.indexOf('\n') + 1);
  }

  add(text: string): void {
    const { length } = text;
    if (this.#keeps === 'beginning') {
      const room = this.#limit - this.#length;
      if (length > room) this.#isCut = true;
      this.#push(text.slice(0, room));
      return;
    }
    this.#push(text);
    // Not with each piece: that would be the square of the work.
    if (this.#length <= 2 * this.#limit) return;
    this.#isCut = true;
    const kept = this.#pieces.join('').slice(-this.#limit);
    this.#pieces = [kept];
    this.#length = kept.length;
  }

  #push(text: string): void {
    if (text === '') return;
    this.#pieces.push(text);
    this.#length += text.length;
  }
}

const units = ['KiB', 'MiB', 'GiB'];

/** Such as `312 bytes`, `4.1 KiB`. */
export function sizeOf(bytes: number): string {
  if (bytes < 1024) return bytes === 1 ? '1 byte' : `${bytes} bytes`;
  let value = bytes / 1024;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value.toFixed(1)} ${units[unit] ?? ''}`;
}

/** What a text is made of: paragraphs, lists whose items begin with `- `, and in them code between backticks. Nothing else is markup. */
export interface Block {
  readonly isList: boolean;
  readonly items: readonly (readonly TextSpan[])[];
}

export interface TextSpan {
  readonly isCode: boolean;
  readonly text: string;
}

/** Characters. More are no description, but somebody's attempt. */
const longestDescription = 10_000;

export function blocksOf(text: string): readonly Block[] {
  return shortened(text, longestDescription)
    .split(/\n{2,}/)
    .map((block) => block.trim())
    .filter((block) => block !== '')
    .map((block) => {
      const isList = block.startsWith('- ');
      const items = isList ? block.slice(2).split(/\n- /) : [block];
      return { isList, items: items.map((item) => spansOf(inOneLine(item))) };
    });
}

/** `longest`: in characters. */
export const shortened = (text: string, longest: number): string =>
  text.length <= longest ? text : `${text.slice(0, longest)}…`;

/** Not by a regular expression, which would take the square of its length for many blanks. */
const inOneLine = (text: string): string =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
    .join(' ');

const spansOf = (text: string): readonly TextSpan[] =>
  text
    .split(/(`[^`]+`)/)
    .filter((part) => part !== '')
    .map((part) =>
      /^`[^`]+`$/.test(part) ? { isCode: true, text: part.slice(1, -1) } : { isCode: false, text: part },
    );
