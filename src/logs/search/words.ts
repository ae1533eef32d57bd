/**
 * The words of a text, as Lucene's standard analyzer cuts it (UAX #29 sections 4.1 WB5 to WB13b): what a field of analyzed text can be asked
 * for without a doubt is a word, the beginning of one, or some that stand beside each other.
 */

/** Of ASCII: letters, digits and `_`, with a colon, point or apostrophe between letters, and point, apostrophe, comma or semicolon between digits. */
const words = /_*[A-Za-z0-9](?:[A-Za-z0-9_]|(?<=[A-Za-z])[:.'](?=[A-Za-z])|(?<=[0-9])[.',;](?=[0-9]))*/g;
/** The analyzer cuts what is longer. */
const longestWord = 255;

/** Undefined for what has other characters: their rules are the analyzer's own to know. */
export function wordsOf(text: string): readonly string[] | undefined {
  if (/[^\0-\x7f]/.test(text)) return undefined;
  return [...text.matchAll(words)].flatMap(
    ([word]) => word.toLowerCase().match(new RegExp(`.{1,${longestWord}}`, 'g')) ?? [],
  );
}
