/** Buckets of histograms, which have the same boundaries in all stores (log-store.ts). */
import { badParameters, invalidParameter } from '../../http/request/parameters.ts';
import type { Interval } from '../stores/log-store.ts';

export const maxBuckets = 10_000;

const day = 86_400_000;
/** Milliseconds per unit. */
const lengths = { s: 1_000, m: 60_000, h: 3_600_000, d: day };
/** 1970-01-05 was a Monday. */
const firstMonday = 4 * day;

const isFixed = (unit: Interval['unit']): unit is keyof typeof lengths => Object.hasOwn(lengths, unit);

const months = { M: 1, q: 3, y: 12 } as const;

function monthsIn(unit: Interval['unit']): number {
  return unit === 'M' || unit === 'q' || unit === 'y' ? months[unit] : 1;
}

/** Returns the start of the bucket that contains `time`. Both times are in milliseconds since the epoch. */
export function bucketOf(time: number, { count, unit }: Interval): number {
  if (isFixed(unit)) {
    const length = count * lengths[unit];
    return Math.floor(time / length) * length;
  }
  if (unit === 'w') return Math.floor((time - firstMonday) / (7 * day)) * 7 * day + firstMonday;
  const date = new Date(time);
  const month = Math.floor(date.getUTCMonth() / monthsIn(unit)) * monthsIn(unit);
  return Date.UTC(date.getUTCFullYear(), month, 1);
}

/** Returns the start of the next bucket. */
export function nextBucket(start: number, { count, unit }: Interval): number {
  if (isFixed(unit)) return start + count * lengths[unit];
  if (unit === 'w') return start + 7 * day;
  const date = new Date(start);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + monthsIn(unit), 1);
}

/** Returns the length in milliseconds. For calendar units, returns the minimum length. */
export function lengthOf({ count, unit }: Interval): number {
  if (isFixed(unit)) return count * lengths[unit];
  return unit === 'w' ? 7 * day : (365 / 12 - 3) * day * monthsIn(unit);
}

/** Throws 400 if the histogram would have too many buckets. */
export function assertFewBuckets(from: number, to: number, interval: Interval): void {
  if ((to - from) / lengthOf(interval) <= maxBuckets) return;
  const message = `${interval.count}${interval.unit} results in more than ${maxBuckets} buckets: use a longer interval or a shorter time range`;
  throw badParameters([invalidParameter('interval', message)]);
}

/**
 * Returns the buckets of a histogram from counts by bucket start, including empty buckets between the first and the
 * last bucket.
 */
export function bucketsBetween(
  counts: ReadonlyMap<number, number>,
  interval: Interval,
): { readonly time: number; readonly count: number }[] {
  if (counts.size === 0) return [];
  let [first, last] = [Infinity, -Infinity];
  for (const time of counts.keys()) [first, last] = [Math.min(first, time), Math.max(last, time)];
  assertFewBuckets(first, last, interval);
  const buckets = [];
  for (let time = first; time <= last; time = nextBucket(time, interval))
    buckets.push({ time, count: counts.get(time) ?? 0 });
  return buckets;
}
