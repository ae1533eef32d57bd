/**
 * Loki 2.9 and later. It has no offset, and no totals: pages are read from the first record on, each from where the one before ended, and
 * counted by questions of their own. What counts does so in ranges whose beginning is not in them, and of which nothing shorter than a
 * millisecond can be asked; here a beginning is, to the nanosecond, so some seconds are looked at apart.
 */
import type { LokiSettings } from '../../config/logging.ts';
import { badRequest } from '../../errors.ts';
import { bucketOf, bucketsBetween, demandFewBuckets, lengthOf, mostBuckets } from '../intervals.ts';
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
import { endpointOf, type SecretReader } from './endpoint.ts';
import { inTurn, sum } from './in-turn.ts';
import {
  atSecond,
  countByContainer,
  countByEdge,
  countOf,
  edge,
  linesOf,
  questionOf,
  selectorOf,
  shareOf,
  type Question,
} from './logql.ts';
import { entriesOf, sizeAfter, timeOf, type Entry } from './loki-entries.ts';
import { containerOf, sharesOfContainers } from './loki-shares.ts';
import { LimitExceeded, LokiClient, type Between, type Limits } from './loki-client.ts';
import { inOrder, sharesOf, spansOf, type Part } from './parts.ts';
import { AnswerTooLarge } from './store-client.ts';

const day = 86_400;
/** Loki did not exist before. */
const oldest = Date.UTC(2018, 0) / 1_000;
const nanoseconds = 1_000_000_000n;

/** As Loki has them by default; a tenant may have less. */
const usual: Limits = { entries: 5_000, series: 500, length: 30 * day };
const leastLength = 3_600;
/** Seconds. */
const remembered = 600;
/** Records of an answer, at first. */
const firstSize = 1_000;
/** Characters of the records of a page. */
const mostOnPage = 32 * 1024 * 1024;

/** From one whole second to the other, which is not in it. */
interface Span {
  readonly from: number;
  readonly to: number;
}

/** A part of the selection, and how Loki is asked for it. */
interface Asked {
  readonly question: Question;
  /** Those of its time in which there may be something, the oldest first; none of them longer than may be asked at once. */
  readonly spans: readonly Span[];
  /** What is exactly at the end of the selection is meant too: its second. */
  readonly end: number | undefined;
}

export class Loki implements LogStore {
  readonly name = 'loki';
  readonly capabilities: Capabilities = { findsSubstrings: true, keepsHistory: true, intervals: intervalUnits };
  readonly #client: LokiClient;
  readonly #settings: LokiSettings;
  readonly #now: () => number;
  #limits = usual;
  /** Seconds since the epoch. */
  #known: { readonly beginning: number; readonly until: number } | undefined;

  /** `now`: milliseconds since the epoch. */
  constructor(settings: LokiSettings, secrets: SecretReader, now: () => number = Date.now) {
    const { tenant } = settings;
    this.#settings = settings;
    this.#now = now;
    this.#client = new LokiClient(this.name, {
      ...endpointOf(this.name, settings, secrets),
      headers: {
        ...(tenant === undefined ? {} : { 'X-Scope-OrgID': tenant }),
        // A stream is what its labels say, whatever else is known of each of its records.
        'X-Loki-Response-Encoding-Flags': 'categorize-labels',
      },
    });
  }

  async query(selection: Selection, page: Page, signal: AbortSignal): Promise<Found> {
    return await this.#within(async () => {
      const asked = await this.#asked(selection, spansOf(selection), signal);
      return await this.#page(asked, page, signal);
    });
  }

  async statistics(selection: Selection, signal: AbortSignal): Promise<Statistics> {
    return await this.#within(async () => {
      const asked = await this.#asked(selection, sharesOf(selection), signal);
      const each = await inTurn(asked, async (one) => await this.#containers(one, signal));
      return { containers: sum(each.map(({ containers }) => containers)), logs: sum(each.map(({ logs }) => logs)) };
    });
  }

  async histogram(selection: Selection, interval: Interval, signal: AbortSignal): Promise<Histogram> {
    return await this.#within(async () => {
      const asked = await this.#asked(selection, sharesOf(selection), signal);
      const step = this.#stepOf(interval);
      const counts = new Map<number, number>();
      const each = await inTurn(asked, async (one) => await this.#buckets(one, step, interval, signal));
      for (const [second, count] of each.flat()) {
        const bucket = bucketOf(second * 1_000, interval);
        if (count > 0) counts.set(bucket, (counts.get(bucket) ?? 0) + count);
      }
      return { total: sum([...counts.values()]), histograms: bucketsBetween(counts, interval) };
    });
  }

  async *export(selection: Selection, order: Order, signal: AbortSignal): AsyncGenerator<readonly LogRecord[], Cut> {
    const reasons = new Set<string>();
    for (let isBegun = false; ;)
      try {
        const asked = await this.#asked(selection, spansOf(selection), signal);
        for (const one of inOrder(asked, order))
          for await (const records of ahead((own) => this.#records(one, order, { reasons }, own), signal)) {
            isBegun = true;
            yield records;
          }
        return cutBy(reasons);
      } catch (error) {
        if (isBegun || !this.#learns(error)) throw error;
      }
  }

  async check(signal: AbortSignal): Promise<void> {
    const now = BigInt(Math.floor(this.#now() / 1_000)) * nanoseconds;
    await this.#client.check({ from: now - 300n * nanoseconds, to: now }, signal);
  }

  async close(): Promise<void> {
    this.#client.close();
  }

  /** Asks again for less where a tenant may ask for less than usual. */
  async #within<T>(ask: () => Promise<T>): Promise<T> {
    for (;;)
      try {
        return await ask();
      } catch (error) {
        if (!this.#learns(error)) throw error;
      }
  }

  #learns(error: unknown): boolean {
    if (!(error instanceof LimitExceeded)) return false;
    const { limit, most } = error.allowed;
    const before = this.#limits[limit];
    const now = limit === 'length' ? Math.max(leastLength, Math.floor(before / 2)) : (most ?? before);
    if (now >= before || now < 1) return false;
    this.#limits = { ...this.#limits, [limit]: now };
    return true;
  }

  async #asked(selection: Selection, parts: readonly Part[], signal: AbortSignal): Promise<Asked[]> {
    const now = Math.floor(this.#now() / 1_000);
    return await inTurn(parts, async (part) => {
      const question = questionOf(selection, part, this.#settings);
      const isLast = part.end === selection.end * 1_000;
      const bounds = {
        from: Math.max(oldest, (part.start ?? 0) / 1_000),
        // Nothing is of the future, but for clocks that differ.
        to: Math.min(now + day, Math.ceil(part.end / 1_000)),
      };
      return {
        question,
        spans: await this.#spans(question, bounds, signal),
        end: isLast && selection.end === bounds.to && bounds.from <= bounds.to ? bounds.to : undefined,
      };
    });
  }

  /** Years are many questions: the index knows when there was nothing. */
  async #spans(question: Question, time: Span, signal: AbortSignal): Promise<readonly Span[]> {
    const { length } = this.#limits;
    const whole = spansOfLength(time, length);
    if (whole.length < 2) return whole;
    const from = whole.length === 2 ? time.from : Math.max(time.from, await this.#beginning(signal));
    return await this.#inhabited(selectorOf(question), spansOfLength({ from, to: time.to }, length), signal);
  }

  /** Before it there is nothing at all. It is sought now and then, as it moves on. */
  async #beginning(signal: AbortSignal): Promise<number> {
    const now = Math.floor(this.#now() / 1_000);
    if (this.#known !== undefined && now < this.#known.until) return this.#known.beginning;
    const selector = `{${this.#settings.labels.namespace}=~".+"}`;
    const all = spansOfLength({ from: oldest, to: now + day }, this.#limits.length);
    const [first] = await this.#inhabited(selector, all, signal);
    if (first === undefined) return oldest;
    this.#known = { beginning: first.from, until: now + remembered };
    return first.from;
  }

  async #inhabited(selector: string, spans: readonly Span[], signal: AbortSignal): Promise<readonly Span[]> {
    const { namespace } = this.#settings.labels;
    const found = await inTurn(spans, async (span) =>
      (await this.#client.hasAny(namespace, selector, exactly(span), signal)) ? [span] : [],
    );
    return found.flat();
  }

  async #page(asked: readonly Asked[], { order, from, size }: Page, signal: AbortSignal): Promise<Found> {
    const counting = inTurn(asked, async (one) => await this.#count(one, signal));
    const ordered = inOrder(asked, order);
    // Of one part it need not be known how much is to be passed over.
    const counts = asked.length === 1 ? undefined : inOrder(await counting, order);
    const [totals, { records, partial }] = await Promise.all([
      counting,
      this.#slice(ordered, counts, { order, from, size }, signal),
    ]);
    return { total: sum(totals), records, ...(partial === undefined ? {} : { partial }) };
  }

  async #slice(
    asked: readonly Asked[],
    counts: readonly number[] | undefined,
    { order, from, size }: Page,
    signal: AbortSignal,
  ): Promise<Omit<Found, 'total'>> {
    const records: LogRecord[] = [];
    const reasons = new Set<string>();
    let skip = from;
    let characters = 0;
    if (size === 0) return { records };
    for (const [index, one] of asked.entries()) {
      const here = counts?.[index] ?? Infinity;
      if (skip >= here || here === 0) {
        skip -= here;
        continue;
      }
      const most = skip + size - records.length;
      for await (const found of this.#records(one, order, { reasons, most }, signal)) {
        const passed = Math.min(skip, found.length);
        skip -= passed;
        for (const record of found.slice(passed)) {
          characters += record.log.length;
          if (characters > mostOnPage && records.length > 0) {
            reasons.add('the page has more than 32 MiB: take a smaller size, or operation=export');
            return { records, ...cutBy(reasons) };
          }
          records.push(record);
          if (records.length === size) return { records, ...cutBy(reasons) };
        }
      }
    }
    return { records, ...cutBy(reasons) };
  }

  /** All of a part, in order; pieces end where a time does, so that what is of one time comes in the same order however it is asked for. */
  async *#records(
    { question, spans, end }: Asked,
    order: Order,
    { reasons, most = Infinity }: { readonly reasons: Set<string>; readonly most?: number },
    signal: AbortSignal,
  ): AsyncGenerator<readonly LogRecord[]> {
    const query = linesOf(question);
    let left = most;
    let size = Math.min(firstSize, most + 1);
    for (const time of inOrder(timesOf(spans, end), order)) {
      let { from, to } = time;
      /** So many are too large for an answer. */
      let tooMany = Infinity;
      while (from < to && left > 0) {
        const limit = Math.min(size, this.#limits.entries);
        let found: readonly Entry[];
        try {
          found = entriesOf(await this.#client.streams(query, { from, to }, { order, limit }, signal), order);
        } catch (error) {
          if (error instanceof LimitExceeded && error.allowed.limit === 'entries' && this.#learns(error)) continue;
          if (!(error instanceof AnswerTooLarge) || limit === 1) throw error;
          tooMany = limit;
          size = Math.max(1, Math.floor(limit / 4));
          continue;
        }
        const last = found.at(-1);
        if (last === undefined) break;
        const isWhole = found.length < limit;
        // Of the last time there may be more.
        let whole = isWhole ? found : found.filter(({ time: at }) => at !== last.time);
        const isOneTime = whole.length === 0;
        if (isOneTime && limit < this.#limits.entries && limit * 2 < tooMany) {
          size = limit * 2;
          continue;
        }
        if (isOneTime) {
          whole = found;
          reasons.add(`of those of one time no more than ${limit} records are told`);
        }
        yield whole.map((entry) => this.#recordOf(entry));
        left -= whole.length;
        if (isWhole) break;
        const at = BigInt(last.time);
        if (order === 'asc') from = isOneTime ? at + 1n : at;
        else to = isOneTime ? at : at + 1n;
        size = sizeAfter(whole);
        tooMany = Infinity;
      }
    }
  }

  #recordOf({ time, line, labels }: Entry): LogRecord {
    const { namespace, pod, container } = this.#settings.labels;
    return {
      time: timeOf(time),
      namespace: labels[namespace] ?? '',
      pod: labels[pod] ?? '',
      container: labels[container] ?? '',
      log: line.replace(/\n$/, ''),
    };
  }

  async #count({ question, spans, end }: Asked, signal: AbortSignal): Promise<number> {
    const each = await inTurn(spans, async (span) => await this.#countIn(question, span, signal));
    return sum(each) + (end === undefined ? 0 : await this.#countAt(question, end, signal));
  }

  async #countIn(question: Question, { from, to }: Span, signal: AbortSignal): Promise<number> {
    if (from >= to) return 0;
    const found = await this.#client.vector(countOf(question, `${to - from}s`), lastOf(to), signal);
    return sum(found.map(({ value }) => value));
  }

  /** What is exactly at the beginning of a second. */
  async #countAt(question: Question, second: number, signal: AbortSignal): Promise<number> {
    const time = BigInt(second) * nanoseconds;
    const found = await this.#client.vector(countOf(atSecond(question, second), '1ms'), time, signal);
    return sum(found.map(({ value }) => value));
  }

  /** Its answers have a line for each container, and no more than so many: the containers there may be are asked for in shares. */
  async #containers({ question, spans, end }: Asked, signal: AbortSignal): Promise<Statistics> {
    const { labels } = this.#settings;
    // New ones may come in between.
    const most = Math.ceil(this.#limits.series * 0.9);
    const seen = new Set<string>();
    let logs = 0;
    const take = async (one: Question, range: string, time: bigint): Promise<void> => {
      for (const { labels: found, value } of await this.#client.vector(
        countByContainer(one, range, labels),
        time,
        signal,
      )) {
        seen.add(containerOf(found, labels));
        logs += value;
      }
    };
    for (const span of spans) {
      const known = await this.#client.series(selectorOf(question), exactly(span), signal);
      await inTurn(
        sharesOfContainers(known, labels, most),
        async (share) => await take(shareOf(question, share, labels), `${span.to - span.from}s`, lastOf(span.to)),
      );
    }
    if (end !== undefined) {
      const time = BigInt(end) * nanoseconds;
      // Of what is shorter than a millisecond it has nothing to tell.
      const known = await this.#client.series(selectorOf(question), exactly({ from: end, to: end + 1 }), signal);
      await inTurn(
        sharesOfContainers(known, labels, most),
        async (share) => await take(atSecond(shareOf(question, share, labels), end), '1ms', time),
      );
    }
    return { containers: seen.size, logs };
  }

  /** Seconds: all buckets are made up of such steps, which begin at a multiple of themselves. */
  #stepOf(interval: Interval): number {
    const { count, unit } = interval;
    if (!['s', 'm', 'h', 'd'].includes(unit)) return day;
    const length = lengthOf(interval) / 1_000;
    if (length % day === 0) return day;
    if (length > this.#limits.length)
      throw badRequest(
        `interval: the log store "${this.name}" has no buckets of ${count}${unit}: take a number of days, or less than ${Math.floor(this.#limits.length / day)}d`,
      );
    return length;
  }

  /** How many there are, by the second at which a step begins. */
  async #buckets(
    asked: Asked,
    step: number,
    interval: Interval,
    signal: AbortSignal,
  ): Promise<(readonly [second: number, count: number])[]> {
    const { question, end } = asked;
    const spans = await this.#tightened(asked, interval, signal);
    const each = await inTurn(spans, async (span) => await this.#steps(question, span, step, signal));
    const counts = each.flat();
    return end === undefined ? counts : [...counts, [end, await this.#countAt(question, end, signal)]];
  }

  /** Where the beginning is that of the data, nobody has judged how long it is ago. */
  async #tightened(asked: Asked, interval: Interval, signal: AbortSignal): Promise<readonly Span[]> {
    const { spans } = asked;
    const [begin, last] = [spans[0]?.from ?? 0, spans.at(-1)?.to ?? 0];
    if (((last - begin) * 1_000) / lengthOf(interval) <= mostBuckets) return spans;
    const [first, final] = await Promise.all([this.#first(asked, 'asc', signal), this.#first(asked, 'desc', signal)]);
    if (first === undefined || final === undefined) return [];
    demandFewBuckets(first * 1_000, final * 1_000, interval);
    return spans
      .map(({ from, to }) => ({ from: Math.max(from, first), to: Math.min(to, final + 1) }))
      .filter(({ from, to }) => from < to);
  }

  /** The second of the first record in this order. */
  async #first(asked: Asked, order: Order, signal: AbortSignal): Promise<number | undefined> {
    for await (const [record] of this.#records(
      { ...asked, end: undefined },
      order,
      { reasons: new Set(), most: 1 },
      signal,
    ))
      if (record !== undefined) return Math.floor(Date.parse(record.time) / 1_000);
    return undefined;
  }

  async #steps(
    question: Question,
    { from, to }: Span,
    step: number,
    signal: AbortSignal,
  ): Promise<(readonly [second: number, count: number])[]> {
    const first = Math.ceil(from / step) * step;
    const last = Math.floor(to / step) * step;
    const bucket = (second: number): number => Math.floor(second / step) * step;
    if (first >= last) {
      // No step is whole.
      const cut = Math.min(first, to);
      return [
        [bucket(from), await this.#countIn(question, { from, to: cut }, signal)],
        [bucket(cut), await this.#countIn(question, { from: cut, to }, signal)],
      ];
    }
    const query = countByEdge(question, step);
    const [before, atFirst, whole, after] = await Promise.all([
      this.#countIn(question, { from, to: first }, signal),
      this.#countAt(question, first, signal),
      this.#client.matrix(query, { start: first + step, end: last, step }, signal),
      this.#countIn(question, { from: last, to }, signal),
    ]);
    const counts: (readonly [number, number])[] = [
      [bucket(from), before],
      [first, atFirst],
      [last, after],
    ];
    for (const { labels, values } of whole)
      for (const [second, count] of values)
        // A range has its end in it, which is where the next step begins; the last one has its own question.
        if (labels[edge] !== 'true') counts.push([second - step, count]);
        else if (second < last) counts.push([second, count]);
    return counts;
  }
}

/** One after the other, none of them longer. */
const spansOfLength = ({ from, to }: Span, length: number): readonly Span[] =>
  Array.from({ length: Math.max(0, Math.ceil((to - from) / length)) }, (_, index) => ({
    from: from + index * length,
    to: Math.min(to, from + (index + 1) * length),
  }));

const exactly = ({ from, to }: Span): Between => ({ from: BigInt(from) * nanoseconds, to: BigInt(to) * nanoseconds });

/** And what is at the beginning of the second `end`. */
function timesOf(spans: readonly Span[], end: number | undefined): Between[] {
  const times = spans.map(exactly);
  if (end === undefined) return times;
  const at = BigInt(end) * nanoseconds;
  const last = times.at(-1);
  return last?.to === at
    ? [...times.slice(0, -1), { from: last.from, to: at + 1n }]
    : [...times, { from: at, to: at + 1n }];
}

/** The last nanosecond before a second: a range of whole seconds that ends with it begins with a second. */
const lastOf = (second: number): bigint => BigInt(second) * nanoseconds - 1n;

const cutBy = (reasons: ReadonlySet<string>): Cut =>
  reasons.size === 0 ? {} : { partial: { reason: [...reasons].join('; ') } };

export const loki = (settings: LokiSettings, secrets: SecretReader): LogStore => new Loki(settings, secrets);
