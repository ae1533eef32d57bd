import { Slots } from '../../runtime/slots.ts';
import { storeLimits } from '../limits.ts';
import type { LogStore } from './log-store.ts';
import { wrapped, type StoreDecorator, type LogStream } from './wrapped.ts';

const maxWait = 30_000;

/**
 * Returns a function that limits the use of a store by a holder (holderOf). All stores that the function wraps share
 * the limits.
 */
export function limited(limits = storeLimits): (store: LogStore, holder: string) => LogStore {
  const queries = new Slots({
    what: 'log queries',
    total: limits.queries,
    perUser: limits.queriesPerUser,
    queue: { total: limits.waiting, perUser: limits.waitingPerUser, timeout: maxWait },
  });
  const streams = new Slots({ what: 'exports and tails of logs', total: limits.streams });

  const decoratorFor = (holder: string): StoreDecorator => ({
    async call(operation, signal, run) {
      // Checks are not limited, so that they work while the store is busy.
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
  return (store, holder) => wrapped(store, decoratorFor(holder));
}
