import { expect, test } from '@jest/globals';
import { limited } from '../../../../src/logs/stores/with-limit.ts';
import type { LogStore, Statistics } from '../../../../src/logs/stores/log-store.ts';
import { everything, fakeStore } from '../../../labs/fake-store.ts';

const never = new AbortController().signal;

function lab() {
  const started: (() => void)[] = [];
  const limit = limited({ queries: 2, queriesPerUser: 1, waiting: 3, waitingPerUser: 2, streams: 1 });
  const inner = fakeStore({
    statistics: () => new Promise((resolve) => started.push(() => resolve({ containers: 1, logs: started.length }))),
    async *export(_selection, _order, signal) {
      yield [];
      signal.throwIfAborted();
      return {};
    },
  });
  const storeOf = (user: string): LogStore => limit(inner, user);
  const query = (user = 'a', signal = never): Promise<Statistics> => storeOf(user).statistics(everything, signal);
  return { started, query, store: storeOf('a'), storeOf };
}

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
};

test('log queries that exceed the share of their user wait, and do not delay other users', async () => {
  const { started, query } = lab();
  const pending = [query('a'), query('a'), query('a'), query('b')];
  await turns();
  expect(started.length).toBe(2);
  await expect(query('a')).rejects.toMatchObject({ code: 429, headers: { 'Retry-After': '1' } });
  started[1]?.();
  await pending[3];
  expect(started.length).toBe(2);
  started[0]?.();
  await pending[0];
  await turns();
  expect(started.length).toBe(3);
  started[2]?.();
  await pending[1];
  await turns();
  started[3]?.();
  await pending[2];
});

test('a log query that is aborted while it waits takes no slot', async () => {
  const { started, query } = lab();
  const caller = new AbortController();
  const pending = [query()];
  const waiting = [query('a', caller.signal), query()];
  await turns();
  const reason = new Error('gone');
  caller.abort(reason);
  await expect(waiting[0]).rejects.toBe(reason);
  started[0]?.();
  await Promise.all(pending);
  await turns();
  expect(started.length).toBe(2);
  started[1]?.();
  await waiting[1];
});

test('a log export keeps its slot until the export ends', async () => {
  const { store } = lab();
  const first = store.export(everything, 'asc', never);
  await first.next();
  await expect(store.export(everything, 'asc', never).next()).rejects.toMatchObject({ code: 429 });
  await first.return({});
  const second = store.export(everything, 'asc', never);
  expect(await second.next()).toEqual({ done: false, value: [] });
  expect(await second.next()).toEqual({ done: true, value: {} });
  expect((await store.export(everything, 'asc', never).next()).done).toBe(false);
});

test('health checks of the log store require no slot', async () => {
  const { query, store, started } = lab();
  const pending = [query(), query(), query()];
  await expect(store.check(never)).resolves.toBeUndefined();
  for (let index = 0; index < 3; index += 1) {
    await turns();
    started[index]?.();
  }
  await Promise.all(pending);
});
