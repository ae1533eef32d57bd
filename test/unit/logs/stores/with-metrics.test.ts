import { expect, test } from '@jest/globals';
import { badGateway } from '../../../../src/runtime/errors.ts';
import { withMetrics } from '../../../../src/logs/stores/with-metrics.ts';
import { everything, fakeStore } from '../../../labs/fake-store.ts';

const never = new AbortController().signal;

test('each log query is counted once in the metrics, with its outcome', async () => {
  const observed: string[] = [];
  const caller = new AbortController();
  const store = withMetrics(
    fakeStore({
      statistics: () => Promise.reject(badGateway('nonsense')),
      histogram: () => Promise.reject(new Error('a bug')),
      query: () => {
        caller.abort();
        return Promise.reject(new Error('gone'));
      },
    }),
    (operation, result, seconds) => {
      expect(seconds).toBeGreaterThanOrEqual(0);
      observed.push(`${operation} ${result}`);
    },
  );
  const page = { order: 'asc', from: 0, size: 1 } as const;
  await store.statistics(everything, never).catch(() => undefined);
  await store.histogram(everything, { count: 1, unit: 's' }, never).catch(() => undefined);
  await store.query(everything, page, caller.signal).catch(() => undefined);
  await store.check(never);
  for await (const piece of store.export(everything, 'asc', never)) expect(piece.length).toBe(1);
  for await (const piece of store.export(everything, 'asc', never)) if (piece.length > 0) break;
  expect(observed).toEqual(['statistics 502', 'histogram 500', 'query ended', 'check ok', 'export ok', 'export ok']);
});
