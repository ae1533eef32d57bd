import { expect, test } from '@jest/globals';
import { RequestPlanner } from '../../../../../src/logs/stores/loki/requests.ts';
import type { LokiClient } from '../../../../../src/logs/stores/loki/client.ts';
import type { Tenant } from '../../../../../src/logs/stores/loki/tenant.ts';
import { everything } from '../../../../labs/fake-store.ts';

const day = 86_400;
const nanoseconds = 1_000_000_000n;
const millisecond = 1_000_000n;
/** The default of split_queries_by_interval. */
const interval = BigInt(day) * nanoseconds;
const today = Date.UTC(2026, 10, 23) / 1_000;

/**
 * Responds like the index of Loki 3.7.8. Loki splits a query of several days by day, and each part except the last
 * lacks its final millisecond. Loki rejects a part that would end before its start, and does not always find a record
 * at the exact start of the time range.
 */
const lokiWith =
  (time: number): LokiClient['hasAny'] =>
  async (_label, _selector, { from, to }) => {
    const firstEnd = from - (from % interval) + interval;
    if (firstEnd < to && firstEnd - millisecond < from) throw new Error('this data is no longer available');
    const at = BigInt(time) * nanoseconds;
    return from < at && at < to;
  };

test.each([
  ['at the start of a day', 0],
  ['in the middle of a day', day / 2],
  ['a second after the start of a day', 1],
])('a long time range that starts %s is narrowed to the months with records', async (_, offset) => {
  const start = today - 100 * day + offset;
  const length = 30 * day;
  const record = start + length;
  const tenant = {
    settings: { labels: { namespace: 'namespace', pod: 'pod', container: 'container' } },
    limits: { entries: 5_000, series: 500, length },
    client: { hasAny: lokiWith(record) },
  } as unknown as Tenant;
  const planner = new RequestPlanner(tenant, () => today);
  const selection = { ...everything, start: start * 1_000, end: today };
  const parts = [{ start: start * 1_000, end: today * 1_000, visible: undefined }];
  const [request] = await planner.plan(selection, parts, new AbortController().signal);
  const [only, ...more] = request?.spans ?? [];
  expect(more).toEqual([]);
  expect(only?.from).toBeLessThanOrEqual(record);
  expect(only?.to).toBeGreaterThan(record);
});
