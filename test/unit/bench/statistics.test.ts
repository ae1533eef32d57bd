import { describe, expect, test } from '@jest/globals';
import { Histogram } from '../../bench/histogram.ts';
import { ascending, median, quantile } from '../../bench/statistics.ts';

describe('quantile()', () => {
  const sorted = ascending([5, 1, 4, 2, 3]);

  test.each([
    [0, 1],
    [0.2, 1],
    [0.21, 2],
    [0.5, 3],
    [0.99, 5],
    [1, 5],
  ])('quantile(%d) of the values 1 to 5 is %d', (share, value) => {
    expect(quantile(sorted, share)).toBe(value);
  });

  test('median() returns the lower middle value of an even number of values, and undefined for no values', () => {
    expect(median([4, 1, 3, 2])).toBe(2);
    expect(median([])).toBeNaN();
  });
});

describe('a histogram', () => {
  test('a histogram has the quantiles of the sorted times, to a tenth of a millisecond', () => {
    const histogram = new Histogram();
    const times = Array.from({ length: 1000 }, (_, index) => ((index * 7919) % 1000) / 10);
    for (const time of times) histogram.add(time);
    for (const share of [0.001, 0.25, 0.5, 0.99, 1])
      expect(histogram.quantile(share)).toBeCloseTo(quantile(ascending(times), share), 6);
  });

  test('a histogram merges the counts of several processes', () => {
    const all = new Histogram();
    for (const times of [[1, 2], [3], [4, 100]]) {
      const part = new Histogram();
      for (const time of times) part.add(time);
      all.addPairs(part.toPairs());
    }
    expect(all.quantile(0.6)).toBe(3);
    expect(all.quantile(0.61)).toBe(4);
    expect(all.quantile(1)).toBe(100);
  });

  test('a histogram counts a negative time as zero and an excessive time as the longest time', () => {
    const histogram = new Histogram();
    histogram.add(-5);
    expect(histogram.quantile(1)).toBe(0);
    histogram.add(1e9);
    expect(histogram.quantile(1)).toBe(60_000);
  });

  test('a histogram has no quantile without values', () => {
    expect(new Histogram().quantile(0.5)).toBeNaN();
  });
});
