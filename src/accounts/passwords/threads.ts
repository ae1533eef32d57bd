/**
 * Hashing shares libuv's thread pool with DNS lookups, compression and files. The pool reads its size from UV_THREADPOOL_SIZE when its
 * first task starts.
 */

/** Default of libuv. */
const defaultPoolSize = 4;
/** Threads that never hash. */
const reserved = 2;
/** Each argon2id hash takes 19 MiB while it runs. */
const maxHashes = 8;

/** Size of the pool that leaves `reserved` threads beside one hash per core but one. */
export const poolSizeFor = (cores: number): number =>
  Math.max(defaultPoolSize, Math.min(cores - 1, maxHashes) + reserved);

/** Hashes that may run at once: fewer than the cores, as one serves requests, and fewer than the threads of the pool. */
export function hashesAtOnce(cores: number, { UV_THREADPOOL_SIZE = '' }: NodeJS.ProcessEnv): number {
  const threads = Number.parseInt(UV_THREADPOOL_SIZE, 10) || defaultPoolSize;
  return Math.max(1, Math.min(cores - 1, maxHashes, threads - reserved));
}
