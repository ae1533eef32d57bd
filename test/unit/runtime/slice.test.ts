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

/** A visit that takes half a millisecond. */
const halfMillisecond = (): void => {
  jest.advanceTimersByTime(0.5);
};

/** Notes `other` in each turn of the event loop until `works` are done. */
async function interleaved(log: string[], works: readonly Promise<unknown>[]): Promise<void> {
  const other = (): void => {
    log.push('other');
    next = setImmediate(other);
  };
  let next = setImmediate(other);
  await Promise.all(works);
  clearImmediate(next);
}

/** The longest row of entries between two turns of others. */
const longestRow = (log: readonly string[]): number =>
  Math.max(
    ...log
      .join(' ')
      .split('other')
      .map((row) => row.split(' ').filter((entry) => entry !== '').length),
  );

describe('work in slices', () => {
  test('visits all in their order, and others have a turn after each four visits of half a millisecond', async () => {
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

  test('is no longer between two turns of others when there is more of it', async () => {
    const log: string[] = [];
    const works = items.map(() =>
      visitInSlices(items, wanted, () => {
        log.push('mine');
        jest.advanceTimersByTime(0.5);
      }),
    );
    // The first slices were begun at once, by this test.
    log.length = 0;
    await interleaved(log, works);
    expect(log.filter((entry) => entry === 'mine')).toHaveLength(20 * 16);
    expect(longestRow(log)).toBeLessThanOrEqual(4);
  });

  test('ends when the visit says so', async () => {
    const visited: number[] = [];
    await visitInSlices(items, wanted, (item) => {
      visited.push(item);
      return item < 3;
    });
    expect(visited).toEqual([0, 1, 2, 3]);
  });

  test('ends when nobody waits for it any more', async () => {
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

describe('sorting in slices', () => {
  test('is sorting, and what is equal keeps its order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.nat(20), fc.nat()), { maxLength: 500 }), async (pairs) => {
        const before = pairs.slice();
        expect(await sortInSlices(pairs, byFirst, wanted)).toEqual(pairs.toSorted(byFirst));
        expect(pairs).toEqual(before);
      }),
    );
  });

  test('lets others have a turn', async () => {
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
    // Two milliseconds, and what one look at the clock is good for.
    expect(longestRow(log)).toBeLessThan(200 + 64 * 7);
  });
});
