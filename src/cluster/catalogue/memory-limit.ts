/** How much memory copies of the cluster may take together (`cache.maxBytes`). */
import { serviceUnavailable, type StatusError } from '../../runtime/errors.ts';

/** What somebody holds of it. */
export interface MemoryShare {
  /** For messages. */
  readonly name: string;
  /** Now so many bytes in all. Throws StatusError when there is no room, and then holds what it held before. */
  hold(bytes: number): void;
  release(): void;
}

export interface MemoryLimitOptions {
  readonly maxBytes: () => number;
  /** Gives up something that nobody uses now; false if there is nothing. */
  readonly makeRoom: () => boolean;
}

/** So long a resource that does not fit is not tried again, in seconds. */
export const retryAfter = 30;

export const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

/**
 * `demandRoom` throws if the share, which has `mine()` bytes, cannot grow to `bytes`. It may release shares to make room, this one
 * included. `add` counts a difference.
 */
export function memoryShare(
  name: string,
  demandRoom: (bytes: number, mine: () => number) => void,
  add: (bytes: number) => void,
): MemoryShare {
  let mine = 0;
  let isReleased = false;
  const set = (bytes: number): void => {
    add(bytes - mine);
    mine = bytes;
  };
  return {
    name,
    hold(bytes) {
      if (isReleased) return;
      if (bytes > mine) demandRoom(bytes, () => mine);
      if (!isReleased) set(bytes);
    },
    release() {
      isReleased = true;
      set(0);
    },
  };
}

export class MemoryLimit {
  readonly #options: MemoryLimitOptions;
  #held = 0;

  constructor(options: MemoryLimitOptions) {
    this.#options = options;
  }

  get held(): number {
    return this.#held;
  }

  /** `essential`: is counted, and never refused. */
  share(name: string, essential = false): MemoryShare {
    const demandRoom = (bytes: number, mine: () => number): void => {
      const isTooMuch = (): boolean => this.#held - mine() + bytes > this.#options.maxBytes();
      while (isTooMuch() && this.#options.makeRoom());
      if (!essential && isTooMuch()) throw this.#tooMuch(name, bytes, this.#held - mine());
    };
    return memoryShare(name, demandRoom, (bytes) => (this.#held += bytes));
  }

  #tooMuch(name: string, bytes: number, others: number): StatusError {
    return serviceUnavailable(
      `${name} does not fit into the memory for copies of the cluster: ${mebibytes(bytes)} of it were read so far, others hold ${mebibytes(others)}, and the configuration's cache.maxBytes is ${mebibytes(this.#options.maxBytes())}`,
      retryAfter,
    );
  }
}
