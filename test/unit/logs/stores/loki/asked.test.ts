import { expect, test } from '@jest/globals';
import { Questions } from '../../../../../src/logs/stores/loki/asked.ts';
import type { LokiClient } from '../../../../../src/logs/stores/loki/client.ts';
import type { Tenant } from '../../../../../src/logs/stores/loki/tenant.ts';
import { everything } from '../../../../labs/fake-store.ts';

const day = 86_400;
const nanoseconds = 1_000_000_000n;
const millisecond = 1_000_000n;
/** split_queries_by_interval, as it is by default. */
const interval = BigInt(day) * nanoseconds;
const today = Date.UTC(2026, 10, 23) / 1_000;

/**
 * As Loki 3.7.8 answers from its index: a question of several days is asked day by day, each but the last without its last millisecond, and a
 * part that would end before it begins is refused. A record at the very beginning of what is asked for is not always found.
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
  ['the beginning of a day on', 0],
  ['the middle of one on', day / 2],
  ['a second after its beginning on', 1],
])('of a long time, those months are asked for that have something, from %s', async (_, offset) => {
  const start = today - 100 * day + offset;
  const length = 30 * day;
  const record = start + length;
  const tenant = {
    settings: { labels: { namespace: 'namespace', pod: 'pod', container: 'container' } },
    limits: { entries: 5_000, series: 500, length },
    client: { hasAny: lokiWith(record) },
  } as unknown as Tenant;
  const questions = new Questions(tenant, () => today);
  const selection = { ...everything, start: start * 1_000, end: today };
  const parts = [{ start: start * 1_000, end: today * 1_000, visible: undefined }];
  const [asked] = await questions.of(selection, parts, new AbortController().signal);
  const [only, ...more] = asked?.spans ?? [];
  expect(more).toEqual([]);
  expect(only?.from).toBeLessThanOrEqual(record);
  expect(only?.to).toBeGreaterThan(record);
});
