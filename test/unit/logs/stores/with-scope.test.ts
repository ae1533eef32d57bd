import { expect, test } from '@jest/globals';
import type { Cut, LogRecord } from '../../../../src/logs/stores/log-store.ts';
import { secondsOf } from '../../../../src/logs/query/times.ts';
import { withScope } from '../../../../src/logs/stores/with-scope.ts';
import { everything, fakeStore, record } from '../../../labs/fake-store.ts';

const never = new AbortController().signal;
const page = { order: 'asc', from: 0, size: 10 } as const;
const since = secondsOf(record('').time);
const records: LogRecord[] = [
  record('of the namespace'),
  { ...record('of another namespace'), namespace: 'b' },
  { ...record('of no namespace'), namespace: '' },
  { ...record('of a namespace of this name before'), time: '2026-02-28T23:59:59.999999999Z' },
  { ...record('a moment later'), time: '2026-03-01T00:00:00.000000001Z' },
];

async function* pieces() {
  yield records;
  return { partial: { reason: 'cut' } };
}

const store = fakeStore({ query: async () => ({ total: 9, records }), export: pieces, follow: pieces });
const selection = { ...everything, namespaces: new Map([['a', since]]) };

async function read(stream: AsyncGenerator<readonly LogRecord[], unknown>): Promise<unknown[]> {
  const found: unknown[] = [];
  let next = await stream.next();
  for (; next.done !== true; next = await stream.next()) found.push(...next.value.map(({ log }) => log));
  return [...found, next.value];
}

test('records outside the selection are dropped and counted in every operation of the log store', async () => {
  const drops: unknown[] = [];
  const scoped = withScope(store, (name, count) => drops.push([name, count]));
  const rest = ['of the namespace', 'a moment later'];
  const found = await scoped.query(selection, page, never);
  expect([found.total, ...found.records.map(({ log }) => log)]).toEqual([6, ...rest]);
  expect(await read(scoped.export(selection, 'asc', never))).toEqual([...rest, { partial: { reason: 'cut' } }]);
  expect(await read(scoped.follow?.(selection, never) as ReturnType<typeof pieces>)).toEqual([
    ...rest,
    { partial: { reason: 'cut' } },
  ]);
  expect(drops).toEqual([
    ['fake', 3],
    ['fake', 3],
    ['fake', 3],
  ]);
});

test('a chunk without a record of the selection is dropped, because an empty chunk would end the response', async () => {
  const outside = [{ ...record('of another namespace'), namespace: 'b' }];
  async function* mixed(): AsyncGenerator<readonly LogRecord[], Cut> {
    yield outside;
    yield records;
    return {};
  }
  const scoped = withScope(fakeStore({ follow: mixed }), () => undefined);
  const first = await scoped.follow?.(selection, never).next();
  expect(first?.value).toHaveLength(2);
});

test('a caller who is allowed to see all namespaces receives every record of the log store', async () => {
  const scoped = withScope(store, () => {
    throw new Error('dropped');
  });
  expect((await scoped.query(everything, page, never)).records).toEqual(records);
});

test('a log store with a scope filter supports `follow` only if the store itself does', () => {
  expect(withScope(fakeStore(), () => undefined)).not.toHaveProperty('follow');
});

test('the stream from a log store with a scope filter is closed when the reader disconnects', async () => {
  let isLeft = false;
  async function* endless(): AsyncGenerator<readonly LogRecord[], Cut> {
    try {
      for (;;) yield records;
    } finally {
      isLeft = true;
    }
  }
  const stream = withScope(fakeStore({ export: endless }), () => undefined).export(selection, 'asc', never);
  await stream.next();
  expect(isLeft).toBe(false);
  await stream.return({});
  expect(isLeft).toBe(true);
});

test('dropped records are reported only if at least one record was dropped', async () => {
  const drops: unknown[] = [];
  const whole = fakeStore({ query: async () => ({ total: 1, records: [record('of the namespace')] }) });
  await withScope(whole, (_, count) => drops.push(count)).query(selection, page, never);
  expect(drops).toEqual([]);
});
