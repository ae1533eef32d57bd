/**
 * Memory for lists of resources that are not cached. This memory is separate from the memory of the caches, so such a
 * list evicts no cache.
 */
import { serviceUnavailable, tooManyRequests } from '../../runtime/errors.ts';
import { Shares } from '../../runtime/shares.ts';
import { mebibytes, memoryShare, retryAfter, type MemoryShare } from './memory-limit.ts';

const busy = 'try again later';

export class ListMemory {
  readonly #cacheSize: () => number;
  readonly #byHolder = new Shares('list_memory');
  #held = 0;

  /** `cacheSize` returns cache.maxBytes. All lists together use at most half of cache.maxBytes. */
  constructor(cacheSize: () => number) {
    this.#cacheSize = cacheSize;
  }

  get held(): number {
    return this.#held;
  }

  /**
   * Returns the memory share of one list. The share lasts until the reader has read the list. A holder (holderOf) can
   * use at most half of the memory: beyond that, `hold` throws 429. `hold` throws 503 if the list alone or all lists
   * together are too large.
   */
  share(holder: string, name: string): MemoryShare {
    const assertRoom = (bytes: number, own: () => number): void =>
      this.#assertRoom({ holder, name, bytes, own: own() });
    return memoryShare(name, assertRoom, (bytes) => {
      this.#held += bytes;
      this.#byHolder.add(holder, bytes);
    });
  }

  #assertRoom({ holder, name, bytes, own }: { holder: string; name: string; bytes: number; own: number }): void {
    const total = this.#cacheSize() / 2;
    const perUser = total / 2;
    if (bytes > perUser)
      throw serviceUnavailable(
        `${name} exceeds the memory for one user, ${mebibytes(perUser)} (a quarter of cache.maxBytes in the configuration)`,
        retryAfter,
      );
    if (this.#byHolder.count(holder) - own + bytes > perUser)
      throw tooManyRequests(
        `${name}: your share of the memory for lists that are not cached, ${mebibytes(perUser)}, is in use; ${busy}`,
        1,
      );
    if (this.#held - own + bytes > total)
      throw serviceUnavailable(
        `${name}: the memory for lists that are not cached, ${mebibytes(total)}, is in use; ${busy}`,
        1,
      );
  }
}
