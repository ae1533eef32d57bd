import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { blocksOf, Excerpt, Indenter, sizeOf } from '../../../../../src/docs/explorer/browser/text.ts';

const indented = (...parts: readonly string[]): string => {
  const indenter = new Indenter();
  return parts.map((part) => indenter.add(part)).join('');
};

describe('JSON is indented', () => {
  test('as JSON.stringify does it, however it was written and in whatever pieces it comes', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1, '\t'), fc.nat(), fc.nat(), (value, space, a, b) => {
        const text = JSON.stringify(value, undefined, space);
        const [from = 0, to = 0] = [a % (text.length + 1), b % (text.length + 1)].toSorted((x, y) => x - y);
        const pieces = [text.slice(0, from), text.slice(from, to), text.slice(to)];
        expect(indented(...pieces)).toBe(JSON.stringify(value, undefined, 2));
      }),
    );
  });

  test.each([
    ['what is cut off', '{"a":[1,{"b":"c', '{\n  "a": [\n    1,\n    {\n      "b": "c'],
    ['numbers as they are', '[1.0,12345678901234567890]', '[\n  1.0,\n  12345678901234567890\n]'],
    ['one document behind the other', '{"a":1}\n{"b":2}\n', '{\n  "a": 1\n}\n{\n  "b": 2\n}'],
    ['what is none', ']]}}x', '\n]\n]\n}\n}\nx'],
    ['nothing', '', ''],
  ])('%s', (_, text, expected) => {
    expect(indented(text)).toBe(expected);
  });

  test('which does not grow without end in depth', () => {
    expect(indented('['.repeat(5_000)).length).toBeLessThan(5_000 * 90);
  });
});

describe('an excerpt', () => {
  test.each([
    ['beginning', ['abc', 'def'], 'abcd', true],
    ['beginning', ['abcd'], 'abcd', false],
    ['beginning', ['abcd', ''], 'abcd', false],
    ['end', ['ab\n', 'cd\n'], 'ab\ncd\n', false],
    ['end', ['abcd\n', 'efg\n', 'h\n'], 'h\n', true],
  ] as const)('of the %s of %j is %j, cut: %s', (keeps, pieces, text, isCut) => {
    const excerpt = new Excerpt(4, keeps);
    for (const piece of pieces) excerpt.add(piece);
    expect([excerpt.text, excerpt.isCut]).toEqual([text, isCut]);
  });

  test('of an end is never longer than twice what it may be, and has the last lines whole', () => {
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
])('%d bytes are %s', (bytes, words) => {
  expect(sizeOf(bytes)).toBe(words);
});

const shape = (text: string): unknown =>
  blocksOf(text).map(({ isList, items }) => [
    isList,
    ...items.map((spans) => spans.map(({ isCode, text: of }) => (isCode ? [of] : of))),
  ]);

describe('of markup a text has', () => {
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
    ['no code without an end', 'a `b', [[false, ['a `b']]]],
    ['nothing else', '<b>*x*</b> [y](z)', [[false, ['<b>*x*</b> [y](z)']]]],
    ['nothing at all', ' \n\n ', []],
  ])('%s', (_, text, expected) => {
    expect(shape(text)).toEqual(expected);
  });

  test.each([
    ['blanks', ' '],
    ['backticks', '`a`'],
    ['words', 'word '],
  ])('no more than somebody reads: the beginning of very many %s', (_, part) => {
    const [block] = blocksOf(`x${part.repeat(300_000)}y`);
    const spans = block?.items[0] ?? [];
    expect(spans.map(({ text }) => text).join('').length).toBeLessThanOrEqual(10_001);
    expect(spans.at(-1)?.text.endsWith('…')).toBe(true);
  });
});
