/** The logs that a shipper writes into Elasticsearch or OpenSearch, an index a day. */
import type { LogStoreSettings } from '../../../config/log-stores.ts';
import { badRequest } from '../../../runtime/errors.ts';
import { bucketOf, bucketsBetween, demandFewBuckets } from '../../query/intervals.ts';
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
import { ahead, mapFewAtOnce, sum, mostOnPage, tooLarge } from '../remote/paging.ts';
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
  /** Before `-YYYY.MM.DD`. */
  readonly indexPrefix: string;
  /** A date whose milliseconds are right. */
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
    const ask = async (asked: readonly SearchQueryParts[]): Promise<Found> => await this.#page(asked, page, signal);
    const isNewest = page.order === 'desc' && page.from === 0 && page.size > 0;
    // Whatever is within the millisecond of the end would be the first of them, and is rarely there.
    const tells = ({ records: [first] }: Found): boolean => isBefore(first, selection.end);
    return await this.#exactly(selection, signal, spans, ask, isNewest ? tells : undefined);
  }

  async statistics(selection: Selection, signal: AbortSignal): Promise<Statistics> {
    return await this.#exactly(selection, signal, sharesOf(selection), async (asked) => {
      const each = await mapFewAtOnce(asked, async (one) => await this.#containers(one, signal));
      return { containers: sum(each.map(({ containers }) => containers)), logs: sum(each.map(({ logs }) => logs)) };
    });
  }

  async histogram(selection: Selection, interval: Interval, signal: AbortSignal): Promise<Histogram> {
    const server = await this.#client.server(signal);
    return await this.#exactly(selection, signal, sharesOf(selection), async (asked) => {
      if (selection.start === undefined) await this.#demandFewBuckets(asked, interval, signal);
      const counts = new Map<number, number>();
      const aggs = { buckets: dateHistogram(server, this.#timeField, interval) };
      const answers = await mapFewAtOnce(
        asked,
        async (one) => await this.#client.search(one, { size: 0, aggs }, signal),
      );
      for (const { key, doc_count: count } of answers.flatMap((answer) => this.#client.bucketsOf(answer))) {
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
    const asked = await this.#asked(selection, spansOf(selection), signal);
    const not = await this.#afterEnd(asked, signal);
    const wanted = { order, source: documentFields };
    for (const one of inOrder(asked, order))
      for await (const hits of ahead((own) => hitsOf(this.#client, { ...one, not }, wanted, own), signal))
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
   * The store tells milliseconds apart, so it takes what comes within the millisecond of the end for not later. Whether there is any is
   * asked at the same time, unless the answer `tells` that there is none, and where there is, the question is asked again without it.
   */
  async #exactly<T>(
    selection: Selection,
    signal: AbortSignal,
    parts: readonly Part[],
    ask: (asked: SearchQueryParts[]) => Promise<T>,
    tells?: (answer: T) => boolean,
  ): Promise<T> {
    const asked = await this.#asked(selection, parts, signal);
    const first = ask(asked);
    if (tells?.(await first) === true) return await first;
    const [not, answer] = await Promise.all([this.#afterEnd(asked, signal), first]);
    return not.length === 0 ? answer : await ask(asked.map((one) => ({ ...one, not })));
  }

  async #asked(selection: Selection, parts: readonly Part[], signal: AbortSignal): Promise<SearchQueryParts[]> {
    const phrases = await mapFewAtOnce(selection.keywords.log, async (keyword) => await this.#phrase(keyword, signal));
    return parts.map((part) => ({ selection, part, phrases, timeField: this.#timeField, not: [] }));
  }

  async #phrase(keyword: string, signal: AbortSignal): Promise<Phrase> {
    const phrase = phraseOf(keyword, tokensOf(keyword) ?? (await this.#client.analyze(keyword, signal)));
    if (phrase === undefined)
      throw badRequest(
        `log_query: the log store "${this.name}" finds letters and digits, and there is none in ${JSON.stringify(keyword)}`,
      );
    return phrase;
  }

  /** The ids of those in the millisecond of the end that are after it. */
  async #afterEnd(asked: readonly SearchQueryParts[], signal: AbortSignal): Promise<string[]> {
    const last = asked.filter(({ part, selection }) => part.end === selection.end * 1_000);
    const found = await mapFewAtOnce(last, async (one) => {
      const ids: string[] = [];
      const own = { ...one, part: { ...one.part, start: one.part.end } };
      for await (const hits of hitsOf(this.#client, own, { order: 'asc', source: ['time'] }, signal))
        for (const { _id, _source, sort } of hits)
          if (!exactTime(_source?.time, sort[0]).endsWith('.000000000Z')) ids.push(_id);
      return ids;
    });
    return found.flat();
  }

  async #page(asked: readonly SearchQueryParts[], { order, from, size }: LogPage, signal: AbortSignal): Promise<Found> {
    const totals = asked.length === 1 ? [] : await mapFewAtOnce(asked, async (one) => await this.#count(one, signal));
    let total = sum(totals);
    let skip = from;
    let characters = 0;
    const records: LogRecord[] = [];
    for (const [index, one] of inOrder([...asked.entries()], order)) {
      const here = totals[index];
      if (here !== undefined && (skip >= here || records.length === size)) {
        skip = Math.max(0, skip - here);
        continue;
      }
      const counted = here === undefined ? (count: number) => (total = count) : undefined;
      const wanted = { order, source: documentFields, skip, most: size - records.length, counted };
      for await (const hits of hitsOf(this.#client, one, wanted, signal)) {
        for (const record of recordsOf(hits, order)) {
          characters += record.log.length;
          if (characters > mostOnPage && records.length > 0) return { total, records, partial: { reason: tooLarge } };
          records.push(record);
        }
      }
      skip = 0;
    }
    return { total, records };
  }

  async #count(asked: SearchQueryParts, signal: AbortSignal): Promise<number> {
    return this.#client.totalOf(await this.#client.search(asked, { size: 0, track_total_hits: true }, signal));
  }

  /** Exactly, where the store's own cardinality would be a guess. */
  async #containers(asked: SearchQueryParts, signal: AbortSignal): Promise<Statistics> {
    const sources = [fields.namespace, fields.pod, fields.container].map((field, index) => ({
      [`field${index}`]: { terms: { field } },
    }));
    let containers = 0;
    let logs: number | undefined;
    for (let after: unknown; ;) {
      const composite = { size: window, sources, ...(after === undefined ? {} : { after }) };
      const answer = await this.#client.search(
        asked,
        { size: 0, track_total_hits: logs === undefined, aggs: { buckets: { composite } } },
        signal,
      );
      logs ??= this.#client.totalOf(answer);
      const found = this.#client.bucketsOf(answer).length;
      containers += found;
      if (found < window) return { containers, logs };
      after = answer.aggregations?.['buckets']?.['after_key'];
    }
  }

  /** Where the beginning is that of the data, nobody has judged how long it is ago. */
  async #demandFewBuckets(asked: readonly SearchQueryParts[], interval: Interval, signal: AbortSignal): Promise<void> {
    const field = this.#timeField;
    const aggs = { first: { min: { field } }, last: { max: { field } } };
    const answers = await mapFewAtOnce(asked, async (one) => await this.#client.search(one, { size: 0, aggs }, signal));
    const times = answers.flatMap(({ aggregations }) =>
      [aggregations?.['first']?.['value'], aggregations?.['last']?.['value']].filter(
        (value) => typeof value === 'number',
      ),
    );
    if (times.length > 0) demandFewBuckets(Math.min(...times), Math.max(...times), interval);
  }
}

export const searchStoreType = (name: Server['distribution']): LogStoreType<LogStoreSettings<typeof name>> => ({
  open(settings, { secrets }) {
    const store = new SearchStore({ name, endpoint: endpointOf(name, settings, secrets), ...settings });
    return () => store;
  },
});

/** `end`: whole seconds. */
const isBefore = (record: LogRecord | undefined, end: number): boolean =>
  record === undefined || Date.parse(record.time) < end * 1_000;

/** The store tells milliseconds apart. */
function recordsOf(hits: readonly Hit[], order: TimeOrder): LogRecord[] {
  const sign = order === 'asc' ? 1 : -1;
  return hits
    .map(({ _source, sort }) => recordOf(_source ?? {}, sort[0]))
    .toSorted((a, b) => (a.time < b.time ? -sign : a.time > b.time ? sign : 0));
}
