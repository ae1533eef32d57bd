import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { Reasons, type TimeOrder } from '../../../../../src/logs/stores/log-store.ts';
import type { LokiClient, LokiStream } from '../../../../../src/logs/stores/loki/client.ts';
import { logQLQueryOf } from '../../../../../src/logs/stores/loki/logql.ts';
import { recordsOf } from '../../../../../src/logs/stores/loki/records.ts';
import type { Tenant } from '../../../../../src/logs/stores/loki/tenant.ts';
import { everything } from '../../../../labs/fake-store.ts';

const second = 1_700_000_000;
const labels = { namespace: 'n', pod: 'p', container: 'c' };
const settings = { labels: { namespace: 'namespace', pod: 'pod', container: 'container' } };

/** Nanoseconds after `second`, in order. */
type Times = readonly number[];

/** Responds like Loki 3.7.8, which omits the last entry of a chunk if a query starts at the time of this entry. */
const lokiWith =
  (chunks: readonly Times[], leavesOut: boolean): LokiClient['streams'] =>
  async (_, { from, to }, { order, limit }) => {
    const sign = order === 'asc' ? 1 : -1;
    const found = chunks
      .filter((times) => !leavesOut || at(times.at(-1) ?? 0) !== from)
      .flatMap((times) => times.map((time) => ({ time: at(time), line: `${time}` })))
      .filter(({ time }) => time >= from && time < to)
      .toSorted((a, b) => sign * Number(a.time - b.time))
      .slice(0, limit);
    return [{ labels, values: found.map(({ time, line }) => [String(time), line]) } as unknown as LokiStream];
  };

const at = (nanosecond: number): bigint => BigInt(second) * 1_000_000_000n + BigInt(nanosecond);

async function readAll(
  chunks: readonly Times[],
  leavesOut: boolean,
  order: TimeOrder,
  entries: number,
): Promise<readonly number[]> {
  const tenant = {
    settings,
    limits: { entries, series: 1, length: 1 },
    learnLimit: () => false,
    client: { streams: lokiWith(chunks, leavesOut) },
  } as unknown as Tenant;
  const query = logQLQueryOf(everything, { start: undefined, end: 0, visible: undefined }, settings);
  const reasons = new Reasons();
  const lines: number[] = [];
  const request = { query, spans: [{ from: second, to: second + 1 }], end: undefined };
  for await (const found of recordsOf(tenant, request, { order, reasons }, new AbortController().signal))
    lines.push(...found.map(({ log }) => Number(log)));
  expect(reasons.cut).toEqual({});
  return lines;
}

/** Times that are close to one another, and partly equal, from one nanosecond before the requested start on. */
const chunk = fc
  .uniqueArray(fc.integer({ min: -1, max: 12 }), { minLength: 1, maxLength: 12 })
  .map((times) => times.toSorted((a, b) => a - b));

describe.each<TimeOrder>(['asc', 'desc'])('each record of Loki is returned exactly once in the order %s', (order) => {
  test.each([
    ['the usual limits', true, 7],
    // At most three records have the same time.
    ['a response limit close to the number of records with the same time', false, 4],
  ])('each record of Loki is returned exactly once with %s', async (_, leavesOut, minVersion) => {
    const sign = order === 'asc' ? 1 : -1;
    await fc.assert(
      fc.asyncProperty(
        fc.array(chunk, { maxLength: 3 }),
        fc.integer({ min: minVersion, max: 9 }),
        async (chunks, entries) => {
          const expected = chunks.flat().filter((time) => time >= 0);
          expect(await readAll(chunks, leavesOut, order, entries)).toEqual(expected.toSorted((a, b) => sign * (a - b)));
        },
      ),
      { numRuns: 500 },
    );
  });
});
