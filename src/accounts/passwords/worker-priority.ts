/**
 * Threads that hash passwords and compress answers are to give way to the one that serves: where cores are few, 50 logins at once made
 * the event loop wait for its turn, and every reader with it. By setpriority(2) Linux weighs threads, among those of one container.
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
