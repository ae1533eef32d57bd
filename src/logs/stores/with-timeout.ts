import { timeout } from '../../runtime/errors.ts';
import type { LogStore } from './log-store.ts';
import { wrapped, type StoreOperation, type LogStream } from './wrapped.ts';

/**
 * Timeouts in milliseconds. The timeout of an export applies to each piece. The timeouts are shorter than the timeouts
 * of requests, so that the error names the store as the cause. Checks have their own timeout (open-store.ts).
 */
const timeouts: Partial<Record<StoreOperation, number>> = {
  query: 30_000,
  statistics: 50_000,
  histogram: 50_000,
  export: 30_000,
};

/** Throws 504 if the store takes too long. `limits` replaces the timeouts in tests. */
export function withTimeout(store: LogStore, limits: typeof timeouts = timeouts): LogStore {
  const timeoutError = (): Error => timeout(`the log store "${store.name}" did not respond in time`);

  async function within<T>(operation: StoreOperation, own: AbortController, wait: () => Promise<T>): Promise<T> {
    const limit = limits[operation];
    if (limit === undefined) return await wait();
    const timer = setTimeout(() => own.abort(timeoutError()), limit);
    try {
      return await wait();
    } finally {
      clearTimeout(timer);
    }
  }

  return wrapped(store, {
    async call(operation, signal, run) {
      const own = new AbortController();
      return await within(operation, own, () => run(AbortSignal.any([signal, own.signal])));
    },
    async *stream(operation, signal, run): LogStream {
      const own = new AbortController();
      const pieces = run(AbortSignal.any([signal, own.signal]));
      try {
        for (;;) {
          const piece = await within(operation, own, () => pieces.next());
          if (piece.done === true) return piece.value;
          yield piece.value;
        }
      } finally {
        own.abort();
        await pieces.return({});
      }
    },
  });
}
