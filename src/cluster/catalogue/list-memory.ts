/** Memory for lists that are not cached. It is apart from the memory of the caches: no request for such a list evicts a cache. */
import { serviceUnavailable, tooManyRequests } from '../../runtime/errors.ts';
import { Shares } from '../../runtime/shares.ts';
import { mebibytes, memoryShare, retryAfter, type MemoryShare } from './memory-limit.ts';

const busy = 'please try again later';

export class ListMemory {
  readonly #cacheSize: () => number;
  readonly #byHolder = new Shares('list_memory');
  #held = 0;

  /** `cacheSize`: cache.maxBytes. All lists together hold at most half as much. */
  constructor(cacheSize: () => number) {
    this.#cacheSize = cacheSize;
  }

  get held(): number {
    return this.#held;
  }

  /**
   * The memory of one list, until its reader has read it. One holder (holderOf) has at most half of all; beyond that `hold` throws 429,
   * and 503 for a list that is too large alone or where all together hold too much.
   */
  share(holder: string, name: string): MemoryShare {
    const demandRoom = (bytes: number, mine: () => number): void =>
      this.#demandRoom({ holder, name, bytes, mine: mine() });
    return memoryShare(name, demandRoom, (bytes) => {
      this.#held += bytes;
      this.#byHolder.add(holder, bytes);
    });
  }

  #demandRoom({ holder, name, bytes, mine }: { holder: string; name: string; bytes: number; mine: number }): void {
    const total = this.#cacheSize() / 2;
    const perUser = total / 2;
    if (bytes > perUser)
      throw serviceUnavailable(
        `${name} does not fit into the memory for one user, ${mebibytes(perUser)}: a quarter of the configuration's cache.maxBytes`,
        retryAfter,
      );
    if (this.#byHolder.count(holder) - mine + bytes > perUser)
      throw tooManyRequests(
        `${name}: your share of ${mebibytes(perUser)} for lists that are not cached is in use; ${busy}`,
        1,
      );
    if (this.#held - mine + bytes > total)
      throw serviceUnavailable(
        `${name}: all ${mebibytes(total)} of this server for lists that are not cached are in use; ${busy}`,
        1,
      );
  }
}
