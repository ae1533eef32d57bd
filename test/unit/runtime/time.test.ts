import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { rfc3339 } from '../../../src/runtime/time.ts';

test('times are formatted like Date.toISOString(), whatever the order of the calls', () => {
  fc.assert(
    fc.property(fc.array(fc.date({ noInvalidDate: true }), { maxLength: 20 }), (dates) => {
      // Times within the same second use the cached text.
      const times = dates.flatMap((date) => [date.getTime(), Math.floor(date.getTime() / 1_000) * 1_000 + 999]);
      const valid = times.filter((time) => Math.abs(time) <= 8.64e15);
      expect(valid.map(rfc3339)).toEqual(valid.map((time) => new Date(time).toISOString()));
    }),
  );
});

test('a formatted time is rounded down to milliseconds', () => {
  expect(rfc3339(1_700_000_000_123.999)).toBe('2023-11-14T22:13:20.123Z');
});

test('formatting an invalid time throws an error, even after a valid time', () => {
  rfc3339(0);
  expect(() => rfc3339(NaN)).toThrow(RangeError);
  expect(rfc3339(1)).toBe('1970-01-01T00:00:00.001Z');
});
