import { expect, test } from '@jest/globals';
import { parseJSON } from '../../../../src/http/request/parse-json.ts';

const nested = (levels: number): string => '[{"a":'.repeat(levels / 2) + '0' + '}]'.repeat(levels / 2);

test.each([
  nested(64),
  JSON.stringify('['.repeat(1_000)),
  JSON.stringify({ [String.raw`\"[`]: ['"', '\\', '{'.repeat(1_000)] }),
  `[${'[],'.repeat(1_000)}0]`,
  '["1e400",1e308,1e-400,"Infinity"]',
])('parseJSON returns what JSON.parse does', (text) => {
  expect(parseJSON(Buffer.from(text))).toEqual(JSON.parse(text));
});

test.each([nested(66), '['.repeat(1_000_000), '{"a":'.repeat(65), `["\\"",${'['.repeat(64)}`])(
  'parseJSON refuses nesting beyond 64 levels',
  (text) => {
    expect(() => parseJSON(Buffer.from(text))).toThrow(new SyntaxError('is nested deeper than 64 levels'));
  },
);

test.each(['', '{', 'secret', '"\\'])('parseJSON refuses %j and quotes none of it', (text) => {
  expect(() => parseJSON(Buffer.from(text))).toThrow(new SyntaxError('is not JSON in UTF-8'));
});

test.each(['1e400', '[-1E+309]', '{"a":1.5e0400}', '9'.repeat(400), `${'9'.repeat(250)}e70`])(
  'parseJSON refuses %s, which is Infinity',
  (text) => {
    expect(() => parseJSON(Buffer.from(text))).toThrow(new SyntaxError('has a number beyond 1.8e308'));
  },
);

test('parseJSON refuses bytes that are not UTF-8', () => {
  expect(() => parseJSON(Buffer.from('"\xff"', 'latin1'))).toThrow(new SyntaxError('is not JSON in UTF-8'));
});
