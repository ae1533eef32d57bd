import { timeout } from '../../runtime/errors.ts';
import type { LogStore } from './log-store.ts';
import { wrapped, type StoreOperation, type LogStream } from './wrapped.ts';

/**
 * Milliseconds for an answer, of an export for each piece; shorter than a request may take, so that it is known who was slow. Who looks whether
 * a store can be asked has its own.
 */
const patience: Partial<Record<StoreOperation, number>> = {
  query: 30_000,
  statistics: 50_000,
  histogram: 50_000,
  export: 30_000,
};

/** Throws 504 in the place of a store that takes too long. `limits`: others, for tests. */
export function withTimeout(store: LogStore, limits: typeof patience = patience): LogStore {
  const late = (): Error => timeout(`the log store "${store.name}" did not answer in time`);

  async function within<T>(operation: StoreOperation, own: AbortController, wait: () => Promise<T>): Promise<T> {
    const limit = limits[operation];
    if (limit === undefined) return await wait();
    const timer = setTimeout(() => own.abort(late()), limit);
    try {
      return await wait();
    } finally {
      clearTimeout(timer);
    }
  }

  return wrapped(store, {
    async ask(operation, signal, run) {
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
