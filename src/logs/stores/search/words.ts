/**
 * What a field of analyzed text can be asked for: its words, and which of them stand beside each other. Words are cut as Lucene's standard
 * analyzer does it (UAX #29 sections 4.1 WB5 to WB13b).
 */

/** A keyword as the words that it is made of; what is between them is not told apart. */
export interface Phrase {
  readonly words: readonly string[];
  /** The first may be the end of a word of the text, or with the last, where they are the same, anywhere in it. */
  readonly isOpenBefore: boolean;
  /** The last may be the beginning of one. */
  readonly isOpenAfter: boolean;
}

/** A word, and from where to where in the text it stands. */
export interface Token {
  readonly word: string;
  readonly start: number;
  readonly end: number;
}

/** Of ASCII: letters, digits and `_`, with a colon, point or apostrophe between letters, and point, apostrophe, comma or semicolon between digits. */
const words = /_*[A-Za-z0-9](?:[A-Za-z0-9_]|(?<=[A-Za-z])[:.'](?=[A-Za-z])|(?<=[0-9])[.',;](?=[0-9]))*/g;
/** The analyzer cuts what is longer. */
const longestWord = 255;

/** Undefined for what has other characters: their rules are the analyzer's own to know. */
export function tokensOf(text: string): readonly Token[] | undefined {
  if (/[^\0-\x7f]/.test(text)) return undefined;
  return [...text.matchAll(words)].flatMap(({ 0: whole, index }) =>
    Array.from(whole.toLowerCase().match(new RegExp(`.{1,${longestWord}}`, 'g')) ?? [], (word, piece) => {
      const start = index + piece * longestWord;
      return { word, start, end: start + word.length };
    }),
  );
}

/** What ends every word: blanks, and of ASCII what can be in no word. A quotation mark can, between letters of Hebrew. */
const parts = /[^\w.:',;"\u0080-\uffff]/;

/** Undefined for a text without words. */
export function phraseOf(text: string, tokens: readonly Token[]): Phrase | undefined {
  const [first, last] = [tokens[0], tokens.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  return {
    words: tokens.map(({ word }) => word),
    isOpenBefore: !parts.test(text[first.start - 1] ?? ''),
    isOpenAfter: !parts.test(text[last.end] ?? ''),
  };
}
