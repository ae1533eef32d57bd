/** What histograms are made up of: Loki has steps, which begin at a multiple of themselves, and tells where each ends. */
import { badRequest } from '../../../runtime/errors.ts';
import { demandFewBuckets, lengthOf, mostBuckets } from '../../query/intervals.ts';
import { Reasons, type Interval, type TimeOrder } from '../log-store.ts';
import { mapFewAtOnce } from '../remote/paging.ts';
import { secondsOf } from '../../query/times.ts';
import type { LokiRequest } from './asked.ts';
import { countAt, countIn } from './counts.ts';
import { countByEdge, edge, type LogQLQuery } from './logql.ts';
import { recordsOf } from './records.ts';
import type { TimeSpan } from './spans.ts';
import type { Tenant } from './tenant.ts';

const day = 86_400;

/** How many there are, by the second at which a step begins. */
type Counts = (readonly [second: number, count: number])[];

/** Seconds: all buckets are made up of such steps. Throws 400 where there is none. */
export function stepOf({ limits, client: { name } }: Tenant, interval: Interval): number {
  const { count, unit } = interval;
  if (!['s', 'm', 'h', 'd'].includes(unit)) return day;
  const length = lengthOf(interval) / 1_000;
  if (length % day === 0) return day;
  if (length > limits.length)
    throw badRequest(
      `interval: the log store "${name}" has no buckets of ${count}${unit}: take a number of days, or less than ${Math.floor(limits.length / day)}d`,
    );
  return length;
}

export async function countBySteps(
  tenant: Tenant,
  asked: LokiRequest,
  step: number,
  interval: Interval,
  signal: AbortSignal,
): Promise<Counts> {
  const { question, end } = asked;
  const spans = await tightened(tenant, asked, interval, signal);
  const each = await mapFewAtOnce(spans, async (span) => await countSteps(tenant, question, span, step, signal));
  const counts = each.flat();
  return end === undefined ? counts : [...counts, [end, await countAt(tenant, question, end, signal)]];
}

/** Where the beginning is that of the data, nobody has judged how long it is ago. */
async function tightened(
  tenant: Tenant,
  asked: LokiRequest,
  interval: Interval,
  signal: AbortSignal,
): Promise<readonly TimeSpan[]> {
  const { spans } = asked;
  const [begin, last] = [spans[0]?.from ?? 0, spans.at(-1)?.to ?? 0];
  if (((last - begin) * 1_000) / lengthOf(interval) <= mostBuckets) return spans;
  const [first, final] = await Promise.all([
    firstSecond(tenant, asked, 'asc', signal),
    firstSecond(tenant, asked, 'desc', signal),
  ]);
  if (first === undefined || final === undefined) return [];
  demandFewBuckets(first * 1_000, final * 1_000, interval);
  return spans
    .map(({ from, to }) => ({ from: Math.max(from, first), to: Math.min(to, final + 1) }))
    .filter(({ from, to }) => from < to);
}

/** Of the first record in this order. */
async function firstSecond(
  tenant: Tenant,
  asked: LokiRequest,
  order: TimeOrder,
  signal: AbortSignal,
): Promise<number | undefined> {
  const wanted = { order, reasons: new Reasons(), most: 1 };
  for await (const [record] of recordsOf(tenant, { ...asked, end: undefined }, wanted, signal))
    if (record !== undefined) return secondsOf(record.time);
  return undefined;
}

async function countSteps(
  tenant: Tenant,
  question: LogQLQuery,
  { from, to }: TimeSpan,
  step: number,
  signal: AbortSignal,
): Promise<Counts> {
  const first = Math.ceil(from / step) * step;
  const last = Math.floor(to / step) * step;
  const bucket = (second: number): number => Math.floor(second / step) * step;
  if (first >= last) {
    // No step is whole.
    const cut = Math.min(first, to);
    return [
      [bucket(from), await countIn(tenant, question, { from, to: cut }, signal)],
      [bucket(cut), await countIn(tenant, question, { from: cut, to }, signal)],
    ];
  }
  const query = countByEdge(question, step);
  const [before, atFirst, whole, after] = await Promise.all([
    countIn(tenant, question, { from, to: first }, signal),
    countAt(tenant, question, first, signal),
    tenant.client.matrix(query, { start: first + step, end: last, step }, signal),
    countIn(tenant, question, { from: last, to }, signal),
  ]);
  const counts: Counts = [
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
