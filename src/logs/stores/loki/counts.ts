/**
 * What Loki counts, it counts in ranges whose beginning is not in them, and of which nothing shorter than a millisecond can be asked; here a
 * beginning is, to the nanosecond, so some seconds are looked at apart.
 */
import type { Statistics } from '../log-store.ts';
import { mapFewAtOnce, sum } from '../remote/paging.ts';
import type { LokiRequest } from './asked.ts';
import { atSecond, countByContainer, countOf, selectorOf, shareOf, type LogQLQuery } from './logql.ts';
import { containerOf, sharesOfContainers } from './shares.ts';
import { beginningOf, exactly, lastBefore, type TimeSpan } from './spans.ts';
import type { Tenant } from './tenant.ts';

export async function countAll(
  tenant: Tenant,
  { question, spans, end }: LokiRequest,
  signal: AbortSignal,
): Promise<number> {
  const each = await mapFewAtOnce(spans, async (span) => await countIn(tenant, question, span, signal));
  return sum(each) + (end === undefined ? 0 : await countAt(tenant, question, end, signal));
}

export async function countIn(
  { client }: Tenant,
  question: LogQLQuery,
  { from, to }: TimeSpan,
  signal: AbortSignal,
): Promise<number> {
  if (from >= to) return 0;
  const found = await client.vector(countOf(question, `${to - from}s`), lastBefore(to), signal);
  return sum(found.map(({ value }) => value));
}

/** What is exactly at the beginning of a second. */
export async function countAt(
  { client }: Tenant,
  question: LogQLQuery,
  second: number,
  signal: AbortSignal,
): Promise<number> {
  const found = await client.vector(countOf(atSecond(question, second), '1ms'), beginningOf(second), signal);
  return sum(found.map(({ value }) => value));
}

/** Its answers have a line for each container, and no more than so many: the containers there may be are asked for in shares. */
export async function countContainers(
  { client, settings: { labels }, limits }: Tenant,
  { question, spans, end }: LokiRequest,
  signal: AbortSignal,
): Promise<Statistics> {
  // New ones may come in between.
  const most = Math.ceil(limits.series * 0.9);
  const seen = new Set<string>();
  let logs = 0;
  const take = async (one: LogQLQuery, range: string, time: bigint): Promise<void> => {
    for (const { labels: found, value } of await client.vector(countByContainer(one, range, labels), time, signal)) {
      seen.add(containerOf(found, labels));
      logs += value;
    }
  };
  for (const span of spans) {
    const known = await client.series(selectorOf(question), exactly(span), signal);
    await mapFewAtOnce(
      sharesOfContainers(known, labels, most),
      async (share) => await take(shareOf(question, share, labels), `${span.to - span.from}s`, lastBefore(span.to)),
    );
  }
  if (end !== undefined) {
    // Of what is shorter than a millisecond it has nothing to tell.
    const known = await client.series(selectorOf(question), exactly({ from: end, to: end + 1 }), signal);
    await mapFewAtOnce(
      sharesOfContainers(known, labels, most),
      async (share) => await take(atSecond(shareOf(question, share, labels), end), '1ms', beginningOf(end)),
    );
  }
  return { containers: seen.size, logs };
}
