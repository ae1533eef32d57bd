/** Formats JSON of response bodies, which may be long, incomplete, or consist of several documents. */

const spaces = (depth: number): string => '  '.repeat(Math.min(depth, 40));

/** Indents JSON while it arrives. Numbers stay as they were sent. */
export class Indenter {
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  #isEmpty = false;
  #isComplete = false;

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
      this.#isEmpty = true;
      return before + one;
    }
    if (one === '"') this.#inString = true;
    if (one === ',') return `${before},\n${spaces(this.#depth)}`;
    return before + (one === ':' ? ': ' : one);
  }

  #before(): string {
    const before = this.#isComplete ? '\n' : this.#isEmpty ? `\n${spaces(this.#depth)}` : '';
    this.#isEmpty = false;
    this.#isComplete = false;
    return before;
  }

  #close(one: string): string {
    const wasEmpty = this.#isEmpty;
    this.#isEmpty = false;
    this.#depth = Math.max(0, this.#depth - 1);
    this.#isComplete = this.#depth === 0;
    return wasEmpty ? one : `\n${spaces(this.#depth)}${one}`;
  }
}

export const tokenKinds = ['key', 'string', 'literal'] as const;

export interface JSONToken {
  readonly kind: (typeof tokenKinds)[number];
  readonly start: number;
  readonly end: number;
}

/** Finds the tokens to colour. An unterminated string ends at the end of its line. */
export const tokensOf = (text: string): readonly JSONToken[] =>
  [...text.matchAll(/("(?:[^"\\\n]|\\.)*"?)(\s*:)?|-?\d[\d.eE+-]*|true|false|null/g)].map(
    ({ index: start, 0: whole, 1: string, 2: colon }) => ({
      kind: string === undefined ? 'literal' : colon === undefined ? 'string' : 'key',
      start,
      end: start + (string ?? whole).length,
    }),
  );

export const isJSON = (mediaType: string): boolean => /[/+]json(?:;|$)/.test(mediaType);
