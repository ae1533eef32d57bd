/** The records of a question, which Loki tells by streams and so many at a time: each piece is asked for from where the one before ended. */
import type { Cut, Found, LogRecord, Order, Page } from '../log-store.ts';
import { mostOfSeveral, mostOnPage, tooLarge } from '../remote/page.ts';
import { inOrder } from '../remote/parts.ts';
import { AnswerTooLarge } from '../remote/store-client.ts';
import type { Asked } from './asked.ts';
import { LimitExceeded } from './client.ts';
import { entriesOf, recordOf, sizeAfter, textOf, type Entry } from './entries.ts';
import { linesOf } from './logql.ts';
import { early, timesOf } from './spans.ts';
import type { Tenant } from './tenant.ts';

/** Records of an answer, at first. */
const firstSize = 1_000;

export const cutBy = (reasons: ReadonlySet<string>): Cut =>
  reasons.size === 0 ? {} : { partial: { reason: [...reasons].join('; ') } };

interface Wanted {
  readonly order: Order;
  /** Why some are left out is added. */
  readonly reasons: Set<string>;
  /** All of them unless stated. */
  readonly most?: number;
}

/** All of a part, in order; pieces end where a time does, so that what is of one time comes in the same order however it is asked for. */
export async function* recordsOf(
  tenant: Tenant,
  { question, spans, end }: Asked,
  { order, reasons, most = Infinity }: Wanted,
  signal: AbortSignal,
): AsyncGenerator<readonly LogRecord[]> {
  const query = linesOf(question);
  let left = most;
  let size = Math.min(firstSize, most + 1);
  for (const time of inOrder(timesOf(spans, end), order)) {
    let { from, to } = time;
    /** So many are too large for an answer. */
    let tooMany = Infinity;
    /** All of a time are told together. */
    let isOneTime = false;
    let isEarly = true;
    while (from < to && left > 0) {
      const limit = Math.min(size, tenant.limits.entries);
      const bytes = limit === 1 || isOneTime ? undefined : mostOfSeveral;
      const between = isEarly ? early({ from, to }) : { from, to };
      let told: readonly Entry[];
      try {
        told = entriesOf(await tenant.client.streams(query, between, { order, limit, most: bytes }, signal), order);
      } catch (error) {
        if (error instanceof LimitExceeded && error.allowed.limit === 'entries' && tenant.learns(error)) continue;
        if (!(error instanceof AnswerTooLarge) || limit === 1) throw error;
        tooMany = limit;
        size = Math.max(1, Math.floor(limit / 4));
        continue;
      }
      const first = textOf(from);
      const found = told.filter(({ time: at }) => at >= first);
      const isWhole = told.length < limit || (order === 'desc' && found.length < told.length);
      const last = found.at(-1);
      if (last === undefined) {
        if (isWhole) break;
        isEarly = false;
        continue;
      }
      // Of the last time there may be more.
      let whole = isWhole ? found : found.filter(({ time: at }) => at !== last.time);
      const wasOneTime = isOneTime;
      isOneTime = whole.length === 0;
      if (isOneTime && !wasOneTime) tooMany = Infinity;
      if (isOneTime && limit < tenant.limits.entries && limit * 2 < tooMany) {
        size = limit * 2;
        continue;
      }
      if (isOneTime && found.length < told.length) {
        isEarly = false;
        continue;
      }
      if (isOneTime) {
        whole = found;
        reasons.add(`of those of one time no more than ${limit} records are told`);
      }
      yield whole.map((entry) => recordOf(entry, tenant.settings.labels));
      left -= whole.length;
      if (isWhole) break;
      const at = BigInt(last.time);
      if (order === 'asc') from = isOneTime ? at + 1n : at;
      else to = isOneTime ? at : at + 1n;
      size = sizeAfter(whole);
      tooMany = Infinity;
      isOneTime = false;
      isEarly = true;
    }
  }
}

/** The records of a page. `counts`: how many each part has; where they are not known, those before the page are read. */
export async function pageOf(
  tenant: Tenant,
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
    for await (const found of recordsOf(tenant, one, { order, reasons, most }, signal)) {
      const passed = Math.min(skip, found.length);
      skip -= passed;
      for (const record of found.slice(passed)) {
        characters += record.log.length;
        if (characters > mostOnPage && records.length > 0) {
          reasons.add(tooLarge);
          return { records, ...cutBy(reasons) };
        }
        records.push(record);
        if (records.length === size) return { records, ...cutBy(reasons) };
      }
    }
  }
  return { records, ...cutBy(reasons) };
}
