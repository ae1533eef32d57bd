import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { blocksOf, durationOf, Excerpt, sizeOf } from '../../../../../src/docs/explorer/browser/text.ts';

describe('an excerpt', () => {
  test.each([
    ['truncated', 'beginning', ['abc', 'def'], 'abcd'],
    ['complete', 'beginning', ['abcd'], 'abcd'],
    ['complete', 'beginning', ['abcd', ''], 'abcd'],
    ['complete', 'end', ['ab\n', 'cd\n'], 'ab\ncd\n'],
    ['truncated', 'end', ['abcd\n', 'efg\n', 'h\n'], 'h\n'],
  ] as const)('a %s excerpt of the %s of the chunks %j is %j', (outcome, keeps, pieces, text) => {
    const excerpt = new Excerpt(4, keeps);
    for (const piece of pieces) excerpt.add(piece);
    expect([excerpt.text, excerpt.isCut]).toEqual([text, outcome === 'truncated']);
  });

  test('an excerpt of the end of a stream has at most twice the maximum length, and starts with a whole line', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ maxLength: 30 })), (lines) => {
        const excerpt = new Excerpt(40, 'end');
        const whole = lines.map((line) => `${line.replaceAll('\n', ' ')}\n`);
        for (const line of whole) excerpt.add(line);
        expect(excerpt.text.length).toBeLessThanOrEqual(80);
        expect(whole.join('').endsWith(excerpt.text)).toBe(true);
        expect(`\n${whole.join('')}`).toContain(`\n${excerpt.text}`);
        expect(excerpt.text === '').toBe(whole.length === 0);
      }),
    );
  });
});

test.each([
  [0, '0 bytes'],
  [1, '1 byte'],
  [1023, '1023 bytes'],
  [1024, '1.0 KiB'],
  [30_091_346, '28.7 MiB'],
  [5e12, '4656.6 GiB'],
])('sizeOf(%d) returns %s', (bytes, words) => {
  expect(sizeOf(bytes)).toBe(words);
});

test.each([
  [0, '0 ms'],
  [86.6, '87 ms'],
  [4_100, '4.1 s'],
  [90_000, '1.5 min'],
  [7_200_000, '2.0 h'],
])('durationOf(%d) returns %s', (milliseconds, words) => {
  expect(durationOf(milliseconds)).toBe(words);
});

const shape = (text: string): unknown =>
  blocksOf(text).map(({ isList, items }) => [
    isList,
    ...items.map((spans) => spans.map(({ isCode, text: of }) => (isCode ? [of] : of))),
  ]);

describe('blocksOf()', () => {
  test.each([
    [
      'paragraphs',
      'a\nb\n\nc',
      [
        [false, ['a b']],
        [false, ['c']],
      ],
    ],
    ['lists', '- a\n- b\n  c', [[true, ['a'], ['b c']]]],
    ['code', 'a `b` c', [[false, ['a ', ['b'], ' c']]]],
    ['a backtick without an end as text', 'a `b', [[false, ['a `b']]]],
    ['other markup as text', '<b>*x*</b> [y](z)', [[false, ['<b>*x*</b> [y](z)']]]],
    ['an empty text', ' \n\n ', []],
  ])('blocksOf() parses %s', (_, text, expected) => {
    expect(shape(text)).toEqual(expected);
  });

  test.each([
    ['blanks', ' '],
    ['backticks', '`a`'],
    ['words', 'word '],
  ])('blocksOf() truncates a text with very many %s', (_, part) => {
    const [block] = blocksOf(`x${part.repeat(300_000)}y`);
    const spans = block?.items[0] ?? [];
    expect(spans.map(({ text }) => text).join('').length).toBeLessThanOrEqual(10_001);
    expect(spans.at(-1)?.text.endsWith('…')).toBe(true);
  });
});
