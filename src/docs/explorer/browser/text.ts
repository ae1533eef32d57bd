/** Formats long texts, sizes, durations and descriptions for the page. */

/** Keeps the beginning of a text, or the end of a stream. */
export class Excerpt {
  readonly #limit: number;
  readonly #keeps: 'beginning' | 'end';
  #pieces: string[] = [];
  #length = 0;
  #isCut = false;

  /** `limit`: maximum number of characters. */
  constructor(limit: number, keeps: 'beginning' | 'end') {
    this.#limit = limit;
    this.#keeps = keeps;
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  /** The kept text. The end of a stream starts with a whole line. */
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
    // Cutting the text after every piece would take quadratic time.
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

/** Formats a size, such as `312 bytes` or `4.1 KiB`. */
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

const durations = [
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** Formats milliseconds in the largest unit that fits, such as `87 ms` or `4.1 s`. */
export function durationOf(milliseconds: number): string {
  const [unit, length] = durations.find(([, one]) => milliseconds >= one) ?? [];
  return length === undefined ? `${Math.round(milliseconds)} ms` : `${(milliseconds / length).toFixed(1)} ${unit}`;
}

/** A paragraph or a list, whose items start with `- `. Code between backticks is the only other markup. */
export interface Block {
  readonly isList: boolean;
  readonly items: readonly (readonly TextSpan[])[];
}

export interface TextSpan {
  readonly isCode: boolean;
  readonly text: string;
}

/** Maximum number of characters of a description, because a custom resource may have a hostile description. */
const maxDescription = 10_000;

export function blocksOf(text: string): readonly Block[] {
  return shortened(text, maxDescription)
    .split(/\n{2,}/)
    .map((block) => block.trim())
    .filter((block) => block !== '')
    .map((block) => {
      const isList = block.startsWith('- ');
      const items = isList ? block.slice(2).split(/\n- /) : [block];
      return { isList, items: items.map((item) => spansOf(inOneLine(item))) };
    });
}

/** Cuts a text to `max` characters. */
export const shortened = (text: string, max: number): string => (text.length <= max ? text : `${text.slice(0, max)}…`);

/** Joins the lines of a text. A regular expression would take quadratic time for many spaces. */
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
