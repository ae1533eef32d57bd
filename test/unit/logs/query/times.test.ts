import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { bucketOf, bucketsBetween, lengthOf, nextBucket } from '../../../../src/logs/query/intervals.ts';
import { intervalUnits, type Interval } from '../../../../src/logs/stores/log-store.ts';
import { millisecondsOf, normalizeTime, secondsOf, timeText } from '../../../../src/logs/query/times.ts';

describe('log times', () => {
  test.each([
    ['2026-11-22T10:00:00Z', '2026-11-22T10:00:00.000000000Z'],
    ['2026-11-22T10:00:00.5Z', '2026-11-22T10:00:00.500000000Z'],
    ['2026-11-22T10:00:00.123456789+05:30', '2026-11-22T04:30:00.123456789Z'],
    ['2026-11-22T10:00:00-01:00', '2026-11-22T11:00:00.000000000Z'],
    ['2026-13-22T10:00:00Z', undefined],
    ['2026-11-22 10:00:00Z', undefined],
    ['2026-11-22T10:00:00', undefined],
    ['', undefined],
  ])('the log time %s is parsed as %s', (text, expected) => {
    expect(normalizeTime(text)).toBe(expected);
  });

  test('a log time in whole seconds is formatted and parsed back to the same second', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 253_402_300_799 }), (seconds) => {
        expect(secondsOf(timeText(seconds))).toBe(seconds);
        expect(millisecondsOf(timeText(seconds))).toBe(seconds * 1_000);
        expect(normalizeTime(timeText(seconds))).toBe(timeText(seconds));
      }),
    );
  });
});

const iso = (text: string): number => Date.parse(text);

describe('histogram buckets', () => {
  test.each<[Interval, string, string]>([
    [{ count: 15, unit: 'm' }, '2026-11-22T10:44:59.999Z', '2026-11-22T10:30:00Z'],
    [{ count: 1, unit: 'd' }, '2026-11-22T23:59:59Z', '2026-11-22T00:00:00Z'],
    [{ count: 1, unit: 'w' }, '2026-11-22T23:59:59Z', '2026-11-16T00:00:00Z'],
    [{ count: 1, unit: 'w' }, '2026-11-23T00:00:00Z', '2026-11-23T00:00:00Z'],
    [{ count: 1, unit: 'w' }, '1970-01-01T00:00:00Z', '1969-12-29T00:00:00Z'],
    [{ count: 1, unit: 'M' }, '2024-02-29T12:00:00Z', '2024-02-01T00:00:00Z'],
    [{ count: 1, unit: 'q' }, '2026-11-22T10:00:00Z', '2026-10-01T00:00:00Z'],
    [{ count: 1, unit: 'y' }, '2026-11-22T10:00:00Z', '2026-01-01T00:00:00Z'],
  ])('the histogram bucket %j of the time %s starts at %s', (interval, time, expected) => {
    expect(bucketOf(iso(time), interval)).toBe(iso(expected));
  });

  test('histogram buckets are adjacent', () => {
    const interval = fc.constantFrom(...intervalUnits).map((unit) => ({ count: 1, unit }));
    fc.assert(
      fc.property(interval, fc.integer({ min: 0, max: 4e12 }), (of, time) => {
        const start = bucketOf(time, of);
        const next = nextBucket(start, of);
        expect(start <= time && time < next).toBe(true);
        expect(bucketOf(next, of)).toBe(next);
        expect(bucketOf(next - 1, of)).toBe(start);
        expect(next - start).toBeGreaterThanOrEqual(lengthOf(of));
      }),
    );
  });

  test('histogram buckets have no gap between the first and the last one', () => {
    const interval: Interval = { count: 1, unit: 's' };
    const counts = new Map([
      [3_000, 2],
      [1_000, 1],
    ]);
    expect(bucketsBetween(counts, interval)).toEqual([
      { time: 1_000, count: 1 },
      { time: 2_000, count: 0 },
      { time: 3_000, count: 2 },
    ]);
    expect(bucketsBetween(new Map(), interval)).toEqual([]);
    expect(() =>
      bucketsBetween(
        new Map([
          [0, 1],
          [11_000_000, 1],
        ]),
        interval,
      ),
    ).toThrow(/10000 buckets/);
  });
});
