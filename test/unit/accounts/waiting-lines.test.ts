import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { WaitingLines } from '../../../src/accounts/waiting-lines.ts';
import { serviceUnavailable, tooManyRequests } from '../../../src/errors.ts';
import { settle } from '../kube/fakes.ts';

/** What has begun, in its order; each work ends when the test says so. */
let begun: string[];
let ends: Map<string, () => void>;
let lines: WaitingLines;
beforeEach(() => {
  begun = [];
  ends = new Map();
  lines = new WaitingLines({
    atOnce: 2,
    mostWaiting: 5,
    mostInLine: 4,
    longestWait: 1_000,
    refusal: (why) => (why === 'line' ? tooManyRequests('', 1) : serviceUnavailable('')),
  });
});

/** Work of the source that its first letter names. Answers its name, or the code with which it was refused. */
const come = (name: string): Promise<string | number> =>
  lines
    .run(name.charAt(0), () => {
      begun.push(name);
      return new Promise<string>((resolve) => {
        ends.set(name, () => resolve(name));
      });
    })
    .catch((error: { code: number }) => error.code);

async function end(name: string): Promise<void> {
  ends.get(name)?.();
  await settle();
}

describe('work that waits', () => {
  test('begins when a place is free, each source in its turn', async () => {
    const all = ['a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'c1'].map(come);
    await settle();
    expect(begun).toEqual(['a1', 'a2']);
    for (let i = 0; i < all.length; i += 1) await end(begun[i] ?? '');
    expect(begun).toEqual(['a1', 'a2', 'a3', 'b1', 'c1', 'a4', 'a5']);
    expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'c1']);
  });

  test('is refused where there is no more room, the last of the longest line first', async () => {
    const all = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'b1', 'a7', 'c1'].map(come);
    expect(await Promise.all([all[7], all[5]])).toEqual([429, 503]);
    for (let i = 0; i < 7; i += 1) await end(begun[i] ?? '');
    expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'a4', 'a5', 503, 'b1', 429, 'c1']);
  });

  test('is refused where its own line is full, though there is room for others', async () => {
    const all = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'b1'].map(come);
    expect(await all[6]).toBe(429);
    for (let i = 0; i < 7; i += 1) await end(begun[i] ?? '');
    expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 429, 'b1']);
    expect(begun).toEqual(['a1', 'a2', 'a3', 'b1', 'a4', 'a5', 'a6']);
  });

  test('that fails gives its place back', async () => {
    for (let i = 0; i < 10; i += 1)
      await expect(lines.run('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    const last = come('b1');
    await settle();
    await end('b1');
    expect(await last).toBe('b1');
  });
});

describe('work that waits too long', () => {
  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  test('is 503 and keeps no place', async () => {
    const [one, two, late, later] = ['a1', 'a2', 'b1', 'b2'].map(come);
    await jest.advanceTimersByTimeAsync(999);
    const inTime = come('c1');
    await jest.advanceTimersByTimeAsync(1);
    expect(await Promise.all([late, later])).toEqual([503, 503]);
    await end('a1');
    await end('a2');
    await end('c1');
    expect(await Promise.all([one, two, inTime])).toEqual(['a1', 'a2', 'c1']);
    const again = come('d1');
    await settle();
    await end('d1');
    expect(await again).toBe('d1');
  });
});
