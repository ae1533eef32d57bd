import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { formatted } from '../../../../src/http/response/pretty.ts';

const waiting = new AbortController();

async function yamlOf(pieces: readonly Buffer[]): Promise<string> {
  const text: Buffer[] = [];
  for await (const part of (await formatted([pieces], 'application/yaml', waiting)).parts) text.push(...part);
  return Buffer.concat(text).toString('utf8');
}

const value = {
  kind: 'NodeList',
  apiVersion: 'v1',
  metadata: { resourceVersion: '12', labels: {}, annotations: { 'a.b/c': 'true', on: 'off', '': '', '1': '1e3' } },
  empty: [],
  nested: [[1, -2.5e-7, []], [[{}]], [{ a: null, b: [true, { c: false }] }, 'x']],
  texts: [
    '',
    ' ',
    'a b',
    '- a',
    'a: b',
    '#',
    '~',
    'null',
    'Yes',
    '2024-01-01',
    '0x1',
    '.inf',
    '"',
    '\\',
    'ö\n\t\u0001 "q" \\"',
    '☃',
  ],
  long: 'a'.repeat(64),
  longer: 'a'.repeat(70_000),
};

test('JSON is converted to YAML of the same value, however the text is split into chunks', async () => {
  const json = Buffer.from(`${JSON.stringify(value)}\n`);
  const whole = await yamlOf([json]);
  expect(parse(whole)).toEqual(value);
  expect(parse(whole, { version: '1.1' })).toEqual(value);
  const bytes = Array.from(json.subarray(0), (byte) => Buffer.from([byte]));
  expect(await yamlOf(bytes)).toBe(whole);
});

test('YAML is written in block style, with simple strings that have no quotes', async () => {
  const json = Buffer.from('{"kind":"Node","labels":{},"list":[{"a":"b","c":[1]},[2,"3"]]}');
  expect(await yamlOf([json])).toBe(`kind: Node
labels: {}
list:
  - a: b
    c:
      - 1
  - - 2
    - "3"
`);
});
