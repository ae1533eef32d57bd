/** Failures of addresses and clients within a sliding window. */
import { BoundedCache, type CacheOptions } from '../../runtime/bounded-cache.ts';

/**
 * Standing of an attempt under the limit of a key. `left` is the number of attempts left. `until` is the time from
 * which an attempt is allowed, in milliseconds since the epoch.
 */
export interface Standing {
  readonly key: string;
  readonly left: number;
  readonly until: number;
}

/** Failures that count until the last of them is older than the window. Times are milliseconds since the epoch. */
interface Failures {
  readonly first: number;
  last: number;
  count: number;
}

/** Number of parts into which a window is divided, so that a sliding window needs little memory. */
const parts = 10;

type Bounds = Pick<CacheOptions<object>, 'maxEntries' | 'maxBytes' | 'ttl'> & { readonly clock: () => number };

export class Windows {
  readonly #length: () => number;
  readonly #clock: () => number;
  /** Parts of each window. */
  readonly #parts: BoundedCache<Failures[]>;

  /** `length`: length of a window in milliseconds. */
  constructor(length: () => number, options: Bounds) {
    this.#length = length;
    this.#clock = options.clock;
    this.#parts = new BoundedCache({ ...options, name: 'login_windows', sizeOf: (all) => 80 * all.length });
  }

  /**
   * Returns the standing under the limit of a sliding window. `until` is the time from which the window contains fewer
   * than `max` failures.
   */
  standing(key: string, max: number, now: number): Standing {
    const within = this.#length();
    const failures = this.#read(key, now);
    const count = countOf(failures);
    let left = count;
    let until = 0;
    for (const { last, count: here } of failures) {
      if (left < max) break;
      until = last + within;
      left -= here;
    }
    return { key, left: max - count, until };
  }

  /** Adds a failure to the current part of a window. */
  add(key: string): void {
    const now = this.#clock();
    const within = this.#length();
    const failures = this.#read(key, now);
    const current = failures.at(-1);
    if (current !== undefined && now - current.first < within / parts) {
      current.count += 1;
      current.last = now;
    } else failures.push({ first: now, last: now, count: 1 });
    this.#parts.set(key, failures, within);
  }

  /** Returns the parts of a window that still count, oldest first. */
  #read(key: string, now: number): Failures[] {
    return this.#parts.get(key)?.filter(({ last }) => now - last < this.#length()) ?? [];
  }
}

const countOf = (failures: readonly Failures[]): number => failures.reduce((sum, { count }) => sum + count, 0);
