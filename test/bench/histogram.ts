/** Compact counts of millions of durations from several processes, with a resolution of 0.1 ms. */
const perMillisecond = 10;
/** Number of bins. Durations of more than 60 s count as 60 s. */
const bins = 60_000 * perMillisecond;

export class Histogram {
  readonly #counts = new Uint32Array(bins + 1);

  /**
   * Adds a duration in milliseconds. Negative values count as 0, because a reader may receive an event before the
   * writer receives the response.
   */
  add(time: number): void {
    const bin = Math.min(bins, Math.max(0, Math.ceil(time * perMillisecond)));
    this.#counts[bin] = (this.#counts[bin] ?? 0) + 1;
  }

  /** Returns the non-empty bins. */
  toPairs(): [bin: number, count: number][] {
    return [...this.#counts.entries()].filter(([, count]) => count > 0);
  }

  addPairs(pairs: readonly (readonly [bin: number, count: number])[]): void {
    for (const [bin, count] of pairs) this.#counts[bin] = (this.#counts[bin] ?? 0) + count;
  }

  /** Returns the quantile `share` in milliseconds; NaN if the histogram is empty. */
  quantile(share: number): number {
    const total = this.#counts.reduce((sum, count) => sum + count, 0);
    if (total === 0) return NaN;
    let left = Math.max(1, Math.ceil(share * total));
    const bin = this.#counts.findIndex((count) => (left -= count) <= 0);
    return bin / perMillisecond;
  }
}
