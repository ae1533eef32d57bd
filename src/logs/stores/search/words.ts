/**
 * Converts keywords to phrases, because an analyzed text field can only be searched for words and their order. Words
 * are split as by Lucene's standard analyzer (UAX #29 section 4.1, rules WB5 to WB13b).
 */

/** Words of a keyword; the characters between the words are ignored. */
export interface Phrase {
  readonly words: readonly string[];
  /**
   * True if the first word may be the end of a word of the text. A single word that is open on both sides may be
   * anywhere in a word of the text.
   */
  readonly isOpenBefore: boolean;
  /** True if the last word may be the beginning of a word of the text. */
  readonly isOpenAfter: boolean;
}

/** Word with its position in the text. */
export interface Token {
  readonly word: string;
  readonly start: number;
  readonly end: number;
}

/**
 * ASCII words consist of letters, digits and `_`. Between letters, they can also contain `:`, `.` and `'`; between
 * digits, `.`, `'`, `,` and `;`.
 */
const words = /_*[A-Za-z0-9](?:[A-Za-z0-9_]|(?<=[A-Za-z])[:.'](?=[A-Za-z])|(?<=[0-9])[.',;](?=[0-9]))*/g;
/** Maximum word length of the analyzer, which cuts longer words. */
const maxWordLength = 255;

/** Splits ASCII text into words. Returns undefined for other text, which only the analyzer can split. */
export function tokensOf(text: string): readonly Token[] | undefined {
  if (/[^\0-\x7f]/.test(text)) return undefined;
  return [...text.matchAll(words)].flatMap(({ 0: whole, index }) =>
    Array.from(whole.toLowerCase().match(new RegExp(`.{1,${maxWordLength}}`, 'g')) ?? [], (word, piece) => {
      const start = index + piece * maxWordLength;
      return { word, start, end: start + word.length };
    }),
  );
}

/**
 * ASCII characters that always end a word. Quotation marks do not always end a word, because they can occur between
 * Hebrew letters.
 */
const separators = /[^\w.:',;"\u0080-\uffff]/;

/** Returns the phrase of a keyword; undefined if it contains no words. */
export function phraseOf(text: string, tokens: readonly Token[]): Phrase | undefined {
  const [first, last] = [tokens[0], tokens.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  return {
    words: tokens.map(({ word }) => word),
    isOpenBefore: !separators.test(text[first.start - 1] ?? ''),
    isOpenAfter: !separators.test(text[last.end] ?? ''),
  };
}
