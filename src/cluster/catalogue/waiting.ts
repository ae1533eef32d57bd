/** Limits the time that a request waits for a cache. */
import type { StatusError } from '../../runtime/errors.ts';
import type { Resource } from './resource.ts';

/** Maximum milliseconds that a request waits for an incomplete cache before it fails with Retry-After. */
const syncTimeout = 10_000;

/** Calls `run` with a signal that is also aborted after a timeout, with the error that `timeoutError` returns. */
export async function withTimeout<T>(
  signal: AbortSignal,
  milliseconds: number,
  timeoutError: () => StatusError,
  run: (limited: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(timeoutError()), milliseconds);
  try {
    return await run(AbortSignal.any([signal, limit.signal]));
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves when the first list is complete. Throws the error that `timeoutError` returns if that takes too long. */
export async function waitForSync<F>(
  resource: Resource<F>,
  context: { readonly signal: AbortSignal },
  timeoutError: () => StatusError,
): Promise<void> {
  if (resource.hasSynced()) return;
  await withTimeout(context.signal, syncTimeout, timeoutError, (signal) => resource.waitForSync(signal));
}
