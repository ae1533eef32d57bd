/** Waiting for a copy, and no longer than a caller would. */
import type { StatusError } from '../../runtime/errors.ts';
import type { Resource } from './resource.ts';

/** A copy that is not complete is waited for so long, in milliseconds; then the caller is told to come again. */
const longestWait = 10_000;

/** Runs with a signal that is also aborted, with the reason that `late` makes, after so many milliseconds. */
export async function within<T>(
  signal: AbortSignal,
  milliseconds: number,
  late: () => StatusError,
  run: (limited: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(late()), milliseconds);
  try {
    return await run(AbortSignal.any([signal, limit.signal]));
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves when the first list is complete; throws what `late` makes when that takes too long. */
export async function synced<F>(
  resource: Resource<F>,
  context: { readonly signal: AbortSignal },
  late: () => StatusError,
): Promise<void> {
  if (resource.hasSynced()) return;
  await within(context.signal, longestWait, late, (signal) => resource.waitForSync(signal));
}
