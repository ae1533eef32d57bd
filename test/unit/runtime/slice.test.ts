import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import * as fc from 'fast-check';
import { sortInSlices, visitInSlices } from '../../../src/runtime/slice.ts';

const items = Array.from({ length: 20 }, (_, index) => index);
const wanted = new AbortController();

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
});
afterEach(() => {
  jest.useRealTimers();
});

/** A callback that takes half a millisecond. */
const halfMillisecond = (): void => {
  jest.advanceTimersByTime(0.5);
};

/** Records `other` in each turn of the event loop until `works` are done. */
async function interleaved(log: string[], works: readonly Promise<unknown>[]): Promise<void> {
  const other = (): void => {
    log.push('other');
    next = setImmediate(other);
  };
  let next = setImmediate(other);
  await Promise.all(works);
  clearImmediate(next);
}

/** Returns the length of the longest run of entries between two turns of other work. */
const longestRow = (log: readonly string[]): number =>
  Math.max(
    ...log
      .join(' ')
      .split('other')
      .map((row) => row.split(' ').filter((entry) => entry !== '').length),
  );

describe('visitInSlices()', () => {
  test('visitInSlices() visits all items in order, and yields to other work after every four callbacks of half a millisecond', async () => {
    const log: string[] = [];
    const visited: number[] = [];
    const work = visitInSlices(items, wanted, (item) => {
      visited.push(item);
      log.push('mine');
      halfMillisecond();
    });
    await interleaved(log, [work]);
    expect(visited).toEqual(items);
    expect(longestRow(log)).toBe(4);
  });

  test('visitInSlices() yields to other work just as often when several calls are in progress', async () => {
    const log: string[] = [];
    const works = items.map(() =>
      visitInSlices(items, wanted, () => {
        log.push('mine');
        jest.advanceTimersByTime(0.5);
      }),
    );
    // The first slices have already run, before `interleaved` starts other work.
    log.length = 0;
    await interleaved(log, works);
    expect(log.filter((entry) => entry === 'mine')).toHaveLength(20 * 16);
    expect(longestRow(log)).toBeLessThanOrEqual(4);
  });

  test('visitInSlices() ends when the callback returns false', async () => {
    const visited: number[] = [];
    await visitInSlices(items, wanted, (item) => {
      visited.push(item);
      return item < 3;
    });
    expect(visited).toEqual([0, 1, 2, 3]);
  });

  test('visitInSlices() ends when its signal is aborted', async () => {
    const controller = new AbortController();
    let visits = 0;
    const work = visitInSlices(items, controller, () => {
      visits += 1;
      halfMillisecond();
    });
    controller.abort();
    await expect(work).rejects.toThrow('aborted');
    expect(visits).toBe(4);
  });
});

const byFirst = (a: readonly number[], b: readonly number[]): number => (a[0] ?? 0) - (b[0] ?? 0);

describe('sortInSlices()', () => {
  test('sortInSlices() keeps the order of equal items', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.nat(20), fc.nat()), { maxLength: 500 }), async (pairs) => {
        const before = pairs.slice();
        expect(await sortInSlices(pairs, byFirst, wanted)).toEqual(pairs.toSorted(byFirst));
        expect(pairs).toEqual(before);
      }),
    );
  });

  test('sortInSlices() yields to other work', async () => {
    const log: string[] = [];
    const many = Array.from({ length: 1_000 }, (_, index) => (index * 619) % 1_000);
    const work = sortInSlices(
      many,
      (a, b) => {
        log.push('mine');
        jest.advanceTimersByTime(0.01);
        return a - b;
      },
      wanted,
    );
    await interleaved(log, [work]);
    // The limit is two milliseconds of comparisons, plus the comparisons between two readings of the clock.
    expect(longestRow(log)).toBeLessThan(200 + 64 * 7);
  });
});
