/** Limits on log queries: what the log store serves at once (stores/with-limit.ts), and what callers hold (handler.ts). */
import { HolderSlots } from '../runtime/holder-slots.ts';
import { Slots } from '../runtime/slots.ts';

/**
 * Queries at once, queries that may wait for a slot, and exports and tails. Exports and tails last long, so they do not wait for each other;
 * LogsBounds limits those of one user.
 */
export const storeLimits = { queries: 16, queriesPerUser: 8, waiting: 200, waitingPerUser: 50, streams: 64 };

/** Exports and tails of one user, who cannot take all slots of the store. */
const maxStreamsPerUser = 16;

const mebi = 1024 * 1024;
/** Bytes of a response that is not counted: requests.maxInFlight limits those. */
export const smallResponse = 256 * 1024;

/** Limits on what callers hold, on both faces together. */
export class LogsBounds {
  /** In bytes: clients that read slowly, or never, must not hold all memory. */
  readonly responses = new Slots({
    what: 'bytes of log responses that are not read yet',
    total: 128 * mebi,
    perUser: 64 * mebi,
  });
  readonly #streams = new HolderSlots('exports and tails of logs');

  /** Returns the function that frees the slot of an export or tail. Throws 429. */
  takeStream(holder: string): () => void {
    return this.#streams.take(holder, maxStreamsPerUser);
  }
}
