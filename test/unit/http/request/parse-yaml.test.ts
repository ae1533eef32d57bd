import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { stringify } from 'yaml';
import { parseYAML } from '../../../../src/http/request/parse-yaml.ts';

const parsed = (text: string): unknown => parseYAML(Buffer.from(text));

describe('parseYAML()', () => {
  test.each<[string, unknown]>([
    ['a: 1\nb:\n  - x\n  - "y"\n', { a: 1, b: ['x', 'y'] }],
    ['# comment\n---\nkind: User # here\nmetadata: {name: anna}\n', { kind: 'User', metadata: { name: 'anna' } }],
    [
      'a: |\n  *no alias\n  ---\n  <<: !x &y\nb: >-\n  one\n  two\n',
      { a: '*no alias\n---\n<<: !x &y\n', b: 'one two' },
    ],
    [`a: 'it''s'\nb: "\\u0041\\n"\n"<<": "*a"`, { a: "it's", b: 'A\n', '<<': '*a' }],
    [
      'a: yes\nb: true\nc: ~\nd: null\ne:\nf: 2024-01-01',
      { a: 'yes', b: true, c: null, d: null, e: null, f: '2024-01-01' },
    ],
    ['a: 0x10\nb: 1e3\nc: -0.5\nd: Infinity\ne: .5', { a: 16, b: 1000, c: -0.5, d: 'Infinity', e: 0.5 }],
    ['{"a": [1, {"b": null}], "c": "d"}', { a: [1, { b: null }], c: 'd' }],
    ['a: 1\r\nb: 2\r\n', { a: 1, b: 2 }],
    ['\ufeffa: 1', { a: 1 }],
    ['__proto__: {a: 1}', JSON.parse('{"__proto__": {"a": 1}}')],
    ['1: a\ntrue: b', { '1': 'a', true: 'b' }],
    ['just text', 'just text'],
    ['# nothing', null],
    [`a: |\n${' b\n'.repeat(990)}`, { a: 'b\n'.repeat(990) }],
    [`a: ${'x'.repeat(60_000)}`, { a: 'x'.repeat(60_000) }],
    [
      Array.from({ length: 160 }, (_, at) => `  k${at}: v`).join('\n'),
      Object.fromEntries(Array.from({ length: 160 }, (_, at) => [`k${at}`, 'v'])),
    ],
  ])('parseYAML() returns the value of %j', (text, value) => expect(parsed(text)).toEqual(value));

  test('parseYAML() returns every value that JSON can express', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        const json = JSON.stringify(value);
        const texts = [json, stringify(value, { aliasDuplicateObjects: false })].filter(
          (text) => !/[^\n -~]/.test(text),
        );
        expect(texts.map(parsed)).toEqual(texts.map(() => JSON.parse(json) as unknown));
      }),
    );
  });
});

describe('parseYAML()', () => {
  test.each([
    ['a: &x 1\nb: 2', 1, 4, 'anchors are not accepted; repeat the value, or put the text in quotes'],
    ['a: 1\nb: *x', 2, 4, 'aliases are not accepted; repeat the value, or put the text in quotes'],
    ['a: !!str 1', 1, 4, 'tags are not accepted; remove the tag, or put the text in quotes'],
    ['%YAML 1.1\n---\na: 1', 1, 1, 'directives are not accepted; remove the line'],
    ['a: 1\n? b\n: c', 2, 1, 'keys after "?" are not accepted; write "key: value"'],
    ['a:\n  <<: {b: 1}', 2, 3, 'merge keys are not accepted; repeat the keys, or put the text in quotes'],
    ['a: 1\n---\nb: 2', 2, 1, 'only one document is allowed'],
    ['a: 1\nb: 2\na: 3', 3, 1, 'duplicate key'],
    ['[a]: b', 1, 1, 'keys must be text'],
    ['a: 1\n b: 2', 1, 4, 'a key or list item follows a value; fix the indentation, or put the value in quotes'],
    ['a: b: c', 1, 4, 'a key or list item follows a value; fix the indentation, or put the value in quotes'],
    ['- a: 1\n  - b', 2, 1, 'a key or list item follows a value; fix the indentation, or put the value in quotes'],
    ['a: "b', 1, 6, 'a quote, bracket, colon, comma or space is missing'],
    ['a:\n\tb: 1', 2, 1, 'tabs are not allowed for indentation'],
    ['a: @b', 1, 4, 'plain text starts with a reserved character; put it in quotes'],
    ['a: .inf', 1, 4, 'infinity and numbers larger than 1.8e308 are not accepted; put text in quotes'],
    ['a: [-.NaN]', 1, 5, 'infinity and numbers larger than 1.8e308 are not accepted; put text in quotes'],
    ['a: 1e400', 1, 4, 'infinity and numbers larger than 1.8e308 are not accepted; put text in quotes'],
    [`a: ${'9'.repeat(400)}`, 1, 4, 'infinity and numbers larger than 1.8e308 are not accepted; put text in quotes'],
    ['a: "\u0000"', 1, 5, 'control characters are not accepted; use escape sequences in double quotes'],
    ['a: 1\nb: x\u2028c: 3', 2, 5, 'control characters are not accepted; use escape sequences in double quotes'],
    ['a: 1\rb: 2', 1, 5, 'control characters are not accepted; use escape sequences in double quotes'],
    [`a: ${'['.repeat(65)}`, 1, 68, 'at most 64 levels are accepted'],
    ['a: 1\n'.repeat(300), 201, 1, 'at most 1000 tokens (about 200 lines) are accepted; send JSON'],
    [`a:\n${' b\n'.repeat(1_000)}`, 2, 2, 'at most 1000 tokens (about 200 lines) are accepted; send JSON'],
    [`a: |\n${' b\n'.repeat(1_000)}`, 2, 1, 'at most 1000 tokens (about 200 lines) are accepted; send JSON'],
    ['\n'.repeat(65_536), 1001, 1, 'at most 1000 tokens (about 200 lines) are accepted; send JSON'],
  ])('parseYAML() rejects %j', (text, line, column, message) => {
    expect(() => parsed(text)).toThrow(
      new SyntaxError(`is not accepted as YAML: line ${line}, column ${column}: ${message}`),
    );
  });

  test('parseYAML() rejects block collections of more than 64 levels', () => {
    expect(() => parsed('- '.repeat(70))).toThrow(new SyntaxError('is nested deeper than 64 levels'));
  });

  test('parseYAML() rejects bytes that are not UTF-8', () => {
    expect(() => parseYAML(Buffer.from('a: \xff', 'latin1'))).toThrow(new SyntaxError('is not YAML in UTF-8'));
  });

  test('parseYAML() either parses a text or throws a SyntaxError that does not quote the text', () => {
    const pieces = [
      'secret',
      ' ',
      '\n',
      ': ',
      '- ',
      '? ',
      '[',
      ']',
      '{',
      '}',
      ',',
      '"',
      "'",
      '|',
      '>',
      '#',
      '&',
      '*',
      '!',
      '%',
      '@',
      '\t',
      '<<',
    ];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 40 }), (all) => {
        let message = 'is not refused';
        try {
          parsed(all.join(''));
        } catch (error) {
          message = error instanceof SyntaxError ? error.message : 'another error';
        }
        expect(message).toMatch(/^is not/);
        expect(message).not.toContain('secret');
      }),
      { numRuns: 2_000 },
    );
  });
});
