/**
 * Documents in an order that is the same in every request (their millisecond, their index, their number in its shard), so that the next
 * ones are asked for by the last one: nothing is held open there, and nothing has to be cleaned up.
 */
import type { TimeOrder } from '../log-store.ts';
import { mostOfSeveral, wantedBytes } from '../remote/paging.ts';
import { AnswerTooLarge } from '../remote/store-client.ts';
import type { SearchResponse, Hit, SearchClient } from './client.ts';
import type { SearchQueryParts, Clause } from './query.ts';

/** What the first ones are skipped by, and the most that one answer has (index.max_result_window). */
export const window = 10_000;
/** Of an answer: the first, while nobody knows how long records are here, and all others. The server makes each as a whole. */
const firstHits = 1_000;
const mostHits = 5_000;

export interface Wanted {
  readonly order: TimeOrder;
  /** What is read of each. */
  readonly source: readonly string[];
  /** None unless stated. */
  readonly skip?: number;
  /** All of them unless stated. */
  readonly most?: number;
  /** Told how many there are in all. */
  readonly counted?: ((total: number) => void) | undefined;
}

/**
 * Two of different shards may sort alike, so what follows is asked for with the number of the last one again, and those that were there
 * already are left out.
 */
export async function* hitsOf(
  client: SearchClient,
  asked: SearchQueryParts,
  { order, source, skip = 0, most = Infinity, counted }: Wanted,
  signal: AbortSignal,
): AsyncGenerator<readonly Hit[]> {
  let after: Hit['sort'] | undefined;
  const passed = most === 0 ? 0 : skip;
  let seen = new Set<string>();
  let size = firstHits;
  let tell = counted;
  let skipped = 0;
  let left = most;
  // Deeper than a page may begin, all before it is walked through.
  const isWalk = passed + Math.min(most, firstHits) > window;
  while (left > 0 || tell !== undefined) {
    const isSkipping = isWalk && skipped < passed;
    const wanted = isSkipping ? Math.min(window, passed - skipped) : Math.min(size, left);
    const number = Math.min(wanted + seen.size, window);
    const mayBeFewer = number > seen.size + 1 && !isSkipping;
    let answer: SearchResponse;
    try {
      answer = await client.search(
        asked,
        {
          size: number,
          ...(isWalk || after !== undefined || passed === 0 ? {} : { from: passed }),
          _source: isSkipping ? false : source,
          sort: sortIn(order, asked.timeField),
          track_total_hits: tell !== undefined,
          ...(after === undefined ? {} : { search_after: again(after, order) }),
        },
        signal,
        mayBeFewer ? mostOfSeveral : undefined,
      );
    } catch (error) {
      if (!(error instanceof AnswerTooLarge) || !mayBeFewer) throw error;
      size = Math.max(1, Math.floor(wanted / 4));
      continue;
    }
    tell?.(client.totalOf(answer));
    tell = undefined;
    const { hits } = answer.hits;
    if (!hits.every(isSorted)) throw client.nonsense('it does not say what it sorts by');
    const fresh = (seen.size === 0 ? hits : hits.filter((hit) => !seen.has(keyOf(hit)))).slice(0, wanted);
    const last = fresh.at(-1);
    if (last === undefined) return;
    const isSame = after !== undefined && sortsAlike(last.sort, after);
    seen = new Set([...(isSame ? seen : []), ...fresh.filter(({ sort }) => sortsAlike(sort, last.sort)).map(keyOf)]);
    after = last.sort;
    if (isSkipping) skipped += fresh.length;
    else {
      left -= fresh.length;
      size = Math.min(sizeAfter(fresh), 2 * fresh.length);
      yield fresh;
    }
    if (hits.length < number) return;
  }
}

const sortIn = (order: TimeOrder, timeField: string): Clause[] => [
  { [timeField]: { order, unmapped_type: 'date' } },
  { _index: { order } },
  { _seq_no: { order } },
];

const isSorted = ({ sort }: { readonly sort?: unknown }): boolean =>
  Array.isArray(sort) && sort.every((value) => typeof value === 'number' || typeof value === 'string');

const sortsAlike = (a: Hit['sort'], b: Hit['sort']): boolean => a[2] === b[2] && a[0] === b[0] && a[1] === b[1];

const keyOf = ({ _index, _id }: Hit): string => `${_index}/${_id}`;

/** As many as make about what is wanted, if they are as long as these. */
function sizeAfter(hits: readonly Hit[]): number {
  const each = hits.reduce(
    (bytes, { _source }) => bytes + (typeof _source?.log === 'string' ? _source.log.length : 0),
    0,
  );
  return Math.max(1, Math.min(mostHits, Math.floor(wantedBytes / (400 + each / hits.length))));
}

/** Just before those that sort as the last one does. */
const again = ([time, index, sequence]: Hit['sort'], order: TimeOrder): Hit['sort'] => [
  time,
  index,
  sequence + (order === 'asc' ? -1 : 1),
];
