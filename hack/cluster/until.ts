import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Waits until `holds` returns true; an error counts as false. `check` throws if the condition can no longer become
 * true. Throws after `timeout` milliseconds, with `condition` and the last error in the message.
 */
export async function until(
  condition: string,
  check: () => Promise<void>,
  holds: () => Promise<boolean>,
  timeout = 60_000,
): Promise<void> {
  for (const end = Date.now() + timeout; ; await sleep(50)) {
    await check();
    let cause: unknown;
    try {
      if (await holds()) return;
    } catch (error) {
      cause = error;
    }
    if (Date.now() > end) {
      const reason = cause instanceof Error ? `: ${cause.message}` : '';
      throw new Error(`timed out after ${timeout / 1000} s waiting until ${condition}${reason}`, { cause });
    }
  }
}
