/** Times as Loki is asked for them. */
import type { Between } from './client.ts';

/** From one whole second to the other, which is not in it. */
export interface TimeSpan {
  readonly from: number;
  readonly to: number;
}

const nanoseconds = 1_000_000_000n;

/** Nanoseconds since the epoch. */
export const beginningOf = (second: number): bigint => BigInt(second) * nanoseconds;

/** The last nanosecond before a second: a range of whole seconds that ends with it begins with a second. */
export const lastBefore = (second: number): bigint => beginningOf(second) - 1n;

/** One after the other, none of them longer. */
export const spansOfLength = ({ from, to }: TimeSpan, length: number): readonly TimeSpan[] =>
  Array.from({ length: Math.max(0, Math.ceil((to - from) / length)) }, (_, index) => ({
    from: from + index * length,
    to: Math.min(to, from + (index + 1) * length),
  }));

export const exactly = ({ from, to }: TimeSpan): Between => ({ from: beginningOf(from), to: beginningOf(to) });

/** Loki leaves out the last entry of a chunk where it is asked from the very time of that entry on: so it is asked from just before. */
export const early = ({ from, to }: Between): Between => ({ from: from - 1n, to });

/**
 * The same for what its index knows. It asks that day by day, each without its last millisecond (util.ForInterval there), and refuses what
 * begins within that.
 */
export const earlyInIndex = ({ from, to }: Between): Between => ({ from: from - 1_000_000n, to });

/** And what is at the beginning of the second `end`. */
export function timesOf(spans: readonly TimeSpan[], end: number | undefined): Between[] {
  const times = spans.map(exactly);
  if (end === undefined) return times;
  const at = beginningOf(end);
  const last = times.at(-1);
  return last?.to === at
    ? [...times.slice(0, -1), { from: last.from, to: at + 1n }]
    : [...times, { from: at, to: at + 1n }];
}
