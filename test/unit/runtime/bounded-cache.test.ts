import { describe, expect, jest, test } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import { BoundedCache, cacheFigures, InProgress } from '../../../src/runtime/bounded-cache.ts';
import { heapUsed } from '../../fakes/heap.ts';

const kibibyte = 1_024;
const mebibyte = kibibyte * kibibyte;

function cache(options: Partial<ConstructorParameters<typeof BoundedCache<string | number>>[0]> = {}) {
  let now = 1_000_000;
  const made = new BoundedCache<string | number>({
    name: 'test',
    maxEntries: 100,
    maxBytes: mebibyte,
    ttl: 1_000,
    clock: () => now,
    ...options,
  });
  return { made, advance: (milliseconds: number) => (now += milliseconds) };
}

/** Creates 100,000 collections and drops them. */
async function makeAndDrop(): Promise<void> {
  Array.from({ length: 100_000 }, () => new InProgress('dropped'));
  await turn();
}

/** Waits up to five turns until V8 has called finalizers and the heap is below the limit. Returns the heap in bytes. */
async function settledHeap(limit: number): Promise<number> {
  let used = heapUsed();
  for (let round = 1; round < 5 && used >= limit; round += 1) {
    await turn();
    used = heapUsed();
  }
  return used;
}

describe('a bounded cache', () => {
  test('a bounded cache keeps the most recently used entries up to its maximum number', () => {
    const { made } = cache();
    made.set('first', 1);
    for (let index = 0; index < 99; index += 1) made.set(`key-${index}`, index);
    expect(made.get('first')).toBe(1);
    made.set('one more', 1);
    expect(made.entries).toBe(100);
    expect(made.has('key-0')).toBe(false);
    expect(made.get('first')).toBe(1);
  });

  test('a bounded cache keeps at most its maximum number of bytes, including values', () => {
    const { made } = cache({ maxEntries: 1_000, sizeOf: (value) => String(value).length });
    for (let index = 0; index < 500; index += 1) made.set(`key-${index}`, 'x'.repeat(10 * kibibyte));
    expect(made.bytes).toBeLessThanOrEqual(mebibyte);
    expect(made.bytes).toBeGreaterThan(0.9 * mebibyte);
    made.set('large', 'x'.repeat(2 * mebibyte));
    expect(made.has('large')).toBe(false);
  });

  test('a bounded cache without a name is not in the metrics', () => {
    const { made } = cache();
    const unnamed = new BoundedCache<number>({ maxEntries: 1, maxBytes: 1_000, ttl: 1_000 });
    const before = cacheFigures();
    unnamed.set('one', 1);
    expect(cacheFigures()).toEqual(before);
    made.set('one', 1);
    expect(cacheFigures()).not.toEqual(before);
  });

  test('in a bounded cache that renews entries, only unused entries expire', () => {
    const { made, advance } = cache({ renewsOnGet: true });
    made.set('used', 1);
    made.set('unused', 2);
    for (let time = 0; time < 3; time += 1) {
      advance(999);
      expect(made.get('used')).toBe(1);
    }
    expect(made.get('unused')).toBeUndefined();
    advance(1_001);
    expect(made.get('used')).toBeUndefined();
  });

  test('a bounded cache deletes an expired entry, even if the entry is never requested again', () => {
    const { made, advance } = cache();
    made.set('a', 1);
    made.set('b', 2, 1_500);
    advance(1_001);
    expect(made.get('a')).toBeUndefined();
    expect(made.get('b')).toBe(2);
    for (let index = 0; index < 50; index += 1) made.set(`key-${index}`, index);
    advance(1_001);
    for (let index = 0; index < 20; index += 1) made.set(`last-${index}`, 1);
    expect(made.entries).toBe(20);
  });

  test('a bounded cache expires entries by elapsed time, whatever the system clock shows', () => {
    const systemClock = jest.spyOn(Date, 'now');
    try {
      const made = new BoundedCache<number>({ name: 'test', maxEntries: 100, maxBytes: mebibyte, ttl: 60_000 });
      made.set('a', 1);
      systemClock.mockReturnValue(Date.now() + 3_600_000);
      expect(made.get('a')).toBe(1);
    } finally {
      systemClock.mockRestore();
    }
  });

  test('delete() of a bounded cache removes an entry and its bytes', () => {
    const { made } = cache();
    made.set('a', 1);
    made.delete('a');
    expect(made.peek('a')).toBeUndefined();
    expect(made.bytes).toBe(0);
  });

  test.each<[string, (index: number) => string]>([
    ['long keys', (index) => `${'\u20ac'.repeat(32 * kibibyte)}${index}`],
    [
      'short keys that are slices of long texts',
      (index) => `${index}-${'x'.repeat(100)}${'\u20ac'.repeat(32 * kibibyte)}`.slice(0, 100),
    ],
  ])('a bounded cache uses little memory for %s', (_, key) => {
    const { made } = cache({ maxEntries: 1_000 });
    const before = heapUsed();
    for (let index = 0; index < 1_000; index += 1) made.set(key(index), index);
    expect(heapUsed() - before).toBeLessThan(2 * mebibyte);
    expect(made.get(key(999))).toBe(999);
    expect(made.entries).toBe(1_000);
  });

  test('a bounded cache distinguishes all keys, including long ones and lone surrogates', () => {
    const { made } = cache();
    const keys = [
      '\ud800',
      '\ud801',
      '\ufffd',
      'x'.repeat(63),
      'x'.repeat(64),
      `${'x'.repeat(500)}\ud800`,
      `${'x'.repeat(500)}\ufffd`,
    ];
    for (const [index, key] of keys.entries()) made.set(key, index);
    expect(keys.map((key) => made.get(key))).toEqual([...keys.keys()]);
    // No short key equals the digest of a long one.
    for (const [kept] of [...made].filter(([text]) => text.length >= 64)) expect(made.get(kept)).toBeUndefined();
  });

  test('retain() of a bounded cache drops the entries that its callback rejects, and skips expired entries', () => {
    const { made, advance } = cache();
    const keys = ['a', 'b', 'x'.repeat(130), 'y'.repeat(130)];
    made.set('expired', 'expired');
    advance(1_001);
    for (const [index, key] of keys.entries()) made.set(key, index);
    const seen: unknown[] = [];
    made.retain((value) => {
      seen.push(value);
      return value === 0 || value === 2;
    });
    expect(seen).toEqual([3, 2, 1, 0]);
    expect(keys.map((key) => made.get(key))).toEqual([0, undefined, 2, undefined]);
  });

  test('a collection that is no longer referenced is garbage-collected, even if the metrics are never read', async () => {
    await makeAndDrop();
    const limit = (await settledHeap(0)) + 4 * mebibyte;
    await makeAndDrop();
    await makeAndDrop();
    expect(await settledHeap(limit)).toBeLessThan(limit);
  });

  test('a bounded cache is reported in the metrics under its name', () => {
    const { made } = cache({ name: 'counted' });
    const { made: other } = cache({ name: 'counted' });
    made.set('a', 1);
    other.set('a', 1);
    expect(cacheFigures().get('counted')).toEqual({ entries: 2, bytes: made.bytes + other.bytes });
  });
});

describe('an operation in progress', () => {
  test('an operation in progress is counted in the metrics until the operation is removed', () => {
    const made = new InProgress<number>('progress');
    made.set('a', 1);
    made.set('x'.repeat(1_000), 2);
    made.set('a', 3);
    expect(made.get('a')).toBe(3);
    expect([...made]).toHaveLength(2);
    expect(cacheFigures().get('progress')).toMatchObject({ entries: 2 });
    made.delete('x'.repeat(1_000));
    made.delete('a');
    expect(made).toMatchObject({ entries: 0, bytes: 0 });
  });
});
