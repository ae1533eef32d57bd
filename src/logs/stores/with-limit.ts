import { Slots } from '../../runtime/slots.ts';
import type { LogStore } from './log-store.ts';
import { wrapped, type StoreDecorator, type LogStream } from './wrapped.ts';

export interface StoreLimits {
  /** Queries at once, and those of one user. */
  readonly queries: number;
  readonly queriesPerUser: number;
  /** Queries that may wait for a slot, and those of one user. */
  readonly waiting: number;
  readonly waitingPerUser: number;
  /** Exports and tails. They last long, so they do not wait for each other; LogsBounds limits those of one user. */
  readonly streams: number;
}

const usual: StoreLimits = { queries: 16, queriesPerUser: 8, waiting: 200, waitingPerUser: 50, streams: 64 };
const longestWait = 30_000;

/** Returns a function that wraps the store of a holder (holderOf); all stores that it wraps share the limits. */
export function limited(limits: StoreLimits = usual): (store: LogStore, holder: string) => LogStore {
  const queries = new Slots({
    what: 'log queries',
    total: limits.queries,
    perUser: limits.queriesPerUser,
    queue: { total: limits.waiting, perUser: limits.waitingPerUser, timeout: longestWait },
  });
  const streams = new Slots({ what: 'exports and tails of logs', total: limits.streams });

  const around = (holder: string): StoreDecorator => ({
    async ask(operation, signal, run) {
      // Whether it answers at all is known best when it is busy.
      if (operation === 'check') return await run(signal);
      return await queries.run(holder, () => run(signal), signal);
    },
    async *stream(_operation, signal, run): LogStream {
      const free = streams.take(holder);
      try {
        return yield* run(signal);
      } finally {
        free();
      }
    },
  });
  return (store, holder) => wrapped(store, around(holder));
}
