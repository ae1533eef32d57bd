import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { WriteBehind } from '../../../src/cluster/write-behind.ts';
import { KubeError, unreachable } from '../../../src/cluster/client/kube-error.ts';
import { logOfLines } from '../../fakes/log.ts';
import { FakeClock, settle } from '../../labs/cluster-fakes.ts';

let clock: FakeClock;
let written: { readonly key: string; readonly value: string; readonly at: number }[];
let fail: (key: string) => Error | undefined;
let slowly: () => Promise<void>;
let lines: () => string[];
let writes: WriteBehind<string>;
beforeEach(() => {
  clock = new FakeClock();
  written = [];
  fail = () => undefined;
  slowly = async () => undefined;
  const logged = logOfLines();
  ({ lines } = logged);
  writes = new WriteBehind<string>({
    what: 'a letter',
    write: async (key, value) => {
      const error = fail(key);
      if (error !== undefined) throw error;
      await slowly();
      written.push({ key, value, at: clock.now() });
    },
    merge: (waiting, later) => waiting + later,
    clock,
    log: logged.log,
  });
});
afterEach(() => writes.stop());

const values = (): string[] => written.map(({ key, value }) => `${key}=${value}`);

test('changes of a key are combined into one write, and each key is written at most once a second', async () => {
  for (let time = 0; time < 50; time += 1) {
    writes.put('a', 'x');
    if (time % 10 === 0) writes.put('b', 'y');
    await clock.advance(100);
  }
  await clock.advance(2_000);
  for (const key of ['a', 'b']) {
    const times = written.filter((one) => one.key === key).map(({ at }) => at);
    for (const [index, at] of times.slice(1).entries()) expect(at - (times[index] ?? 0)).toBeGreaterThanOrEqual(1_000);
  }
  expect(
    written
      .filter(({ key }) => key === 'a')
      .map(({ value }) => value)
      .join(''),
  ).toBe('x'.repeat(50));
});

test('unwritten values of a key can be read, even during their write', async () => {
  writes.put('a', 'x');
  expect(writes.unwritten('a')).toBe('x');
  let during: string | undefined;
  fail = () => {
    writes.put('a', 'y');
    during = writes.unwritten('a');
    return undefined;
  };
  await clock.advance(1_000);
  expect(during).toBe('xy');
  expect(writes.unwritten('a')).toBe('y');
  fail = () => undefined;
  await clock.advance(2_000);
  expect(values()).toEqual(['a=x', 'a=y']);
  expect(writes.unwritten('a')).toBeUndefined();
});

test('a failed write of a key is retried with newer values, and other keys are not delayed', async () => {
  fail = (key) => (key === 'a' ? unreachable(new Error('down')) : undefined);
  writes.put('a', 'x');
  writes.put('b', 'y');
  await clock.advance(1_000);
  writes.put('a', 'z');
  await clock.advance(11_000);
  expect(values()).toEqual(['b=y']);
  fail = () => undefined;
  await clock.advance(11_000);
  expect(values()).toEqual(['b=y', 'a=xz']);
});

test('a write of a key that the cluster rejects permanently is not retried', async () => {
  fail = (key) => (key === 'a' ? new KubeError(422, { message: 'invalid' }) : undefined);
  writes.put('a', 'x');
  writes.put('b', 'y');
  await clock.advance(2_000);
  fail = () => undefined;
  await clock.advance(20_000);
  expect(values()).toEqual(['b=y']);
});

test('the number of keys that wait for a write is limited', async () => {
  fail = () => unreachable(new Error('down'));
  for (let index = 0; index < 5_000; index += 1) writes.put(`key-${index}`, 'x');
  fail = () => undefined;
  await clock.advance(100_000);
  expect(written).toHaveLength(2_000);
});

test('the remaining values of all keys are written at once when the server stops, and no write is retried', async () => {
  writes.put('a', 'x');
  writes.put('b', 'y');
  await writes.stop();
  expect(values()).toEqual(['a=x', 'b=y']);
  fail = () => unreachable(new Error('down'));
  writes.put('c', 'z');
  await writes.stop();
  await clock.advance(60_000);
  await settle();
  expect(written).toHaveLength(2);
});

test('a waiting key accepts more values while no other key can be added', async () => {
  for (let index = 0; index < 2_000; index += 1) writes.put(`key-${index}`, 'x');
  writes.put('key-7', 'y');
  await clock.advance(1_200);
  expect(values()).toContain('key-7=xy');
});

test('no other write starts during a slow write, whatever values are added in the meantime', async () => {
  const { promise: first, resolve: endFirst } = Promise.withResolvers<void>();
  let open = 0;
  let maxOpen = 0;
  slowly = async () => {
    open += 1;
    maxOpen = Math.max(maxOpen, open);
    await first;
    open -= 1;
  };
  writes.put('a', 'x');
  await clock.advance(1_000);
  writes.put('b', 'y');
  await clock.advance(5_000);
  const openMeanwhile = open;
  endFirst();
  await settle();
  await clock.advance(2_000);
  await clock.advance(2_000);
  expect(values()).toEqual(['a=x', 'b=y']);
  expect([openMeanwhile, maxOpen]).toEqual([1, 1]);
});

test('a value added while the write of its key fails is written with the earlier value, after the other keys', async () => {
  fail = (key) => {
    if (key !== 'a') return undefined;
    fail = () => undefined;
    writes.put('a', 'y');
    writes.put('b', 'z');
    return unreachable(new Error('down'));
  };
  writes.put('a', 'x');
  await clock.advance(15_000);
  expect(values()).toEqual(['b=z', 'a=xy']);
});

test('a failed write of a key is logged with the key and the cause', async () => {
  fail = () => unreachable(new Error('connection refused'));
  writes.put('a', 'x');
  await clock.advance(1_000);
  expect(lines().map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { level: 'warn', key: 'a', error: { message: expect.stringContaining('connection refused') as unknown } },
  ]);
});

test('no write of a key is scheduled after the server has stopped', async () => {
  writes.put('a', 'x');
  await writes.stop();
  writes.put('b', 'y');
  expect(clock.pending()).toEqual([]);
});

test('slow writes have three seconds to complete when the server stops', async () => {
  slowly = () => clock.advance(1_000);
  for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) writes.put(key, 'x');
  await writes.stop();
  expect(values()).toEqual(['a=x', 'b=x', 'c=x', 'd=x']);
});
