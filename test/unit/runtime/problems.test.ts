import { expect, test } from '@jest/globals';
import { badRequest, OAuthError } from '../../../src/runtime/errors.ts';
import { describeProblems } from '../../../src/runtime/problems.ts';

const many = (count: number, length: number): string[] => Array.from({ length: count }, () => 'x'.repeat(length));
const described = (problems: readonly string[]): string => describeProblems(problems, (one) => one);

test.each([
  ['one problem', many(1, 9), 'xxxxxxxxx'],
  ['20 problems', many(20, 1), many(20, 1).join('; ')],
  ['21 problems', many(21, 1), `${many(20, 1).join('; ')}; and 1 more`],
  ['long problems', many(3, 1_000), `${many(2, 1_000).join('; ')}; and 1 more`],
])(
  'a description of %s contains as many problems as fit, and the number of further problems',
  (_, problems, expected) => {
    expect(described(problems)).toBe(expected);
  },
);

test('an error of 60,000 characters contributes at most 2,048 of them to the message of another error and to its causes', () => {
  const [long = ''] = many(1, 60_000);
  const causes = Array.from({ length: 30 }, () => ({ field: long, message: long }));
  const { message, details } = badRequest(long, { details: { name: long, causes } });
  expect(message).toBe(`${long.slice(0, 2_048)}…`);
  expect(JSON.stringify(details).length).toBeLessThan(3_000);
  expect(details?.causes?.[0]?.message).toMatch(/^x+…$/);
  expect(new OAuthError('invalid_request', long).message).toBe(message);
});
