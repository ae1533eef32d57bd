import { Slots } from '../../runtime/slots.ts';
import { storeLimits } from '../limits.ts';
import type { LogStore } from './log-store.ts';
import { wrapped, type StoreDecorator, type LogStream } from './wrapped.ts';

const longestWait = 30_000;

/** Returns a function that wraps the store of a holder (holderOf); all stores that it wraps share the limits. */
export function limited(limits = storeLimits): (store: LogStore, holder: string) => LogStore {
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
