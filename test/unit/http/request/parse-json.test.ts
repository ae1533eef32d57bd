import { expect, test } from '@jest/globals';
import { parseJSON } from '../../../../src/http/request/parse-json.ts';

const nested = (levels: number): string => '[{"a":'.repeat(levels / 2) + '0' + '}]'.repeat(levels / 2);

test.each([
  nested(64),
  JSON.stringify('['.repeat(1_000)),
  JSON.stringify({ [String.raw`\"[`]: ['"', '\\', '{'.repeat(1_000)] }),
  `[${'[],'.repeat(4_095)}0]`,
  JSON.stringify(','.repeat(10_000)),
  '["1e400",1e308,1e-400,"Infinity"]',
])('parseJSON() returns the same value as JSON.parse()', (text) => {
  expect(parseJSON(Buffer.from(text))).toEqual(JSON.parse(text));
});

test.each([nested(66), '['.repeat(1_000_000), '{"a":'.repeat(65), `["\\"",${'['.repeat(64)}`])(
  'parseJSON() rejects nesting of more than 64 levels',
  (text) => {
    expect(() => parseJSON(Buffer.from(text))).toThrow(new SyntaxError('is nested deeper than 64 levels'));
  },
);

test.each([`[${'0,'.repeat(4_096)}0]`, `{${'"a":[],'.repeat(4_096)}"b":0}`, ','.repeat(64 * 1024)])(
  'parseJSON() rejects more than 4096 values',
  (text) => {
    expect(() => parseJSON(Buffer.from(text))).toThrow(new SyntaxError('has more than 4096 values'));
  },
);

test.each(['', '{', 'secret', '"\\'])('parseJSON() rejects %j without quoting it', (text) => {
  expect(() => parseJSON(Buffer.from(text))).toThrow(new SyntaxError('is not JSON in UTF-8'));
});

test.each(['1e400', '[-1E+309]', '{"a":1.5e0400}', '9'.repeat(400), `${'9'.repeat(250)}e70`])(
  'parseJSON() rejects %s, which contains a number beyond the range of a double',
  (text) => {
    expect(() => parseJSON(Buffer.from(text))).toThrow(new SyntaxError('contains a number larger than 1.8e308'));
  },
);

test('parseJSON() rejects bytes that are not UTF-8', () => {
  expect(() => parseJSON(Buffer.from('"\xff"', 'latin1'))).toThrow(new SyntaxError('is not JSON in UTF-8'));
});
