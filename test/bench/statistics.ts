export const ascending = (values: Iterable<number>): Float64Array => Float64Array.from(values).toSorted();

/** Returns the quantile `share` of ascending values. */
export const quantile = (sorted: ArrayLike<number>, share: number): number =>
  sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;

export const median = (values: Iterable<number>): number => quantile(ascending(values), 0.5);

/** Returns the median of each figure of several measurements. */
export function mediansOf<K extends string>(all: readonly Readonly<Record<K, number>>[]): Record<K, number> {
  const keys = Object.keys(all[0] ?? {}) as K[];
  return Object.fromEntries(keys.map((key) => [key, median(all.map((one) => one[key]))])) as Record<K, number>;
}

/**
 * Comparison of two samples by two tests. The p-value of a test (`…Chance`) is the probability of a difference at least
 * as large between samples of the same distribution.
 */
export interface Comparison {
  /**
   * Mann–Whitney test: probability that a value of the first sample exceeds a value of the second sample. Samples of
   * the same distribution have 0.5.
   */
  readonly exceeds: number;
  readonly rankChance: number;
  /** Kolmogorov–Smirnov test: largest distance between the two distributions. */
  readonly distance: number;
  readonly distanceChance: number;
}

export function compare(a: Iterable<number>, b: Iterable<number>): Comparison {
  const first = ascending(a);
  const second = ascending(b);
  const [n, m] = [first.length, second.length];
  let wins = 0;
  let distance = 0;
  let [below, notAbove] = [0, 0];
  for (const [index, value] of first.entries()) {
    while (below < m && (second[below] ?? 0) < value) below++;
    while (notAbove < m && (second[notAbove] ?? 0) <= value) notAbove++;
    wins += (below + notAbove) / 2; // A tie counts half.
    distance = Math.max(distance, Math.abs(below / m - index / n), Math.abs(notAbove / m - (index + 1) / n));
  }
  const deviation = Math.sqrt((n * m * (n + m + 1)) / 12);
  return {
    exceeds: wins / (n * m),
    rankChance: twoSided((wins - (n * m) / 2) / deviation),
    distance,
    distanceChance: chanceOf(distance, n, m),
  };
}

/**
 * Returns the probability that a normal variable deviates by at least `z` standard deviations (Abramowitz and Stegun
 * 7.1.26, to 1.5e-7).
 */
function twoSided(z: number): number {
  const x = Math.abs(z) / Math.SQRT2;
  const t = 1 / (1 + 0.327_591_1 * x);
  const series = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592];
  return series.reduce((sum, coefficient) => (sum + coefficient) * t, 0) * Math.exp(-x * x);
}

/**
 * Returns the p-value of the asymptotic Kolmogorov–Smirnov distribution, with Stephens' correction for small samples.
 */
function chanceOf(distance: number, n: number, m: number): number {
  const root = Math.sqrt((n * m) / (n + m));
  const lambda = (root + 0.12 + 0.11 / root) * distance;
  // For smaller values of `lambda`, the series converges too slowly, and the result is 1 to five digits.
  if (lambda < 0.3) return 1;
  let sum = 0;
  for (let k = 1; k <= 100; k++) sum += 2 * (-1) ** (k - 1) * Math.exp(-2 * k * k * lambda * lambda);
  return Math.min(1, Math.max(0, sum));
}
