import { expect, test } from '@jest/globals';
import { limited } from '../../../src/logs/with-limit.ts';
import { everything, fakeStore } from './fake-store.ts';

const never = new AbortController().signal;

function lab() {
  const begun: (() => void)[] = [];
  const store = limited({ most: 2, waiting: 2, streams: 1 })(
    fakeStore({
      statistics: () => new Promise((resolve) => begun.push(() => resolve({ containers: 1, logs: begun.length }))),
      async *export(_selection, _order, signal) {
        yield [];
        signal.throwIfAborted();
        return {};
      },
    }),
  );
  return { begun, ask: (signal = never) => store.statistics(everything, signal), store };
}

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
};

test('so many are asked at once, some wait, and the others are told so', async () => {
  const { begun, ask } = lab();
  const asked = [ask(), ask(), ask(), ask()];
  await turns();
  expect(begun.length).toBe(2);
  await expect(ask()).rejects.toMatchObject({ code: 429, headers: { 'Retry-After': '1' } });
  begun[0]?.();
  await asked[0];
  await turns();
  expect(begun.length).toBe(3);
  begun[1]?.();
  begun[2]?.();
  await Promise.all(asked.slice(1, 3));
  await turns();
  begun[3]?.();
  await asked[3];
  const again = ask();
  await turns();
  begun[4]?.();
  await again;
});

test('who goes while waiting takes no place', async () => {
  const { begun, ask } = lab();
  const caller = new AbortController();
  const asked = [ask(), ask()];
  const waiting = [ask(caller.signal), ask()];
  await turns();
  const reason = new Error('gone');
  caller.abort(reason);
  await expect(waiting[0]).rejects.toBe(reason);
  await expect(ask(caller.signal)).rejects.toBe(reason);
  begun[0]?.();
  begun[1]?.();
  await Promise.all(asked);
  await turns();
  expect(begun.length).toBe(3);
  begun[2]?.();
  await waiting[1];
});

test('an export has a place of its own until it ends', async () => {
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

test('whether it can be asked is asked however busy it is', async () => {
  const { ask, store, begun } = lab();
  const asked = [ask(), ask(), ask(), ask()];
  await expect(store.check(never)).resolves.toBeUndefined();
  for (let index = 0; index < 4; index += 1) {
    await turns();
    begun[index]?.();
  }
  await Promise.all(asked);
});
