/** Counts of times, of which millions come from several processes: a tenth of a millisecond exact. */
const perMillisecond = 10;
/** 60 s; what is longer counts as that. */
const bins = 60_000 * perMillisecond;

export class Histogram {
  readonly #counts = new Uint32Array(bins + 1);

  /** Milliseconds; what is below 0 counts as 0: the reader may be told before the writer. */
  add(time: number): void {
    const bin = Math.min(bins, Math.max(0, Math.ceil(time * perMillisecond)));
    this.#counts[bin] = (this.#counts[bin] ?? 0) + 1;
  }

  /** The bins that are not empty. */
  toPairs(): [bin: number, count: number][] {
    return [...this.#counts.entries()].filter(([, count]) => count > 0);
  }

  addPairs(pairs: readonly (readonly [bin: number, count: number])[]): void {
    for (const [bin, count] of pairs) this.#counts[bin] = (this.#counts[bin] ?? 0) + count;
  }

  /** The milliseconds that the part `share` of the times does not exceed; NaN without any. */
  quantile(share: number): number {
    const total = this.#counts.reduce((sum, count) => sum + count, 0);
    if (total === 0) return NaN;
    let left = Math.max(1, Math.ceil(share * total));
    const bin = this.#counts.findIndex((count) => (left -= count) <= 0);
    return bin / perMillisecond;
  }
}
