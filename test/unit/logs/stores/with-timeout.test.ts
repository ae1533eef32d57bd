import { expect, test } from '@jest/globals';
import type { LogStore } from '../../../../src/logs/stores/log-store.ts';
import { withTimeout } from '../../../../src/logs/stores/with-timeout.ts';
import { everything, fakeStore, record } from '../../../labs/fake-store.ts';

const never = new AbortController().signal;
const until = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
  );

test('a request to a slow log store is aborted, and the caller gets 504', async () => {
  const store = withTimeout(fakeStore({ statistics: (_selection, signal) => until(signal) }), { statistics: 10 });
  await expect(store.statistics(everything, never)).rejects.toMatchObject({ code: 504, reason: 'Timeout' });
});

test('an aborted log query is not reported as a timeout of the log store', async () => {
  const store = withTimeout(fakeStore({ statistics: (_selection, signal) => until(signal) }), { statistics: 60_000 });
  const caller = new AbortController();
  const reason = new Error('gone');
  const pending = store.statistics(everything, caller.signal);
  caller.abort(reason);
  await expect(pending).rejects.toBe(reason);
});

const slowAfterOne: LogStore['export'] = async function* slow(_selection, _order, signal) {
  yield [record('one')];
  await until(signal);
  return {};
};

test('each chunk of a log export has its own timeout, which does not run while the reader pauses', async () => {
  const store = withTimeout(fakeStore({ export: slowAfterOne }), { export: 20 });
  const pieces = store.export(everything, 'asc', never);
  expect((await pieces.next()).value).toEqual([record('one')]);
  await new Promise((resolve) => setTimeout(resolve, 60));
  await expect(pieces.next()).rejects.toMatchObject({ code: 504 });
});

test('the export of a log store with a timeout is closed when the reader disconnects', async () => {
  let isEnded = false;
  const store = withTimeout(
    fakeStore({
      async *export() {
        try {
          for (;;) yield [record('again')];
        } finally {
          isEnded = true;
        }
      },
    }),
  );
  for await (const piece of store.export(everything, 'asc', never)) if (piece.length > 0) break;
  expect(isEnded).toBe(true);
});

test('a log tail is not aborted when it receives no data for a long time', async () => {
  const store = withTimeout(fakeStore({ follow: (selection, signal) => slowAfterOne(selection, 'asc', signal) }));
  const caller = new AbortController();
  const pieces = store.follow?.(everything, caller.signal);
  expect((await pieces?.next())?.value).toEqual([record('one')]);
  const next = pieces?.next();
  const reason = new Error('gone');
  caller.abort(reason);
  await expect(next).rejects.toBe(reason);
  expect(Object.keys(withTimeout(fakeStore()))).not.toContain('follow');
});
