/**
 * Limits on log queries: concurrent requests to the log store (stores/with-limit.ts), and resources per caller
 * (handler.ts).
 */
import { HolderSlots, Slots } from '../runtime/slots.ts';

/**
 * Maximum numbers of concurrent queries, of queries waiting for a slot, and of exports and tails (`streams`). Exports
 * and tails take long and therefore never wait for a slot. LogsBounds limits them per user.
 */
export const storeLimits = { queries: 16, queriesPerUser: 8, waiting: 200, waitingPerUser: 50, streams: 64 };

/** Maximum exports and tails of one user, so that one user cannot occupy all slots of the store. */
const maxStreamsPerUser = 16;

const mebi = 1024 * 1024;
/** Responses of at most this many bytes take no slots of `responses`, because `requests.maxInFlight` limits them. */
export const smallResponse = 256 * 1024;

/** Limits on the streams and memory of callers, for /kapis and /apis together. */
export class LogsBounds {
  /**
   * Bytes of memory for responses that clients have not read. The limit prevents slow clients from occupying all
   * memory.
   */
  readonly responses = new Slots({
    what: 'bytes of unread log responses',
    total: 128 * mebi,
    perUser: 64 * mebi,
  });
  readonly #streams = new HolderSlots('exports and tails of logs');

  /** Returns the function that frees the slot of an export or tail. Throws 429. */
  takeStream(holder: string): () => void {
    return this.#streams.take(holder, maxStreamsPerUser);
  }
}
