import { mapConcurrent } from '../../../runtime/promises.ts';

/** Maximum characters of the records of a page. */
export const maxPageCharacters = 8 * 1024 * 1024;

/** Reason why a page has fewer records than requested. */
export const pageTooLarge = 'the page exceeds 8 MiB: use a smaller size, or operation=export';

/** Target bytes of a response. The number of requested records is estimated from this target. */
export const targetBytes = 2 * 1024 * 1024;
/**
 * Maximum bytes of a response with several records, which a slow export holds in memory. A larger response is requested
 * again with fewer records.
 */
export const maxBatchBytes = 4 * 1024 * 1024;

const maxConcurrent = 4;

/** Sends the requests of one query, a few at a time. */
export const mapRequests = <A, B>(all: readonly A[], send: (one: A) => Promise<B>): Promise<B[]> =>
  mapConcurrent(all, maxConcurrent, send);

export const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

/** Fetches the next piece while the current one is read. Returning early aborts the request for the next piece. */
export async function* prefetch<T>(
  start: (signal: AbortSignal) => AsyncGenerator<T>,
  signal: AbortSignal,
): AsyncGenerator<T> {
  const own = new AbortController();
  const pieces = start(AbortSignal.any([signal, own.signal]));
  try {
    let next = pieces.next();
    for (;;) {
      const piece = await next;
      if (piece.done === true) return;
      next = pieces.next();
      // An error is thrown later, when the piece is awaited.
      next.catch(() => undefined);
      yield piece.value;
    }
  } finally {
    own.abort();
  }
}
