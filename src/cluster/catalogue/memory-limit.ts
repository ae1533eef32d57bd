/** Limit of the memory of all caches together (`cache.maxBytes`). */
import { serviceUnavailable, type StatusError } from '../../runtime/errors.ts';

/** Share of the memory, such as the share of one cache. */
export interface MemoryShare {
  /** Name for messages. */
  readonly name: string;
  /** Sets the size of the share. Throws StatusError if there is not enough memory; the size is then unchanged. */
  hold(bytes: number): void;
  release(): void;
}

export interface MemoryLimitOptions {
  readonly maxBytes: () => number;
  /** Removes an unused cache. Returns false if every cache is in use. */
  readonly makeRoom: () => boolean;
}

/** Seconds until a resource that does not fit is tried again. */
export const retryAfter = 30;

export const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

/**
 * Creates a share of a limit. `assertRoom` throws if the share cannot grow from `own()` to `bytes`. `assertRoom` may
 * release shares to make room, including the share that grows. `add` adds a difference to the total.
 */
export function memoryShare(
  name: string,
  assertRoom: (bytes: number, own: () => number) => void,
  add: (bytes: number) => void,
): MemoryShare {
  let own = 0;
  let isReleased = false;
  const set = (bytes: number): void => {
    add(bytes - own);
    own = bytes;
  };
  return {
    name,
    hold(bytes) {
      if (isReleased) return;
      if (bytes > own) assertRoom(bytes, () => own);
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

  /** Creates a share. An `essential` share is counted, but never refused. */
  share(name: string, essential = false): MemoryShare {
    const assertRoom = (bytes: number, own: () => number): void => {
      const isExceeded = (): boolean => this.#held - own() + bytes > this.#options.maxBytes();
      while (isExceeded() && this.#options.makeRoom());
      if (!essential && isExceeded()) throw this.#outOfMemory(name, bytes, this.#held - own());
    };
    return memoryShare(name, assertRoom, (bytes) => (this.#held += bytes));
  }

  #outOfMemory(name: string, bytes: number, others: number): StatusError {
    return serviceUnavailable(
      `${name} does not fit into the cache memory: ${mebibytes(bytes)} were read so far, other resources use ${mebibytes(others)}, and cache.maxBytes in the configuration is ${mebibytes(this.#options.maxBytes())}`,
      retryAfter,
    );
  }
}
