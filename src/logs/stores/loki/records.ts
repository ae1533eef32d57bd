/**
 * Reads records in pieces. Loki returns a limited number per request, so each request starts where the previous request
 * ended.
 */
import { Reasons, type Found, type LogRecord, type TimeOrder, type LogPage } from '../log-store.ts';
import { maxBatchBytes, maxPageCharacters, pageTooLarge } from '../remote/paging.ts';
import { inOrder } from '../remote/parts.ts';
import { ResponseTooLarge } from '../remote/store-client.ts';
import type { LokiRequest } from './requests.ts';
import { LimitExceeded, type TimeRange } from './client.ts';
import { entriesOf, recordOf, sizeAfter, textOf, type LokiEntry } from './entries.ts';
import { linesOf } from './logql.ts';
import { extendedStart, rangesOf } from './spans.ts';
import type { Tenant } from './tenant.ts';

/** Number of records in the first request. */
const firstSize = 1_000;

interface RecordOptions {
  readonly order: TimeOrder;
  /** Receives the reasons for missing records. */
  readonly reasons: Reasons;
  /** Maximum number of records; unlimited by default. */
  readonly max?: number;
}

/**
 * Yields all records of a part in order. No piece ends between records with the same time, so that the order of records
 * does not depend on the requests.
 */
export async function* recordsOf(
  tenant: Tenant,
  { query: logQL, spans, end }: LokiRequest,
  { order, reasons, max = Infinity }: RecordOptions,
  signal: AbortSignal,
): AsyncGenerator<readonly LogRecord[]> {
  const query: Query = { tenant, lines: linesOf(logQL), order, signal };
  let left = max;
  let size = Math.min(firstSize, max + 1);
  for (const range of inOrder(rangesOf(spans, end), order)) {
    let { from, to } = range;
    while (from < to && left > 0) {
      const { entries, isCut } = await fetchFirst(query, { from, to }, size);
      // There is no last record if the response contains only records from just before `from`.
      const last = entries.at(-1)?.time ?? textOf(from);
      // Further records may have the same time as the last record.
      let piece = isCut ? entries.filter((entry) => entry.time !== last) : entries;
      const isOneTime = isCut && piece.length === 0;
      const at = BigInt(last);
      if (isOneTime) piece = await fetchTime(query, at, entries, reasons);
      if (piece.length > 0) {
        yield piece.map((entry) => recordOf(entry, tenant.settings.labels));
        left -= piece.length;
        size = sizeAfter(piece);
      }
      if (!isCut) break;
      if (order === 'asc') from = isOneTime ? at + 1n : at;
      else to = isOneTime ? at : at + 1n;
    }
  }
}

interface Query {
  readonly tenant: Tenant;
  readonly lines: string;
  readonly order: TimeOrder;
  readonly signal: AbortSignal;
}

interface Batch {
  readonly entries: readonly LokiEntry[];
  /** True if there may be more records. */
  readonly isCut: boolean;
  /** True if records from just before the range displaced records of the range. */
  readonly isCrowded: boolean;
}

/**
 * Fetches up to `size` records in a response of up to `maxBytes`, by default 32 MiB. `requested` can start before the
 * range. Records before the range are dropped.
 */
async function fetchBatch(
  { tenant, lines, order, signal }: Query,
  range: TimeRange,
  { size, maxBytes }: { readonly size: number; readonly maxBytes?: number | undefined },
  requested = extendedStart(range),
): Promise<Batch> {
  for (;;) {
    const { limits } = tenant;
    const limit = Math.min(size, limits.entries);
    try {
      const received = entriesOf(
        await tenant.client.streams(lines, requested, { order, limit, maxBytes }, signal),
        order,
      );
      const first = textOf(range.from);
      const entries = received.filter(({ time }) => time >= first);
      const hasBefore = entries.length < received.length;
      const isCut = received.length >= limit && !(order === 'desc' && hasBefore);
      return { entries, isCut, isCrowded: isCut && hasBefore };
    } catch (error) {
      if (!(error instanceof LimitExceeded && error.allowed.limit === 'entries' && tenant.learnLimit(error, limits)))
        throw error;
    }
  }
}

/** Fetches up to `size` records, or fewer if the records are large. */
async function fetchFirst(query: Query, range: TimeRange, size: number): Promise<Batch> {
  for (let number = Math.min(size, query.tenant.limits.entries); ; number = Math.max(1, Math.floor(number / 4)))
    try {
      return await fetchBatch(query, range, { size: number, maxBytes: number === 1 ? undefined : maxBatchBytes });
    } catch (error) {
      if (!(error instanceof ResponseTooLarge) || number === 1) throw error;
    }
}

/**
 * Fetches all records of a nanosecond, up to the maximum records and bytes of a response. The `known` records were
 * already fetched.
 */
async function fetchTime(
  query: Query,
  at: bigint,
  known: readonly LokiEntry[],
  reasons: Reasons,
): Promise<readonly LokiEntry[]> {
  const range = { from: at, to: at + 1n };
  let best = known;
  let requested = extendedStart(range);
  for (let size = Math.max(2, 2 * known.length); ; size *= 2) {
    let batch: Batch;
    try {
      batch = await fetchBatch(query, range, { size }, requested);
    } catch (error) {
      if (!(error instanceof ResponseTooLarge) || best.length === 0) throw error;
      break;
    }
    best = batch.entries;
    if (!batch.isCut) return best;
    if (size < query.tenant.limits.entries) continue;
    if (!batch.isCrowded) break;
    requested = range;
  }
  reasons.add(`only ${best.length} of the records with the same time are returned`);
  return best;
}

/**
 * Returns the records of a page. `counts`: number of records per part. Without `counts`, the records before the page
 * are read and skipped.
 */
export async function pageOf(
  tenant: Tenant,
  requests: readonly LokiRequest[],
  counts: readonly number[] | undefined,
  { order, from, size }: LogPage,
  signal: AbortSignal,
): Promise<Omit<Found, 'total'>> {
  const records: LogRecord[] = [];
  const reasons = new Reasons();
  let skip = from;
  let characters = 0;
  if (size === 0) return { records };
  for (const [index, one] of requests.entries()) {
    const here = counts?.[index] ?? Infinity;
    if (skip >= here || here === 0) {
      skip -= here;
      continue;
    }
    const max = skip + size - records.length;
    for await (const found of recordsOf(tenant, one, { order, reasons, max }, signal)) {
      const skipped = Math.min(skip, found.length);
      skip -= skipped;
      for (const record of found.slice(skipped)) {
        characters += record.log.length;
        if (characters > maxPageCharacters && records.length > 0) {
          reasons.add(pageTooLarge);
          return { records, ...reasons.cut };
        }
        records.push(record);
        if (records.length === size) return { records, ...reasons.cut };
      }
    }
  }
  return { records, ...reasons.cut };
}
