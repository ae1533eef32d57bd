/**
 * Hashing shares libuv's thread pool with DNS lookups, compression and files. The pool reads its size from UV_THREADPOOL_SIZE when its
 * first task starts. Its threads have a lower priority than the event loop: on few cores, 50 logins at once made the event loop, and
 * every reader, wait. By setpriority(2) Linux sets the priority of a single thread.
 */
import { readFile, readdir } from 'node:fs/promises';
import { setPriority } from 'node:os';

/** A tenth of the usual weight, as sched(7) has it: little beside the event loop, and not nothing. */
const niceness = 10;

/** Throws what the system says where it forbids it. */
export async function lowerWorkers(): Promise<void> {
  if (process.platform !== 'linux') return;
  const tasks = '/proc/self/task';
  // They all begin with the first work for them, which this is.
  for (const thread of await readdir(tasks)) {
    const name = await readFile(`${tasks}/${thread}/comm`, 'utf8').catch(() => '');
    if (name.trim() === 'libuv-worker') setPriority(Number(thread), niceness);
  }
}

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
