/** The records of a question, which Loki tells by streams and so many at a time: each piece is asked for from where the one before ended. */
import { Reasons, type Found, type LogRecord, type TimeOrder, type LogPage } from '../log-store.ts';
import { mostOfSeveral, mostOnPage, tooLarge } from '../remote/paging.ts';
import { inOrder } from '../remote/parts.ts';
import { AnswerTooLarge } from '../remote/store-client.ts';
import type { LokiRequest } from './asked.ts';
import { LimitExceeded, type Between } from './client.ts';
import { entriesOf, recordOf, sizeAfter, textOf, type LokiEntry } from './entries.ts';
import { linesOf } from './logql.ts';
import { early, timesOf } from './spans.ts';
import type { Tenant } from './tenant.ts';

/** Records of an answer, at first. */
const firstSize = 1_000;

interface Wanted {
  readonly order: TimeOrder;
  /** Why some are left out is added. */
  readonly reasons: Reasons;
  /** All of them unless stated. */
  readonly most?: number;
}

/** All of a part, in order; pieces end where a time does, so that what is of one time comes in the same order however it is asked for. */
export async function* recordsOf(
  tenant: Tenant,
  { question, spans, end }: LokiRequest,
  { order, reasons, most = Infinity }: Wanted,
  signal: AbortSignal,
): AsyncGenerator<readonly LogRecord[]> {
  const query: Query = { tenant, lines: linesOf(question), order, signal };
  let left = most;
  let size = Math.min(firstSize, most + 1);
  for (const time of inOrder(timesOf(spans, end), order)) {
    let { from, to } = time;
    while (from < to && left > 0) {
      const { entries, isCut } = await beginningOf(query, { from, to }, size);
      // None where those of the time just before have taken all the room.
      const last = entries.at(-1)?.time ?? textOf(from);
      // Of the last time there may be more.
      let piece = isCut ? entries.filter((entry) => entry.time !== last) : entries;
      const isOneTime = isCut && piece.length === 0;
      const at = BigInt(last);
      if (isOneTime) piece = await ofOneTime(query, at, entries, reasons);
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

interface Told {
  readonly entries: readonly LokiEntry[];
  /** There may be more. */
  readonly isCut: boolean;
  /** What is just before has taken the place of some. */
  readonly isCrowded: boolean;
}

/** No more than `size`; `bytes`: of the answer, 32 MiB unless stated. Loki is `asked` from earlier on; what that adds is left out. */
async function tell(
  { tenant, lines, order, signal }: Query,
  between: Between,
  { size, bytes: most }: { readonly size: number; readonly bytes?: number | undefined },
  asked = early(between),
): Promise<Told> {
  for (;;) {
    const { limits } = tenant;
    const limit = Math.min(size, limits.entries);
    try {
      const told = entriesOf(await tenant.client.streams(lines, asked, { order, limit, most }, signal), order);
      const first = textOf(between.from);
      const entries = told.filter(({ time }) => time >= first);
      const hasBefore = entries.length < told.length;
      const isCut = told.length >= limit && !(order === 'desc' && hasBefore);
      return { entries, isCut, isCrowded: isCut && hasBefore };
    } catch (error) {
      if (!(error instanceof LimitExceeded && error.allowed.limit === 'entries' && tenant.learns(error, limits)))
        throw error;
    }
  }
}

/** So many at most, or fewer if they are large. */
async function beginningOf(query: Query, between: Between, size: number): Promise<Told> {
  for (let number = Math.min(size, query.tenant.limits.entries); ; number = Math.max(1, Math.floor(number / 4)))
    try {
      return await tell(query, between, { size: number, bytes: number === 1 ? undefined : mostOfSeveral });
    } catch (error) {
      if (!(error instanceof AnswerTooLarge) || number === 1) throw error;
    }
}

/** All of a nanosecond, of which some are `known`, or as many as one answer may have. */
async function ofOneTime(
  query: Query,
  at: bigint,
  known: readonly LokiEntry[],
  reasons: Reasons,
): Promise<readonly LokiEntry[]> {
  const time = { from: at, to: at + 1n };
  let best = known;
  let asked = early(time);
  for (let size = Math.max(2, 2 * known.length); ; size *= 2) {
    let told: Told;
    try {
      told = await tell(query, time, { size }, asked);
    } catch (error) {
      if (!(error instanceof AnswerTooLarge) || best.length === 0) throw error;
      break;
    }
    best = told.entries;
    if (!told.isCut) return best;
    if (size < query.tenant.limits.entries) continue;
    if (!told.isCrowded) break;
    asked = time;
  }
  reasons.add(`of those of one time no more than ${best.length} records are told`);
  return best;
}

/** The records of a page. `counts`: how many each part has; where they are not known, those before the page are read. */
export async function pageOf(
  tenant: Tenant,
  asked: readonly LokiRequest[],
  counts: readonly number[] | undefined,
  { order, from, size }: LogPage,
  signal: AbortSignal,
): Promise<Omit<Found, 'total'>> {
  const records: LogRecord[] = [];
  const reasons = new Reasons();
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
          return { records, ...reasons.cut };
        }
        records.push(record);
        if (records.length === size) return { records, ...reasons.cut };
      }
    }
  }
  return { records, ...reasons.cut };
}
