/**
 * Counts for histograms. Loki counts records per step and reports the end of each step. Steps start at multiples of
 * their length.
 */
import { badRequest } from '../../../runtime/errors.ts';
import { assertFewBuckets, lengthOf, maxBuckets } from '../../query/intervals.ts';
import { Reasons, type Interval, type TimeOrder } from '../log-store.ts';
import { mapRequests } from '../remote/paging.ts';
import { secondsOf } from '../../query/times.ts';
import type { LokiRequest } from './requests.ts';
import { countAt, countIn } from './counts.ts';
import { countByEdge, edge, type LogQLQuery } from './logql.ts';
import { recordsOf } from './records.ts';
import type { TimeSpan } from './spans.ts';
import type { Tenant } from './tenant.ts';

const day = 86_400;

/** Number of records by the start of a step, in seconds since the epoch. */
type Counts = (readonly [second: number, count: number])[];

/** Returns the length in seconds of a step that divides all buckets evenly. Throws 400 if no such step exists. */
export function stepOf({ limits, client: { name } }: Tenant, interval: Interval): number {
  const { count, unit } = interval;
  if (!['s', 'm', 'h', 'd'].includes(unit)) return day;
  const length = lengthOf(interval) / 1_000;
  if (length % day === 0) return day;
  if (length > limits.length)
    throw badRequest(
      `interval: the log store "${name}" does not support ${count}${unit}: use a whole number of days, or less than ${Math.floor(limits.length / day)}d`,
    );
  return length;
}

export async function countBySteps(
  tenant: Tenant,
  request: LokiRequest,
  step: number,
  interval: Interval,
  signal: AbortSignal,
): Promise<Counts> {
  const { query, end } = request;
  const spans = await narrowedSpans(tenant, request, interval, signal);
  const each = await mapRequests(spans, async (span) => await countSteps(tenant, query, span, step, signal));
  const counts = each.flat();
  return end === undefined ? counts : [...counts, [end, await countAt(tenant, query, end, signal)]];
}

/**
 * Narrows the spans to the existing records if the spans have too many buckets. Throws 400 if the narrowed spans still
 * have too many buckets.
 */
async function narrowedSpans(
  tenant: Tenant,
  request: LokiRequest,
  interval: Interval,
  signal: AbortSignal,
): Promise<readonly TimeSpan[]> {
  const { spans } = request;
  const [start, last] = [spans[0]?.from ?? 0, spans.at(-1)?.to ?? 0];
  if (((last - start) * 1_000) / lengthOf(interval) <= maxBuckets) return spans;
  const [first, final] = await Promise.all([
    firstSecond(tenant, request, 'asc', signal),
    firstSecond(tenant, request, 'desc', signal),
  ]);
  if (first === undefined || final === undefined) return [];
  assertFewBuckets(first * 1_000, final * 1_000, interval);
  return spans
    .map(({ from, to }) => ({ from: Math.max(from, first), to: Math.min(to, final + 1) }))
    .filter(({ from, to }) => from < to);
}

/** Returns the second of the first record in this order. */
async function firstSecond(
  tenant: Tenant,
  request: LokiRequest,
  order: TimeOrder,
  signal: AbortSignal,
): Promise<number | undefined> {
  const options = { order, reasons: new Reasons(), max: 1 };
  for await (const [record] of recordsOf(tenant, { ...request, end: undefined }, options, signal))
    if (record !== undefined) return secondsOf(record.time);
  return undefined;
}

async function countSteps(
  tenant: Tenant,
  query: LogQLQuery,
  { from, to }: TimeSpan,
  step: number,
  signal: AbortSignal,
): Promise<Counts> {
  const first = Math.ceil(from / step) * step;
  const last = Math.floor(to / step) * step;
  const bucket = (second: number): number => Math.floor(second / step) * step;
  if (first >= last) {
    // The span contains no complete step.
    const cut = Math.min(first, to);
    return [
      [bucket(from), await countIn(tenant, query, { from, to: cut }, signal)],
      [bucket(cut), await countIn(tenant, query, { from: cut, to }, signal)],
    ];
  }
  const stepQuery = countByEdge(query, step);
  const [before, atFirst, steps, after] = await Promise.all([
    countIn(tenant, query, { from, to: first }, signal),
    countAt(tenant, query, first, signal),
    tenant.client.matrix(stepQuery, { start: first + step, end: last, step }, signal),
    countIn(tenant, query, { from: last, to }, signal),
  ]);
  const counts: Counts = [
    [bucket(from), before],
    [first, atFirst],
    [last, after],
  ];
  for (const { labels, values } of steps)
    for (const [second, count] of values)
      // In Loki, a range includes its end, although records at the end belong to the next step. Records at the end of a
      // step are therefore counted separately.
      if (labels[edge] !== 'true') counts.push([second - step, count]);
      else if (second < last) counts.push([second, count]);
  return counts;
}
