import { expect, test } from '@jest/globals';
import { requestTimeout, validTimeout } from '../../../../src/http/request/request-timeout.ts';

test('the error for an invalid timeout contains only the first 64 characters of its value', () => {
  expect(() => validTimeout('x'.repeat(60_000))).toThrow(
    `invalid timeout specified in the request URL: "${'x'.repeat(64)}…" is not a duration such as "32s"`,
  );
});

test.each([
  ['', 0],
  ['timeout=1m30s', 90_000],
  ['timeout=soon', 0],
])('the deadline of a request with "?%s" is %d ms (0 means the default)', (query, milliseconds) => {
  expect(requestTimeout(new URLSearchParams(query))).toBe(milliseconds);
});
