import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Waits until `holds`; an error of it counts as no. `check` throws when waiting has become senseless.
 * Throws after `patience` milliseconds, naming `what` and the last error.
 */
export async function until(
  what: string,
  check: () => Promise<void>,
  holds: () => Promise<boolean>,
  patience = 60_000,
): Promise<void> {
  for (const end = Date.now() + patience; ; await sleep(50)) {
    await check();
    let cause: unknown;
    try {
      if (await holds()) return;
    } catch (error) {
      cause = error;
    }
    if (Date.now() > end) {
      const why = cause instanceof Error ? `: ${cause.message}` : '';
      throw new Error(`waited ${patience / 1000} s in vain until ${what}${why}`, { cause });
    }
  }
}
