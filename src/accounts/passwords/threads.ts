/**
 * Hashing shares libuv's thread pool with DNS lookups, compression and file access. The pool reads its size from
 * UV_THREADPOOL_SIZE when its first task starts. The threads of the pool get a lower priority than the event loop:
 * otherwise 50 concurrent logins on few cores would delay the event loop, and with it every request. On Linux
 * setpriority(2) sets the priority of a single thread.
 */
import { readFile, readdir } from 'node:fs/promises';
import { setPriority } from 'node:os';

/**
 * Nice value with about a tenth of the default weight (sched(7)). Hashing then gets little CPU time while the event
 * loop is busy, but never none.
 */
const niceness = 10;

/** Lowers the priority of the pool's threads. Throws the system's error if that is not permitted. */
export async function lowerWorkers(): Promise<void> {
  if (process.platform !== 'linux') return;
  const tasks = '/proc/self/task';
  // The first task starts all threads of the pool, and this read is a task.
  for (const thread of await readdir(tasks)) {
    const name = await readFile(`${tasks}/${thread}/comm`, 'utf8').catch(() => '');
    if (name.trim() === 'libuv-worker') setPriority(Number(thread), niceness);
  }
}

/** Default size of libuv's thread pool. */
const defaultPoolSize = 4;
/** Number of threads that are reserved for tasks other than hashing. */
const reserved = 2;
/** Maximum concurrent hashes. Each argon2id hash takes 19 MiB while it runs. */
const maxHashes = 8;

/** Returns the pool size: one thread for each core except one, plus `reserved` threads. */
export const poolSizeFor = (cores: number): number =>
  Math.max(defaultPoolSize, Math.min(cores - 1, maxHashes) + reserved);

/**
 * Returns the maximum number of concurrent hashes. One core is left to serve requests, and `reserved` threads to other
 * tasks.
 */
export function maxConcurrentHashes(cores: number, { UV_THREADPOOL_SIZE = '' }: NodeJS.ProcessEnv): number {
  const threads = Number.parseInt(UV_THREADPOOL_SIZE, 10) || defaultPoolSize;
  return Math.max(1, Math.min(cores - 1, maxHashes, threads - reserved));
}
