/** Reads logs that a shipper writes to Elasticsearch or OpenSearch, with one index per day. */
import type { LogStoreSettings } from '../../../config/log-stores.ts';
import { badRequest } from '../../../runtime/errors.ts';
import { bucketOf, bucketsBetween, assertFewBuckets } from '../../query/intervals.ts';
import {
  type Cut,
  type Found,
  type Histogram,
  type Interval,
  type LogRecord,
  type LogStore,
  type LogStoreType,
  type TimeOrder,
  type LogPage,
  type Selection,
  type Statistics,
} from '../log-store.ts';
import { mapRequests, maxPageCharacters, pageTooLarge, prefetch, sum } from '../remote/paging.ts';
import { inOrder, sharesOf, spansOf, type Part } from '../remote/parts.ts';
import { endpointOf } from '../remote/endpoint.ts';
import type { StoreEndpoint } from '../remote/store-client.ts';
import { SearchClient, type Hit } from './client.ts';
import { dateHistogram, type Server } from './dialect.ts';
import { documentFields, exactTime, fields, recordOf } from './documents.ts';
import { hitsOf, window } from './hits.ts';
import type { SearchQueryParts } from './query.ts';
import { phraseOf, tokensOf, type Phrase } from './words.ts';

export interface SearchStoreOptions {
  readonly name: Server['distribution'];
  readonly endpoint: StoreEndpoint;
  /** Index name before `-YYYY.MM.DD`. */
  readonly indexPrefix: string;
  /** Date field with correct milliseconds. */
  readonly timeField: string;
}

export class SearchStore implements LogStore {
  readonly name: Server['distribution'];
  readonly #client: SearchClient;
  readonly #timeField: string;

  constructor({ name, endpoint, indexPrefix, timeField }: SearchStoreOptions) {
    this.name = name;
    this.#client = new SearchClient(name, endpoint, indexPrefix);
    this.#timeField = timeField;
  }

  async query(selection: Selection, page: LogPage, signal: AbortSignal): Promise<Found> {
    const spans = spansOf(selection);
    const read = async (queries: readonly SearchQueryParts[]): Promise<Found> =>
      await this.#page(queries, page, signal);
    const isNewest = page.order === 'desc' && page.from === 0 && page.size > 0;
    // Records within the millisecond of the end are rare. Such records would be the first records of this page.
    const endsBefore = ({ records: [first] }: Found): boolean => isBefore(first, selection.end);
    return await this.#withExactEnd(selection, signal, spans, read, isNewest ? endsBefore : undefined);
  }

  async statistics(selection: Selection, signal: AbortSignal): Promise<Statistics> {
    return await this.#withExactEnd(selection, signal, sharesOf(selection), async (queries) => {
      const each = await mapRequests(queries, async (one) => await this.#containers(one, signal));
      return { containers: sum(each.map(({ containers }) => containers)), logs: sum(each.map(({ logs }) => logs)) };
    });
  }

  async histogram(selection: Selection, interval: Interval, signal: AbortSignal): Promise<Histogram> {
    const server = await this.#client.server(signal);
    return await this.#withExactEnd(selection, signal, sharesOf(selection), async (queries) => {
      if (selection.start === undefined) await this.#assertFewBuckets(queries, interval, signal);
      const counts = new Map<number, number>();
      const aggs = { buckets: dateHistogram(server, this.#timeField, interval) };
      const responses = await mapRequests(
        queries,
        async (one) => await this.#client.search(one, { size: 0, aggs }, signal),
      );
      for (const { key, doc_count: count } of responses.flatMap((response) => this.#client.bucketsOf(response))) {
        const bucket = bucketOf(Number(key), interval);
        counts.set(bucket, (counts.get(bucket) ?? 0) + Number(count));
      }
      return { total: sum([...counts.values()]), histograms: bucketsBetween(counts, interval) };
    });
  }

  async *export(
    selection: Selection,
    order: TimeOrder,
    signal: AbortSignal,
  ): AsyncGenerator<readonly LogRecord[], Cut> {
    const queries = await this.#queries(selection, spansOf(selection), signal);
    const excluded = await this.#afterEnd(queries, signal);
    const options = { order, source: documentFields };
    for (const one of inOrder(queries, order))
      for await (const hits of prefetch((own) => hitsOf(this.#client, { ...one, excluded }, options, own), signal))
        yield recordsOf(hits, order);
    return {};
  }

  async check(signal: AbortSignal): Promise<void> {
    await this.#client.check(signal);
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  /**
   * Reads a result without records after the end. The store has a resolution of milliseconds, so results include all
   * records within the millisecond of the end. Records after the end are looked up concurrently, unless the result
   * `endsBefore` that millisecond. If there are such records, the result is read again without them.
   */
  async #withExactEnd<T>(
    selection: Selection,
    signal: AbortSignal,
    parts: readonly Part[],
    read: (queries: SearchQueryParts[]) => Promise<T>,
    endsBefore?: (result: T) => boolean,
  ): Promise<T> {
    const queries = await this.#queries(selection, parts, signal);
    const first = read(queries);
    if (endsBefore?.(await first) === true) return await first;
    const [excluded, result] = await Promise.all([this.#afterEnd(queries, signal), first]);
    return excluded.length === 0 ? result : await read(queries.map((one) => ({ ...one, excluded })));
  }

  async #queries(selection: Selection, parts: readonly Part[], signal: AbortSignal): Promise<SearchQueryParts[]> {
    const phrases = await mapRequests(selection.keywords.log, async (keyword) => await this.#phrase(keyword, signal));
    return parts.map((part) => ({ selection, part, phrases, timeField: this.#timeField, excluded: [] }));
  }

  async #phrase(keyword: string, signal: AbortSignal): Promise<Phrase> {
    const phrase = phraseOf(keyword, tokensOf(keyword) ?? (await this.#client.analyze(keyword, signal)));
    if (phrase === undefined)
      throw badRequest(
        `log_query: the log store "${this.name}" finds only letters and digits; the keyword ${JSON.stringify(keyword)} contains none`,
      );
    return phrase;
  }

  /** Returns the IDs of the documents that are later than the end, but in the same millisecond. */
  async #afterEnd(queries: readonly SearchQueryParts[], signal: AbortSignal): Promise<string[]> {
    const last = queries.filter(({ part, selection }) => part.end === selection.end * 1_000);
    const found = await mapRequests(last, async (one) => {
      const ids: string[] = [];
      const own = { ...one, part: { ...one.part, start: one.part.end } };
      for await (const hits of hitsOf(this.#client, own, { order: 'asc', source: ['time'] }, signal))
        for (const { _id, _source, sort } of hits)
          if (!exactTime(_source?.time, sort[0]).endsWith('.000000000Z')) ids.push(_id);
      return ids;
    });
    return found.flat();
  }

  async #page(
    queries: readonly SearchQueryParts[],
    { order, from, size }: LogPage,
    signal: AbortSignal,
  ): Promise<Found> {
    const totals =
      queries.length === 1 ? [] : await mapRequests(queries, async (one) => await this.#count(one, signal));
    let total = sum(totals);
    let skip = from;
    let characters = 0;
    const records: LogRecord[] = [];
    for (const [index, one] of inOrder([...queries.entries()], order)) {
      const here = totals[index];
      if (here !== undefined && (skip >= here || records.length === size)) {
        skip = Math.max(0, skip - here);
        continue;
      }
      const onTotal = here === undefined ? (count: number) => (total = count) : undefined;
      const options = { order, source: documentFields, skip, max: size - records.length, onTotal };
      for await (const hits of hitsOf(this.#client, one, options, signal)) {
        for (const record of recordsOf(hits, order)) {
          characters += record.log.length;
          if (characters > maxPageCharacters && records.length > 0)
            return { total, records, partial: { reason: pageTooLarge } };
          records.push(record);
        }
      }
      skip = 0;
    }
    return { total, records };
  }

  async #count(query: SearchQueryParts, signal: AbortSignal): Promise<number> {
    return this.#client.totalOf(await this.#client.search(query, { size: 0, track_total_hits: true }, signal));
  }

  /** Counts containers exactly, because the cardinality aggregation of the store is only an estimate. */
  async #containers(query: SearchQueryParts, signal: AbortSignal): Promise<Statistics> {
    const sources = [fields.namespace, fields.pod, fields.container].map((field, index) => ({
      [`field${index}`]: { terms: { field } },
    }));
    let containers = 0;
    let logs: number | undefined;
    for (let after: unknown; ;) {
      const composite = { size: window, sources, ...(after === undefined ? {} : { after }) };
      const response = await this.#client.search(
        query,
        { size: 0, track_total_hits: logs === undefined, aggs: { buckets: { composite } } },
        signal,
      );
      logs ??= this.#client.totalOf(response);
      const found = this.#client.bucketsOf(response).length;
      containers += found;
      if (found < window) return { containers, logs };
      after = response.aggregations?.['buckets']?.['after_key'];
    }
  }

  /**
   * Throws 400 if the time range of the data has too many buckets. Called for queries without a start, whose time range
   * depends on the data.
   */
  async #assertFewBuckets(
    queries: readonly SearchQueryParts[],
    interval: Interval,
    signal: AbortSignal,
  ): Promise<void> {
    const field = this.#timeField;
    const aggs = { first: { min: { field } }, last: { max: { field } } };
    const responses = await mapRequests(
      queries,
      async (one) => await this.#client.search(one, { size: 0, aggs }, signal),
    );
    const times = responses.flatMap(({ aggregations }) =>
      [aggregations?.['first']?.['value'], aggregations?.['last']?.['value']].filter(
        (value) => typeof value === 'number',
      ),
    );
    if (times.length > 0) assertFewBuckets(Math.min(...times), Math.max(...times), interval);
  }
}

export const searchStoreType = (name: Server['distribution']): LogStoreType<LogStoreSettings<typeof name>> => ({
  open(settings, { secrets }) {
    const store = new SearchStore({ name, endpoint: endpointOf(name, settings, secrets), ...settings });
    return () => store;
  },
});

/** Returns whether a record is before the second `end`. */
const isBefore = (record: LogRecord | undefined, end: number): boolean =>
  record === undefined || Date.parse(record.time) < end * 1_000;

/** Converts hits to records and sorts them by nanoseconds; the store sorts only by milliseconds. */
function recordsOf(hits: readonly Hit[], order: TimeOrder): LogRecord[] {
  const sign = order === 'asc' ? 1 : -1;
  return hits
    .map(({ _source, sort }) => recordOf(_source ?? {}, sort[0]))
    .toSorted((a, b) => (a.time < b.time ? -sign : a.time > b.time ? sign : 0));
}
