import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { Indenter, tokensOf } from '../../../../../src/docs/explorer/browser/json.ts';

const indented = (...parts: readonly string[]): string => {
  const indenter = new Indenter();
  return parts.map((part) => indenter.add(part)).join('');
};

describe('the JSON indenter', () => {
  test('the JSON indenter indents like JSON.stringify(), whatever the white space and the chunks of the input', () => {
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
    ['truncated JSON', '{"a":[1,{"b":"c', '{\n  "a": [\n    1,\n    {\n      "b": "c'],
    ['numbers without changing them', '[1.0,12345678901234567890]', '[\n  1.0,\n  12345678901234567890\n]'],
    ['several documents', '{"a":1}\n{"b":2}\n', '{\n  "a": 1\n}\n{\n  "b": 2\n}'],
    ['text that is not JSON', ']]}}x', '\n]\n]\n}\n}\nx'],
    ['an empty text', '', ''],
  ])('the JSON indenter indents %s', (_, text, expected) => {
    expect(indented(text)).toBe(expected);
  });

  test('the JSON indenter limits the indentation of deeply nested JSON', () => {
    expect(indented('['.repeat(5_000)).length).toBeLessThan(5_000 * 90);
  });
});

const tokens = (text: string): unknown => tokensOf(text).map(({ kind, start, end }) => [kind, text.slice(start, end)]);

describe('tokensOf()', () => {
  test('tokensOf() distinguishes keys, strings and literals', () => {
    expect(tokens('{"a": "b", "c" : [-1.5e3, true, null], "d\\"": ""}')).toEqual([
      ['key', '"a"'],
      ['string', '"b"'],
      ['key', '"c"'],
      ['literal', '-1.5e3'],
      ['literal', 'true'],
      ['literal', 'null'],
      ['key', '"d\\""'],
      ['string', '""'],
    ]);
  });

  test('tokensOf() ends a truncated string at the end of its line', () => {
    expect(tokens('{"a": "bc\n"d": 1')).toEqual([
      ['key', '"a"'],
      ['string', '"bc'],
      ['key', '"d"'],
      ['literal', '1'],
    ]);
  });

  test('tokensOf() finds every string in a JSON array of strings', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' })), (strings) => {
        const found = tokens(JSON.stringify(strings));
        expect(found).toEqual(strings.map((one) => ['string', JSON.stringify(one)]));
      }),
    );
  });

  test.each(['"', '\\', '"\\', '" ', '-', '1'])('tokensOf() reads 200,000 repetitions of %j in linear time', (part) => {
    expect(tokensOf(part.repeat(200_000)).length).toBeLessThanOrEqual(400_000);
  });
});
