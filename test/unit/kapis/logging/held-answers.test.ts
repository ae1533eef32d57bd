import { expect, test } from '@jest/globals';
import { HeldAnswers } from '../../../../src/kapis/logging/held-answers.ts';

const large = 50 * 1024 * 1024;

test('large answers have so much room, until their readers have taken them', () => {
  const answers = new HeldAnswers();
  const first = answers.take(large);
  answers.take(large);
  expect(() => answers.take(large)).toThrow(expect.objectContaining({ code: 429, headers: { 'Retry-After': '1' } }));
  first();
  expect(() => answers.take(large)).not.toThrow();
});

test('small ones are always answered', () => {
  const answers = new HeldAnswers();
  answers.take(2 * large);
  for (let count = 0; count < 1_000; count += 1) answers.take(256 * 1024)();
  expect(() => answers.take(256 * 1024)).not.toThrow();
});
