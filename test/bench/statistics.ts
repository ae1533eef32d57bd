export const ascending = (values: Iterable<number>): Float64Array => Float64Array.from(values).toSorted();

/** The value that the part `share` of the values, which ascend, does not exceed. */
export const quantile = (sorted: ArrayLike<number>, share: number): number =>
  sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;

export const median = (values: Iterable<number>): number => quantile(ascending(values), 0.5);

export interface Comparison {
  /** The probability that a value of the first sample exceeds one of the second: 0.5 if they cannot be told apart. */
  readonly exceeds: number;
  /** Mann–Whitney: how many standard deviations that is from 0.5. */
  readonly z: number;
  /** Kolmogorov–Smirnov: the largest distance of the distributions, and the probability of one so large by chance. */
  readonly distance: number;
  readonly chance: number;
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
    wins += (below + notAbove) / 2; // a tie is half a win
    distance = Math.max(distance, Math.abs(below / m - index / n), Math.abs(notAbove / m - (index + 1) / n));
  }
  const deviation = Math.sqrt((n * m * (n + m + 1)) / 12);
  return { exceeds: wins / (n * m), z: (wins - (n * m) / 2) / deviation, distance, chance: chanceOf(distance, n, m) };
}

/** The asymptotic distribution of Kolmogorov and Smirnov, with Stephens' correction for small samples. */
function chanceOf(distance: number, n: number, m: number): number {
  const root = Math.sqrt((n * m) / (n + m));
  const lambda = (root + 0.12 + 0.11 / root) * distance;
  if (lambda < 0.3) return 1; // where the series converges too slowly, it is 1 to five digits
  let sum = 0;
  for (let k = 1; k <= 100; k++) sum += 2 * (-1) ** (k - 1) * Math.exp(-2 * k * k * lambda * lambda);
  return Math.min(1, Math.max(0, sum));
}
