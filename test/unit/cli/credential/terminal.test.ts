import { expect, test } from '@jest/globals';
import { shown } from '../../../../src/cli/credential/answers.ts';

test.each([
  [
    'what people write, in whatever script',
    'Zoë — 你好, http://a.example/?b=c 😀',
    'Zoë — 你好, http://a.example/?b=c 😀',
  ],
  ['an escape sequence', '\u001B[2J', '\\u{1b}[2J'],
  ['one of C1', '\u009B31m', '\\u{9b}31m'],
  ['a title', '\u001B]0;x\u0007', '\\u{1b}]0;x\\u{7}'],
  ['lines', 'a\r\n$ b\u2028c', 'a\\u{d}\\u{a}$ b\\u{2028}c'],
  ['another direction', 'a\u202Eb\u2066c\u200F', 'a\\u{202e}b\\u{2066}c\\u{200f}'],
  ['what cannot be seen', 'a\u200Bb\u{E0041}', 'a\\u{200b}b\\u{e0041}'],
  ['half a character', '\uD800', '\\u{d800}'],
])('%s', (_, text, expected) => {
  expect(shown(text)).toBe(expected);
});

test('is not longer than can be read', () => {
  expect(shown('\u001B'.repeat(5_000))).toHaveLength(1_001);
  expect(shown('a'.repeat(1_000))).toHaveLength(1_000);
});
