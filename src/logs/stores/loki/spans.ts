/** Time ranges of requests to Loki. */
import type { TimeRange } from './client.ts';

/** Range of whole seconds since the epoch; excludes `to`. */
export interface TimeSpan {
  readonly from: number;
  readonly to: number;
}

const nanoseconds = 1_000_000_000n;

/** Returns the first nanosecond of a second. */
export const startOf = (second: number): bigint => BigInt(second) * nanoseconds;

/**
 * Returns the last nanosecond before a second. A range of Loki includes its end but not its start, so a range of whole
 * seconds that ends at this nanosecond covers exactly these seconds.
 */
export const lastBefore = (second: number): bigint => startOf(second) - 1n;

/** Splits a span into consecutive spans of at most `length` seconds. */
export const spansOfLength = ({ from, to }: TimeSpan, length: number): readonly TimeSpan[] =>
  Array.from({ length: Math.max(0, Math.ceil((to - from) / length)) }, (_, index) => ({
    from: from + index * length,
    to: Math.min(to, from + (index + 1) * length),
  }));

export const exactly = ({ from, to }: TimeSpan): TimeRange => ({ from: startOf(from), to: startOf(to) });

/**
 * Extends the range by a nanosecond at its start, because Loki omits the last entry of a chunk if a range starts
 * exactly at the time of that entry.
 */
export const extendedStart = ({ from, to }: TimeRange): TimeRange => ({ from: from - 1n, to });

/**
 * Extends the range of a request to the index by a millisecond at its start. Loki splits such requests by day, omits
 * the last millisecond of each day (util.ForInterval), and rejects a range that starts in that millisecond.
 */
export const extendedForIndex = ({ from, to }: TimeRange): TimeRange => ({ from: from - 1_000_000n, to });

/** Returns the ranges of the spans, extended by the first nanosecond of the second `end`. */
export function rangesOf(spans: readonly TimeSpan[], end: number | undefined): TimeRange[] {
  const ranges = spans.map(exactly);
  if (end === undefined) return ranges;
  const at = startOf(end);
  const last = ranges.at(-1);
  return last?.to === at
    ? [...ranges.slice(0, -1), { from: last.from, to: at + 1n }]
    : [...ranges, { from: at, to: at + 1n }];
}
