/**
 * Reads documents in an order that is the same in every request: millisecond, index and number in the shard. Each
 * request continues after the last document, so the store keeps no scroll context that would have to be deleted.
 */
import type { TimeOrder } from '../log-store.ts';
import { maxBatchBytes, targetBytes } from '../remote/paging.ts';
import { ResponseTooLarge } from '../remote/store-client.ts';
import type { SearchResponse, Hit, SearchClient } from './client.ts';
import type { SearchQueryParts, Clause } from './query.ts';

/** Maximum `from` + `size` of a request (index.max_result_window). */
export const window = 10_000;
/**
 * Maximum hits of the first response, when the length of records is unknown, and of later responses. The server builds
 * each response in memory.
 */
const firstHits = 1_000;
const maxHits = 5_000;

export interface HitOptions {
  readonly order: TimeOrder;
  /** Fields of each document that are read. */
  readonly source: readonly string[];
  /** Number of documents to skip; 0 by default. */
  readonly skip?: number;
  /** Maximum number of documents; unlimited by default. */
  readonly max?: number;
  /** Receives the total number of documents. */
  readonly onTotal?: ((total: number) => void) | undefined;
}

/**
 * Yields documents in order. Documents of different shards may have the same sort values, so each request starts with
 * all documents that have the sort values of the last document. Documents that were already read are dropped.
 */
export async function* hitsOf(
  client: SearchClient,
  query: SearchQueryParts,
  { order, source, skip = 0, max = Infinity, onTotal }: HitOptions,
  signal: AbortSignal,
): AsyncGenerator<readonly Hit[]> {
  let after: Hit['sort'] | undefined;
  const toSkip = max === 0 ? 0 : skip;
  let seen = new Set<string>();
  let size = firstHits;
  let reportTotal = onTotal;
  let skipped = 0;
  let left = max;
  // Beyond the window, the skipped documents are read page by page.
  const isWalk = toSkip + Math.min(max, firstHits) > window;
  while (left > 0 || reportTotal !== undefined) {
    const isSkipping = isWalk && skipped < toSkip;
    const wanted = isSkipping ? Math.min(window, toSkip - skipped) : Math.min(size, left);
    const number = Math.min(wanted + seen.size, window);
    const mayBeFewer = number > seen.size + 1 && !isSkipping;
    let response: SearchResponse;
    try {
      response = await client.search(
        query,
        {
          size: number,
          ...(isWalk || after !== undefined || toSkip === 0 ? {} : { from: toSkip }),
          _source: isSkipping ? false : source,
          sort: sortIn(order, query.timeField),
          track_total_hits: reportTotal !== undefined,
          ...(after === undefined ? {} : { search_after: justBefore(after, order) }),
        },
        signal,
        mayBeFewer ? maxBatchBytes : undefined,
      );
    } catch (error) {
      if (!(error instanceof ResponseTooLarge) || !mayBeFewer) throw error;
      size = Math.max(1, Math.floor(wanted / 4));
      continue;
    }
    reportTotal?.(client.totalOf(response));
    reportTotal = undefined;
    const { hits } = response.hits;
    if (!hits.every(isSorted)) throw client.invalidResponse('hits without sort values');
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

/** Returns the number of hits for a response of about `targetBytes`, estimated from the length of these hits. */
function sizeAfter(hits: readonly Hit[]): number {
  const each = hits.reduce(
    (bytes, { _source }) => bytes + (typeof _source?.log === 'string' ? _source.log.length : 0),
    0,
  );
  return Math.max(1, Math.min(maxHits, Math.floor(targetBytes / (400 + each / hits.length))));
}

/** Returns the sort values just before the documents with these sort values. */
const justBefore = ([time, index, sequence]: Hit['sort'], order: TimeOrder): Hit['sort'] => [
  time,
  index,
  sequence + (order === 'asc' ? -1 : 1),
];
