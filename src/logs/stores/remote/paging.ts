import { mapConcurrent } from '../../../runtime/promises.ts';

/** Characters of the records of a page. */
export const mostOnPage = 8 * 1024 * 1024;

/** Why a page has fewer. */
export const tooLarge = 'the page has more than 8 MiB: take a smaller size, or operation=export';

/** Of an answer, in bytes: as many records are asked for as make about so much. */
export const wantedBytes = 2 * 1024 * 1024;
/** An answer of more bytes is left, unless it is of one record, and fewer are asked for: exports of slow readers hold it. */
export const mostOfSeveral = 4 * 1024 * 1024;

const atOnce = 4;

/** Sends the requests of one query, a few at once. */
export const mapFewAtOnce = <A, B>(all: readonly A[], ask: (one: A) => Promise<B>): Promise<B[]> =>
  mapConcurrent(all, atOnce, ask);

export const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

/** The next piece is fetched while the one before is used; who stops ends that too. */
export async function* ahead<T>(
  begin: (signal: AbortSignal) => AsyncGenerator<T>,
  signal: AbortSignal,
): AsyncGenerator<T> {
  const own = new AbortController();
  const pieces = begin(AbortSignal.any([signal, own.signal]));
  try {
    let next = pieces.next();
    for (;;) {
      const piece = await next;
      if (piece.done === true) return;
      next = pieces.next();
      // Told when it is waited for.
      next.catch(() => undefined);
      yield piece.value;
    }
  } finally {
    own.abort();
  }
}
