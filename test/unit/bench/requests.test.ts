import { describe, expect, test } from '@jest/globals';
import { numbered, problemOf, request, type Expected } from '../../bench/requests.ts';

const list = (names: readonly string[], totalItems?: number): string =>
  JSON.stringify({ items: names.map((name) => ({ metadata: { name } })), totalItems });

const problem = (text: string, expected: Expected, status = 200): string | undefined =>
  problemOf({ status, bytes: text.length, gzip: false, body: Buffer.from(text) }, expected);

describe('problemOf()', () => {
  test('problemOf() reports no problem with the expected response', () => {
    expect(problem('ok', { text: 'ok' })).toBeUndefined();
    expect(problem('any bytes', {})).toBeUndefined();
    expect(problem('{"metadata":{"name":"node-1"}}', { name: 'node-1' })).toBeUndefined();
    expect(problem(list(['a', 'b'], 7), { items: 2, names: ['a', 'b'], total: 7 })).toBeUndefined();
    expect(problem(list(['node-2'], 1), { contains: '2', of: 11 })).toBeUndefined();
  });

  test.each<[string, string, Expected]>([
    ['no yes in the body', 'no', { text: 'yes' }],
    ['the object node-2 instead of node-1', '{"metadata":{"name":"node-2"}}', { name: 'node-1' }],
    ['items: 2 instead of 3', list(['a', 'b']), { items: 3 }],
    ['different names: 1 instead of 2', list(['a', 'a']), { items: 2 }],
    ['totalItems 7 instead of 8', list(['a'], 7), { total: 8 }],
    ['the names b,a instead of a,b', list(['b', 'a']), { names: ['a', 'b'] }],
    ['a name without 2', list(['node-1'], 1), { contains: '2', of: 11 }],
    ['totalItems 1 instead of 3', list(['node-1'], 1), { contains: '1', of: 11 }],
    ['2 bytes instead of 3', 'ok', { bytes: 3 }],
    ['no gzip', 'ok', { gzip: true }],
  ])('problemOf() reports "%s"', (words, text, expected) => {
    expect(problem(text, expected)).toContain(words);
  });

  test('problemOf() reports an error response with its text', () => {
    expect(problem('too many requests', {}, 429)).toBe('status 429: too many requests');
  });
});

describe('numbered()', () => {
  test('numbered() inserts a different number into each request with a placeholder, and into the expected response', () => {
    const { text, expected } = numbered(request('/x?name=~n~', { contains: '~n~', of: 5 }), 1_200_034);
    expect(text).toContain('GET /x?name=34 HTTP/1.1\r\n');
    expect(expected).toEqual({ contains: '34', of: 5 });
  });

  test('numbered() leaves requests without a placeholder unchanged', () => {
    const one = request('/x', { total: 1 });
    expect(numbered(one, 5)).toEqual(one);
  });
});
