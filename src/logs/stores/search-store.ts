/**
 * The logs that a shipper writes into Elasticsearch or OpenSearch, an index a day. Records are read in an order that is the same in every
 * request (their millisecond, their index, their number in its shard), so that the next ones are asked for by the last one: nothing is
 * held open there, and nothing has to be cleaned up.
 */
import { badGateway, badRequest, StatusError, timeout } from '../../errors.ts';
import { bucketOf, bucketsBetween, demandFewBuckets } from '../intervals.ts';
import {
  intervalUnits,
  type Capabilities,
  type Cut,
  type Found,
  type Histogram,
  type Interval,
  type LogRecord,
  type LogStore,
  type Order,
  type Page,
  type Selection,
  type Statistics,
} from '../log-store.ts';
import { ahead } from './ahead.ts';
import { dateHistogram, serverOf, type Server } from './dialect.ts';
import { documentFields, exactTime, fields, recordOf, type Document } from './documents.ts';
import { inOrder, sharesOf, spansOf, type Part } from './parts.ts';
import { indicesOf, queryOf, type Asked, type Clause } from './search-query.ts';
import { inTurn, sum } from './in-turn.ts';
import { AnswerTooLarge, StoreClient, type Endpoint } from './store-client.ts';
import { wordsOf } from './words.ts';

export interface SearchStoreOptions {
  readonly name: Server['distribution'];
  readonly endpoint: Endpoint;
  /** Before `-YYYY.MM.DD`. */
  readonly indexPrefix: string;
  /** A date whose milliseconds are right. */
  readonly timeField: string;
}

interface Hit {
  readonly _index: string;
  readonly _id: string;
  readonly _source?: Document;
  readonly sort: readonly [milliseconds: number, index: string, sequence: number];
}

interface Answer {
  readonly timed_out: boolean;
  readonly _shards: { readonly total: number; readonly failed: number };
  readonly hits: { readonly total?: number | { readonly value: number }; readonly hits: readonly Hit[] };
  readonly aggregations?: Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>;
}

/** What the first records are skipped by, and the most that one answer has (index.max_result_window). */
const window = 10_000;
/** Records of an answer, at first; then as many as make answers of about this size. */
const firstSize = 1_000;
const largestSize = 5_000;
const wantedBytes = 4 * 1024 * 1024;
/** Characters of the records of a page. */
const mostOnPage = 32 * 1024 * 1024;
const oldest = { elasticsearch: 6, opensearch: 1 };
/** Of what the server itself gives up after. */
const serverTimeout = '60s';

export class SearchStore implements LogStore {
  readonly name: Server['distribution'];
  readonly capabilities: Capabilities = { keepsHistory: true, intervals: intervalUnits };
  readonly #client: StoreClient;
  readonly #prefix: string;
  readonly #timeField: string;
  #server: Promise<Server> | undefined;

  constructor({ name, endpoint, indexPrefix, timeField }: SearchStoreOptions) {
    this.name = name;
    this.#client = new StoreClient(name, endpoint);
    this.#prefix = indexPrefix;
    this.#timeField = timeField;
  }

  async query(selection: Selection, page: Page, signal: AbortSignal): Promise<Found> {
    return await this.#exactly(
      selection,
      signal,
      spansOf(selection),
      async (asked) => await this.#page(asked, page, signal),
    );
  }

  async statistics(selection: Selection, signal: AbortSignal): Promise<Statistics> {
    return await this.#exactly(selection, signal, sharesOf(selection), async (asked) => {
      const each = await inTurn(asked, async (one) => await this.#containers(one, signal));
      return { containers: sum(each.map(({ containers }) => containers)), logs: sum(each.map(({ logs }) => logs)) };
    });
  }

  async histogram(selection: Selection, interval: Interval, signal: AbortSignal): Promise<Histogram> {
    const server = await this.#known(signal);
    return await this.#exactly(selection, signal, sharesOf(selection), async (asked) => {
      if (selection.start === undefined) await this.#demandFewBuckets(asked, interval, signal);
      const counts = new Map<number, number>();
      const aggs = { buckets: dateHistogram(server, this.#timeField, interval) };
      const answers = await inTurn(asked, async (one) => await this.#search(one, { size: 0, aggs }, signal));
      for (const { key, doc_count: count } of answers.flatMap((answer) => this.#buckets(answer))) {
        const bucket = bucketOf(Number(key), interval);
        counts.set(bucket, (counts.get(bucket) ?? 0) + Number(count));
      }
      return { total: sum([...counts.values()]), histograms: bucketsBetween(counts, interval) };
    });
  }

  async *export(selection: Selection, order: Order, signal: AbortSignal): AsyncGenerator<readonly LogRecord[], Cut> {
    const spans = spansOf(selection);
    const asked = await this.#asked(selection, spans, signal);
    const not = await this.#afterEnd(asked, signal);
    for (const one of inOrder(asked, order))
      for await (const hits of ahead(
        (own) => this.#hits({ ...one, not }, { order, source: documentFields }, own),
        signal,
      ))
        yield this.#records(hits, order);
    return {};
  }

  /** Reads no further than that there is an answer. */
  async check(signal: AbortSignal): Promise<void> {
    this.#server = undefined;
    await this.#known(signal);
    await this.#ask(`${encodeURIComponent(this.#prefix)}-*`, { size: 0, terminate_after: 1 }, signal);
  }

  async close(): Promise<void> {
    this.#client.close();
  }

  /** Asked once, and again after a failure. */
  #known(signal: AbortSignal): Promise<Server> {
    if (this.#server === undefined) {
      const asking = this.#greet(signal);
      this.#server = asking;
      asking.catch(() => {
        if (this.#server === asking) this.#server = undefined;
      });
    }
    return this.#server;
  }

  async #greet(signal: AbortSignal): Promise<Server> {
    const answer = await this.#client.json({ path: '/', signal });
    const server = serverOf(answer);
    if (server === undefined) throw this.#client.nonsense(new Error('it does not say its version'));
    const { distribution, major } = server;
    if (distribution !== this.name)
      throw badGateway(`the log store "${this.name}" is of another kind: logging.store must be ${distribution}`);
    if (major < oldest[distribution])
      throw badGateway(`the log store "${this.name}" is of version ${major}, older than ${oldest[distribution]}`);
    return server;
  }

  /**
   * The store tells milliseconds apart, so it takes what comes within the millisecond of the end for not later. Whether there is any is
   * asked at the same time, and where there is, the question is asked again without it.
   */
  async #exactly<T>(
    selection: Selection,
    signal: AbortSignal,
    parts: readonly Part[],
    ask: (asked: Asked[]) => Promise<T>,
  ): Promise<T> {
    const asked = await this.#asked(selection, parts, signal);
    const [not, answer] = await Promise.all([this.#afterEnd(asked, signal), ask(asked)]);
    return not.length === 0 ? answer : await ask(asked.map((one) => ({ ...one, not })));
  }

  async #asked(selection: Selection, parts: readonly Part[], signal: AbortSignal): Promise<Asked[]> {
    const words = await Promise.all(selection.keywords.log.map(async (keyword) => await this.#words(keyword, signal)));
    return parts.map((part) => ({ selection, part, words, timeField: this.#timeField, not: [] }));
  }

  async #words(keyword: string, signal: AbortSignal): Promise<readonly string[]> {
    const words = wordsOf(keyword) ?? (await this.#analyzed(keyword, signal));
    if (words.length === 0)
      throw badRequest(
        `log_query: the log store "${this.name}" finds words and their beginnings, and there is none in ${JSON.stringify(keyword)}`,
      );
    return words;
  }

  async #analyzed(text: string, signal: AbortSignal): Promise<string[]> {
    const body = JSON.stringify({ analyzer: 'standard', text });
    const answer = await this.#client.json({ path: '/_analyze', body, signal });
    return this.#list(answer, 'tokens').map(({ token }) => String(token));
  }

  /** The ids of those in the millisecond of the end that are after it. */
  async #afterEnd(asked: readonly Asked[], signal: AbortSignal): Promise<string[]> {
    const last = asked.filter(({ part, selection }) => part.end === selection.end * 1_000);
    const found = await inTurn(last, async (one) => {
      const ids: string[] = [];
      const own = { ...one, part: { ...one.part, start: one.part.end } };
      for await (const hits of this.#hits(own, { order: 'asc', source: ['time'] }, signal))
        for (const { _id, _source, sort } of hits)
          if (!exactTime(_source?.time, sort[0]).endsWith('.000000000Z')) ids.push(_id);
      return ids;
    });
    return found.flat();
  }

  async #page(asked: readonly Asked[], { order, from, size }: Page, signal: AbortSignal): Promise<Found> {
    const totals = asked.length === 1 ? [] : await inTurn(asked, async (one) => await this.#count(one, signal));
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
      const options = {
        order,
        skip,
        most: size - records.length,
        source: documentFields,
        counted: (count: number) => (total = count),
      };
      for await (const hits of this.#hits(
        one,
        here === undefined ? options : { ...options, counted: undefined },
        signal,
      )) {
        for (const record of this.#records(hits, order)) {
          characters += record.log.length;
          if (characters > mostOnPage && records.length > 0)
            return {
              total,
              records,
              partial: { reason: 'the page has more than 32 MiB: take a smaller size, or operation=export' },
            };
          records.push(record);
        }
      }
      skip = 0;
    }
    return { total, records };
  }

  async #count(asked: Asked, signal: AbortSignal): Promise<number> {
    return this.#totalOf(await this.#search(asked, { size: 0, track_total_hits: true }, signal));
  }

  /** Exactly, where the store's own cardinality would be a guess. */
  async #containers(asked: Asked, signal: AbortSignal): Promise<Statistics> {
    const sources = [fields.namespace, fields.pod, fields.container].map((field, index) => ({
      [`field${index}`]: { terms: { field } },
    }));
    let containers = 0;
    let logs: number | undefined;
    for (let after: unknown; ;) {
      const composite = { size: window, sources, ...(after === undefined ? {} : { after }) };
      const answer = await this.#search(
        asked,
        { size: 0, track_total_hits: logs === undefined, aggs: { buckets: { composite } } },
        signal,
      );
      logs ??= this.#totalOf(answer);
      const found = this.#buckets(answer).length;
      containers += found;
      if (found < window) return { containers, logs };
      after = answer.aggregations?.['buckets']?.['after_key'];
    }
  }

  /** Where the beginning is that of the data, nobody has judged how long it is ago. */
  async #demandFewBuckets(asked: readonly Asked[], interval: Interval, signal: AbortSignal): Promise<void> {
    const field = this.#timeField;
    const aggs = { first: { min: { field } }, last: { max: { field } } };
    const answers = await inTurn(asked, async (one) => await this.#search(one, { size: 0, aggs }, signal));
    const times = answers.flatMap(({ aggregations }) =>
      [aggregations?.['first']?.['value'], aggregations?.['last']?.['value']].filter(
        (value) => typeof value === 'number',
      ),
    );
    if (times.length > 0) demandFewBuckets(Math.min(...times), Math.max(...times), interval);
  }

  #records(hits: readonly Hit[], order: Order): LogRecord[] {
    const sign = order === 'asc' ? 1 : -1;
    return hits
      .map(({ _source, sort }) => recordOf(_source ?? {}, sort[0]))
      .toSorted((a, b) => (a.time < b.time ? -sign : a.time > b.time ? sign : 0));
  }

  /**
   * In the order of (millisecond, index, number in its shard). Two of different shards may have all of these in common, so what follows is
   * asked for with the number of the last one again, and those that were there already are left out.
   */
  async *#hits(
    asked: Asked,
    {
      order,
      source,
      skip = 0,
      most = Infinity,
      counted,
    }: {
      order: Order;
      source: readonly string[] | false;
      skip?: number;
      most?: number;
      counted?: ((total: number) => void) | undefined;
    },
    signal: AbortSignal,
  ): AsyncGenerator<readonly Hit[]> {
    let after: Hit['sort'] | undefined;
    const passed = most === 0 ? 0 : skip;
    let seen = new Set<string>();
    let size = firstSize;
    let tell = counted;
    let skipped = 0;
    let left = most;
    // Deeper than a page may begin, all before it is walked through.
    const isWalk = passed + Math.min(most, firstSize) > window;
    while (left > 0 || tell !== undefined) {
      const isSkipping = isWalk && skipped < passed;
      const wanted = isSkipping ? Math.min(window, passed - skipped) : Math.min(size, left);
      const number = Math.min(wanted + seen.size, window);
      let answer: Answer;
      try {
        answer = await this.#search(
          asked,
          {
            size: number,
            ...(isWalk || after !== undefined || passed === 0 ? {} : { from: passed }),
            _source: isSkipping ? false : source,
            sort: this.#sort(order),
            track_total_hits: tell !== undefined,
            ...(after === undefined ? {} : { search_after: again(after, order) }),
          },
          signal,
        );
      } catch (error) {
        if (!(error instanceof AnswerTooLarge) || number <= seen.size + 1 || isSkipping) throw error;
        size = Math.max(1, Math.floor(wanted / 4));
        continue;
      }
      tell?.(this.#totalOf(answer));
      tell = undefined;
      const { hits } = answer.hits;
      if (
        hits.some(
          ({ sort }) =>
            !Array.isArray(sort) || !sort.every((value) => typeof value === 'number' || typeof value === 'string'),
        )
      )
        throw this.#client.nonsense(new Error('it does not say what it sorts by'));
      const fresh = (seen.size === 0 ? hits : hits.filter((hit) => !seen.has(keyOf(hit)))).slice(0, wanted);
      const last = fresh.at(-1);
      if (last === undefined) return;
      const isSame = after !== undefined && sortsAlike(last.sort, after);
      seen = new Set([...(isSame ? seen : []), ...fresh.filter(({ sort }) => sortsAlike(sort, last.sort)).map(keyOf)]);
      after = last.sort;
      if (isSkipping) skipped += fresh.length;
      else {
        left -= fresh.length;
        size = sizeAfter(fresh);
        yield fresh;
      }
      if (hits.length < number) return;
    }
  }

  #sort(order: Order): Clause[] {
    return [{ [this.#timeField]: { order, unmapped_type: 'date' } }, { _index: { order } }, { _seq_no: { order } }];
  }

  async #search(asked: Asked, body: Clause, signal: AbortSignal): Promise<Answer> {
    const indices = indicesOf(this.#prefix, asked.part).map(encodeURIComponent).join(',');
    return await this.#ask(indices, { timeout: serverTimeout, query: queryOf(asked), ...body }, signal);
  }

  async #ask(indices: string, body: Clause, signal: AbortSignal): Promise<Answer> {
    const path = `/${indices}/_search?ignore_unavailable=true&allow_no_indices=true&allow_partial_search_results=false`;
    const question = { path, body: JSON.stringify(body), signal };
    const answer = await this.#client.json(question, (text) => this.#explain(text));
    const { timed_out: isLate, _shards: shards, hits } = (answer ?? {}) as Partial<Answer>;
    if (isLate === true) throw timeout(`the log store "${this.name}" did not answer in time`);
    if (isLate !== false || shards?.failed !== 0 || !isListOfObjects(hits?.hits))
      throw this.#client.nonsense(new Error('it is no answer to a search, or one without some shards'));
    return answer as Answer;
  }

  /** Those that say something of the question. */
  #explain(text: string): StatusError | undefined {
    if (/too_many_(nested_)?clauses|maxClauseCount/.test(text))
      return badRequest(
        `log_query: the log store "${this.name}" has too many words that begin like the last one of a keyword: write it as a whole`,
      );
    if (text.includes('too_many_buckets'))
      return badRequest(
        `interval: the log store "${this.name}" has more buckets than it may tell: ask for longer ones`,
      );
    return undefined;
  }

  #totalOf({ hits: { total } }: Answer): number {
    const value = typeof total === 'object' ? total.value : total;
    if (typeof value !== 'number') throw this.#client.nonsense(new Error('it does not say how many there are'));
    return value;
  }

  /** Without any index there are no aggregations at all. */
  #buckets({ _shards, aggregations }: Answer): readonly Readonly<Record<string, unknown>>[] {
    return _shards.total === 0 ? [] : this.#list(aggregations?.['buckets'], 'buckets');
  }

  #list(part: unknown, key: string): readonly Readonly<Record<string, unknown>>[] {
    const found = (part as Readonly<Record<string, unknown>> | null | undefined)?.[key];
    if (!isListOfObjects(found)) throw this.#client.nonsense(new Error(`its ${key} are missing`));
    return found;
  }
}

const isListOfObjects = (value: unknown): value is readonly Readonly<Record<string, unknown>>[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'object' && one !== null);

const sortsAlike = (a: Hit['sort'], b: Hit['sort']): boolean => a[2] === b[2] && a[0] === b[0] && a[1] === b[1];

const keyOf = ({ _index, _id }: Hit): string => `${_index}/${_id}`;

/** As many as these were, or more, if they are short. */
function sizeAfter(hits: readonly Hit[]): number {
  const each = hits.reduce(
    (bytes, { _source }) => bytes + (typeof _source?.log === 'string' ? _source.log.length : 0),
    0,
  );
  return Math.max(1, Math.min(largestSize, Math.floor(wantedBytes / (400 + each / hits.length))));
}

/** Just before those that sort as the last one does. */
const again = ([time, index, sequence]: Hit['sort'], order: Order): Hit['sort'] => [
  time,
  index,
  sequence + (order === 'asc' ? -1 : 1),
];
