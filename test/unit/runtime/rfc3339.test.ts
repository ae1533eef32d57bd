import { describe, expect, test } from '@jest/globals';
import { compareTimes, parseMilliseconds, parseTime, type Time } from '../../../src/runtime/time.ts';

const at = (text: string): Time => parseTime(text) as Time;

describe('RFC 3339 times', () => {
  test.each([
    ['2026-11-22T10:00:00Z', 1_795_341_600_000, 0],
    ['2026-11-22T10:00:00.000001Z', 1_795_341_600_000, 1_000],
    ['2026-11-22T10:00:00.5Z', 1_795_341_600_000, 500_000_000],
    ['2026-11-22T10:00:00.1234567899Z', 1_795_341_600_000, 123_456_789],
    ['2026-11-22T15:30:00.123456789+05:30', 1_795_341_600_000, 123_456_789],
    ['2026-11-22T09:00:00-01:00', 1_795_341_600_000, 0],
    ['1969-12-31T23:59:59.999999Z', -1_000, 999_999_000],
  ])('the RFC 3339 time %s is parsed', (text, second, nanosecond) => {
    expect(parseTime(text)).toEqual({ second, nanosecond });
    expect(parseMilliseconds(text)).toBe(second + Math.floor(nanosecond / 1_000_000));
  });

  test.each([
    '',
    '2026-11-22',
    '2026-11-22 10:00:00Z',
    '2026-11-22T10:00:00',
    '2026-11-22T10:00:00.Z',
    '2026-11-22T10:00:00+0100',
    '2026-13-22T10:00:00Z',
    '2026-11-22T10:00:60Z',
    '2026-11-22T10:00:00+24:00',
    'x2026-11-22T10:00:00Z',
    '2026-11-22T10:00:00Zx',
  ])('the RFC 3339 time "%s" is rejected', (text) => {
    expect(parseTime(text)).toBeUndefined();
    expect(parseMilliseconds(text)).toBeNaN();
  });

  test('RFC 3339 times are compared by second, then by nanosecond', () => {
    const early = at('2026-11-22T10:00:00.000001Z');
    const late = at('2026-11-22T11:00:00.000002+01:00');
    expect(compareTimes(early, late)).toBeLessThan(0);
    expect(compareTimes(late, early)).toBeGreaterThan(0);
    expect(compareTimes(early, at('2026-11-22T10:00:00.0000010Z'))).toBe(0);
    expect(compareTimes(at('2026-11-22T10:00:01Z'), late)).toBeGreaterThan(0);
  });
});
