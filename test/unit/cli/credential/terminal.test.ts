import { expect, test } from '@jest/globals';
import { terminalSafe } from '../../../../src/cli/credential/responses.ts';

test.each([
  ['text in any script', 'Zoë — 你好, http://a.example/?b=c 😀', 'Zoë — 你好, http://a.example/?b=c 😀'],
  ['an escape sequence', '\u001B[2J', '\\u{1b}[2J'],
  ['a C1 control character', '\u009B31m', '\\u{9b}31m'],
  ['a sequence that sets the window title', '\u001B]0;x\u0007', '\\u{1b}]0;x\\u{7}'],
  ['line breaks', 'a\r\n$ b\u2028c', 'a\\u{d}\\u{a}$ b\\u{2028}c'],
  ['bidirectional controls', 'a\u202Eb\u2066c\u200F', 'a\\u{202e}b\\u{2066}c\\u{200f}'],
  ['invisible characters', 'a\u200Bb\u{E0041}', 'a\\u{200b}b\\u{e0041}'],
  ['a lone surrogate', '\uD800', '\\u{d800}'],
])('text from a server is escaped for the terminal: %s', (_, text, expected) => {
  expect(terminalSafe(text)).toBe(expected);
});

test('text from a server is truncated for the terminal', () => {
  expect(terminalSafe('\u001B'.repeat(5_000))).toHaveLength(1_001);
  expect(terminalSafe('a'.repeat(1_000))).toHaveLength(1_000);
});
