/**
 * Counts of records. Ranges in Loki exclude their start and have a resolution of a millisecond. Ranges here include
 * their start, to the nanosecond, so the first nanosecond of some seconds is counted separately.
 */
import type { Statistics } from '../log-store.ts';
import { mapRequests, sum } from '../remote/paging.ts';
import type { LokiRequest } from './requests.ts';
import { atSecond, countByContainer, countOf, selectorOf, shareOf, type LogQLQuery } from './logql.ts';
import { containerOf, sharesOfContainers } from './shares.ts';
import { startOf, exactly, lastBefore, type TimeSpan } from './spans.ts';
import type { Tenant } from './tenant.ts';

export async function countAll(
  tenant: Tenant,
  { query, spans, end }: LokiRequest,
  signal: AbortSignal,
): Promise<number> {
  const each = await mapRequests(spans, async (span) => await countIn(tenant, query, span, signal));
  return sum(each) + (end === undefined ? 0 : await countAt(tenant, query, end, signal));
}

export async function countIn(
  { client }: Tenant,
  query: LogQLQuery,
  { from, to }: TimeSpan,
  signal: AbortSignal,
): Promise<number> {
  if (from >= to) return 0;
  const found = await client.vector(countOf(query, `${to - from}s`), lastBefore(to), signal);
  return sum(found.map(({ value }) => value));
}

/** Counts the records in the first nanosecond of a second. */
export async function countAt(
  { client }: Tenant,
  query: LogQLQuery,
  second: number,
  signal: AbortSignal,
): Promise<number> {
  const found = await client.vector(countOf(atSecond(query, second), '1ms'), startOf(second), signal);
  return sum(found.map(({ value }) => value));
}

/**
 * Counts records and containers. Containers are queried in groups, because a result has one series per container, and
 * the number of series is limited.
 */
export async function countContainers(
  { client, settings: { labels }, limits }: Tenant,
  { query, spans, end }: LokiRequest,
  signal: AbortSignal,
): Promise<Statistics> {
  // Leaves room for containers that start in the meantime.
  const max = Math.ceil(limits.series * 0.9);
  const seen = new Set<string>();
  let logs = 0;
  const take = async (one: LogQLQuery, range: string, time: bigint): Promise<void> => {
    for (const { labels: found, value } of await client.vector(countByContainer(one, range, labels), time, signal)) {
      seen.add(containerOf(found, labels));
      logs += value;
    }
  };
  for (const span of spans) {
    const known = await client.series(selectorOf(query), exactly(span), signal);
    await mapRequests(
      sharesOfContainers(known, labels, max),
      async (share) => await take(shareOf(query, share, labels), `${span.to - span.from}s`, lastBefore(span.to)),
    );
  }
  if (end !== undefined) {
    // Loki finds no streams in a range shorter than a millisecond.
    const known = await client.series(selectorOf(query), exactly({ from: end, to: end + 1 }), signal);
    await mapRequests(
      sharesOfContainers(known, labels, max),
      async (share) => await take(atSecond(shareOf(query, share, labels), end), '1ms', startOf(end)),
    );
  }
  return { containers: seen.size, logs };
}
