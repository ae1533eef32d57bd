import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { phraseOf, tokensOf, type Phrase } from '../../../../../src/logs/stores/search/words.ts';

const phraseIn = (text: string): Phrase | undefined => phraseOf(text, tokensOf(text) ?? []);

test.each<[string, Phrase]>([
  ['conn', { words: ['conn'], isOpenBefore: true, isOpenAfter: true }],
  [' conn', { words: ['conn'], isOpenBefore: false, isOpenAfter: true }],
  ['conn=', { words: ['conn'], isOpenBefore: true, isOpenAfter: false }],
  ['[conn]', { words: ['conn'], isOpenBefore: false, isOpenAfter: false }],
  // Dots, apostrophes and colons between letters are part of a word.
  [".conn'", { words: ['conn'], isOpenBefore: true, isOpenAfter: true }],
  ['_conn:', { words: ['_conn'], isOpenBefore: true, isOpenAfter: true }],
  ['GET /api ', { words: ['get', 'api'], isOpenBefore: true, isOpenAfter: false }],
])('the log keyword %j is split into %j', (keyword, phrase) => {
  expect(phraseIn(keyword)).toEqual(phrase);
});

test.each(['', ' ', '->', '__', '...'])('the log keyword %j has no words', (keyword) => {
  expect(phraseIn(keyword)).toBeUndefined();
});

/** Reports whether the log store finds the phrase in the text. */
function finds({ words, isOpenBefore, isOpenAfter }: Phrase, text: string): boolean {
  const found = (tokensOf(text) ?? []).map(({ word }) => word);
  const [first = '', last = ''] = [words[0], words.at(-1)];
  if (words.length === 1)
    return found.some(
      (word) =>
        word.includes(first) && (isOpenBefore || word.startsWith(first)) && (isOpenAfter || word.endsWith(first)),
    );
  return found.some((_, from) =>
    words.every((word, index) => {
      const there = found[from + index] ?? '';
      if (index === 0) return isOpenBefore ? there.endsWith(first) : there === first;
      if (index === words.length - 1) return isOpenAfter ? there.startsWith(last) : there === last;
      return there === word;
    }),
  );
}

test('every substring of a log text with at least one word finds this text', () => {
  const texts = fc.string({ unit: fc.constantFrom(...Array.from(`aB1_.:',;-/ "=`)), minLength: 1, maxLength: 30 });
  const isFound = fc.property(texts, fc.nat(29), fc.integer({ min: 1, max: 30 }), (text, from, length) => {
    const phrase = phraseIn(text.slice(from, from + length).toUpperCase());
    return phrase === undefined || finds(phrase, text);
  });
  expect(fc.check(isFound, { numRuns: 5_000 }).counterexample).toBeNull();
});
