/** Tests the limits of the store `pods` with logs in the format of the kubelet. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import {
  Reasons,
  type Cut,
  type LogRecord,
  type LogStore,
  type TimeOrder,
  type Selection,
} from '../../../../../src/logs/stores/log-store.ts';
import { FirstEntries, compareIn, type PodLogEntry } from '../../../../../src/logs/stores/pods/entry.ts';
import { Sizes } from '../../../../../src/logs/stores/pods/export.ts';
import { sourcesOf, textWanted, type LogPod } from '../../../../../src/logs/stores/pods/source.ts';
import { podsLimits, podsStore, type PodsLimits } from '../../../../../src/logs/stores/pods/store.ts';
import { timeText } from '../../../../../src/logs/query/times.ts';
import { MemoryCluster } from '../../../../fakes/cluster.ts';

const begin = 1_700_000_000;
const selection: Selection = {
  start: begin,
  end: begin + 1_000,
  namespaces: new Map([['n', 0]]),
  workloads: [],
  pods: [],
  containers: [],
  keywords: { namespace: [], workload: [], pod: [], container: [], log: [] },
};
const never = new AbortController().signal;

let cluster: MemoryCluster;
let pods: LogPod[];
beforeEach(() => {
  cluster = new MemoryCluster();
  pods = [];
});

function put(name: string, logs: readonly (readonly [second: number, log: string])[]): void {
  const container = { name: 'c', restarts: 0, hasPrevious: false, isOver: false };
  pods.push({ namespace: 'n', name, createdAt: begin, containers: () => [container] });
  const lines = logs.map(([second, log]) => ({
    time: new Date((begin + second) * 1_000).toISOString().replace('Z', '000000Z'),
    log,
  }));
  cluster.podLogs.put(`n/${name}/c`, ...lines);
}

const storesWith = (limits: Partial<PodsLimits> = {}): ((user: string) => LogStore) => {
  const storeOf = podsStore({
    list: async (wanted) => pods.filter(({ namespace, name }) => wanted(namespace, name)),
    limits: { ...podsLimits, bytes: 2 ** 20, ...limits },
  });
  return (user) => storeOf(cluster.client(), user);
};
const storeWith = (limits?: Partial<PodsLimits>): LogStore => storesWith(limits)('a');

const page = (order: TimeOrder, from: number, size: number) => ({ order, from, size });

async function exported(store: LogStore, order: TimeOrder, query = selection) {
  const pieces = store.export(query, order, never);
  const records: LogRecord[] = [];
  for (;;) {
    const { done, value } = await pieces.next();
    if (done === true) return { records, partial: value.partial };
    records.push(...value);
  }
}

const recordsOf = (next: IteratorResult<readonly LogRecord[], Cut> | undefined): readonly LogRecord[] =>
  next === undefined || next.done === true ? [] : next.value;

const many = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, i) => [(i % 500) / 10, `${prefix}${i} ${'x'.repeat(100)}`] as const).toSorted(
    ([a], [b]) => a - b,
  );

test('a log query of too many containers reads the first containers by age, namespace and name', async () => {
  const container = { name: 'c', restarts: 0, hasPrevious: false, isOver: false };
  const pod = (namespace: string, name: string, createdAt = begin): LogPod => ({
    namespace,
    name,
    createdAt,
    containers: () => [container],
  });
  const all = [pod('b', 'a'), pod('a', 'z'), pod('c', 'b'), pod('a', 'y'), pod('z', 'z', begin + 1), pod('b', 'c')];
  for (const list of [all, all.toReversed()]) {
    const everywhere = { ...selection, namespaces: undefined };
    const sources = await sourcesOf(async () => list, everywhere, 4, new Reasons(), never);
    expect(sources.map((source) => `${source.namespace}/${source.pod}`)).toEqual(['z/z', 'a/y', 'a/z', 'b/a']);
  }
});

test.each([
  ['ΟΔΟΣ', 'ΟΔΟΣΑΓ'],
  ['οδος', 'η ΟΔΟΣ'],
  ['σ', 'οδος'],
])('the log keyword %j is found in %j regardless of case', (keyword, text) => {
  const wanted = textWanted({ ...selection, keywords: { ...selection.keywords, log: [keyword] } });
  expect(wanted?.(text)).toBe(true);
});

describe('a log export from pods', () => {
  test.each<TimeOrder>(['asc', 'desc'])(
    'a log export from pods contains all records in the order %s, even with a low memory limit',
    async (order) => {
      put('a', many(300, 'a'));
      put('b', many(300, 'b'));
      const whole = await exported(storeWith(), order);
      expect(whole.records).toHaveLength(600);
      expect(whole.partial).toBeUndefined();
      const times = whole.records.map(({ time }) => time);
      expect(times).toEqual(order === 'asc' ? times.toSorted() : times.toSorted().toReversed());
      expect(await exported(storeWith({ exportBytes: 8_000 }), order)).toEqual(whole);
    },
  );

  test('a log export from pods reports an omission if the records of a single second exceed the memory limit', async () => {
    put(
      'a',
      Array.from({ length: 100 }, () => [1, 'x'.repeat(100)] as const),
    );
    const { records, partial } = await exported(storeWith({ exportBytes: 3_000 }), 'asc');
    expect(records.length).toBeLessThan(100);
    expect(partial?.reason).toBe('only 6000 bytes of the records around second 1700000001 were read');
  });

  test('a log export from pods stops reading when its reader disconnects', async () => {
    put('a', many(5_000, 'a'));
    for await (const records of storeWith({ exportBytes: 50_000 }).export(selection, 'asc', never))
      if (records.length > 0) break;
    while (cluster.podLogs.open > 0) await sleep(1);
    expect(cluster.podLogs.open).toBe(0);
  });
});

describe('a log query of pods', () => {
  test('a log query of pods reads a limited number of logs concurrently', async () => {
    for (let i = 0; i < 30; i += 1) put(`p${i}`, [[i, 'x']]);
    expect((await storeWith({ atOnce: 4 }).query(selection, page('asc', 0, 100), never)).records).toHaveLength(30);
    expect(cluster.podLogs.maxOpen).toBeLessThanOrEqual(4);
  });

  test('a log query of all pods reads a limited number of containers, and reports the omission', async () => {
    for (let i = 0; i < 12; i += 1) put(`p${i}`, [[i, 'x']]);
    const wide = await storeWith({ wide: 5 }).query(
      { ...selection, namespaces: undefined },
      page('asc', 0, 100),
      never,
    );
    expect([wide.total, wide.partial?.reason]).toEqual([
      5,
      'only the newest 5 containers were read: filter by namespace, pod or workload',
    ]);
    const narrow = await storeWith({ wide: 5, narrow: 10 }).query(selection, page('asc', 0, 100), never);
    expect([narrow.total, narrow.partial?.reason]).toEqual([
      10,
      'only the newest 10 containers were read: select fewer pods',
    ]);
  });

  test('a log query of a pod with a long log reads the newest lines, and reports the omission', async () => {
    put('a', many(300, 'a'));
    const found = await storeWith({ lines: 100 }).query(selection, page('asc', 0, 1), never);
    expect([found.total, found.partial?.reason]).toEqual([100, 'only the newest 100 lines of n/a/c were read']);
    expect((await storeWith({ lines: 300 }).query(selection, page('asc', 0, 1), never)).total).toBe(300);
  });

  test('a log query of a pod with a large log reads a limited number of bytes in whole lines, and reports the omission', async () => {
    put('a', many(300, 'a'));
    const found = await storeWith({ bytes: 5_000 }).query(selection, page('asc', 0, 100), never);
    expect(found.total).toBeLessThan(40);
    expect(found.records.every(({ log }) => /^a\d+ x{100}$/.test(log))).toBe(true);
    expect(found.partial?.reason).toMatch(/^only the oldest 5000 bytes of n\/a\/c were read/);
  });

  test('a log query of pods uses a limited amount of memory, and reports the omission', async () => {
    put('a', many(300, 'a'));
    const found = await storeWith({ queryBytes: 10_000 }).query(selection, page('desc', 0, 300), never);
    expect(found.total).toBe(300);
    expect(found.records.length).toBeGreaterThan(10);
    expect(found.records.length).toBeLessThan(60);
    expect(found.partial?.reason).toMatch(/exceed 10000 bytes/);
    expect(found.records[0]?.time).toBe(timeText(begin + 29).replace('.0', '.9'));
  });

  test('a log query of pods stops waiting for nodes that do not respond in time', async () => {
    put('a', [[1, 'x']]);
    put('b', [[2, 'y']]);
    const log = cluster.podLogs.logs.get('n/b/c');
    if (log !== undefined) log.hangs = true;
    const found = await storeWith({ budget: 50 }).query(selection, page('asc', 0, 10), never);
    expect([found.total, found.partial?.reason]).toEqual([
      1,
      '1 logs were not read completely within 0.05 s: name fewer pods',
    ]);
  });

  test('an aborted log query of pods ends at once', async () => {
    put('a', [[1, 'x']]);
    const log = cluster.podLogs.logs.get('n/a/c');
    if (log !== undefined) log.hangs = true;
    const caller = new AbortController();
    const found = storeWith().query(selection, page('asc', 0, 10), caller.signal);
    caller.abort(new Error('gone'));
    await expect(found).rejects.toThrow('gone');
  });

  test('a log query of pods returns records of up to one megabyte and truncates lines longer than two megabytes', async () => {
    put('a', [
      [1, 'y'.repeat(2 ** 20)],
      [2, 'z'.repeat(3 * 2 ** 20)],
    ]);
    const { records } = await storeWith({ bytes: 2 ** 24 }).query(selection, page('asc', 0, 10), never);
    expect(records.map(({ log }) => log.length)).toEqual([2 ** 20, 2 ** 21 - timeText(0).length - 1]);
  });

  test('a log query of pods reports a log whose file is missing on the node', async () => {
    put('a', [[1, 'x']]);
    put('b', []);
    cluster.podLogs.put('n/b/c', { time: 'unable', log: 'to retrieve container logs for containerd://abc' });
    const found = await storeWith().query(selection, page('asc', 0, 10), never);
    expect([found.total, found.partial?.reason]).toEqual([1, 'the logs of n/b/c are not available from the nodes']);
  });

  test('a log query of pods omits containers that have no log, and reports containers whose log the caller is not allowed to read', async () => {
    put('a', [[1, 'x']]);
    for (const [name, code, reason] of [
      ['waits', 400, 'BadRequest'],
      // The kubelet returns 204 for a pod without a node.
      ['pending', 204, ''],
      ['gone', 404, 'NotFound'],
      ['secret', 403, 'Forbidden'],
    ] as const) {
      put(name, []);
      const log = cluster.podLogs.logs.get(`n/${name}/c`);
      if (log !== undefined) log.refusal = { code, reason };
    }
    const found = await storeWith().query(selection, page('asc', 0, 10), never);
    expect([found.total, found.partial?.reason]).toEqual([1, 'you are not allowed to read the logs of n/secret/c']);
  });

  test('a log query of pods returns times in UTC for a kubelet in another time zone', async () => {
    put('a', []);
    cluster.podLogs.put('n/a/c', { time: '2023-11-15T03:43:25.5+05:30', log: 'east' });
    const { records } = await storeWith().query(selection, page('asc', 0, 10), never);
    expect(records).toEqual([expect.objectContaining({ time: '2023-11-14T22:13:25.500000000Z', log: 'east' })]);
  });
});

/** Starts a tail and takes its first record. */
async function followed(signal = never) {
  put('a', []);
  const following = storeWith({ lookInterval: 5 }).follow?.(selection, signal);
  const first = following?.next();
  while (cluster.podLogs.open === 0) await sleep(1);
  cluster.podLogs.write('n/a/c', { time: timeText(begin + 5), log: 'one' });
  expect(recordsOf(await first)).toMatchObject([{ log: 'one' }]);
  return following;
}

describe('following pod logs', () => {
  test('following pod logs is rejected for too many containers', async () => {
    for (let i = 0; i < 4; i += 1) put(`p${i}`, []);
    const following = storeWith({ followed: 3 }).follow?.(selection, never);
    await expect(following?.next()).rejects.toThrow('at most 3 containers can be followed at once');
  });

  test("following pod logs gets 429 when the user's followed containers reach the limit, and other users can still follow", async () => {
    put('a', []);
    const storeOf = storesWith({ followedPerUser: 2, allFollowed: 3, lookInterval: 5 });
    const follow = (user: string) => storeOf(user).follow?.(selection, never);
    const first = follow('a');
    const second = follow('a');
    const waiting = [first?.next(), second?.next()];
    while (cluster.podLogs.open < 2) await sleep(1);
    await expect(follow('a')?.next()).rejects.toMatchObject({
      code: 429,
      message: 'followed containers: your share of 2 is in use; please try again later',
    });
    const other = follow('b');
    waiting.push(other?.next());
    while (cluster.podLogs.open < 3) await sleep(1);
    await expect(follow('c')?.next()).rejects.toMatchObject({
      code: 429,
      message: "followed containers: the server's total of 3 is in use; please try again later",
    });
    cluster.podLogs.write('n/a/c', { time: timeText(begin + 5), log: 'one' });
    for (const next of waiting) expect(recordsOf(await next)).toMatchObject([{ log: 'one' }]);
    for (const one of [first, second, other]) await one?.return({});
  });

  test('following pod logs ends when the request is aborted while its reader is busy with the last records', async () => {
    const aborted = new AbortController();
    const following = await followed(aborted.signal);
    aborted.abort(new Error('the client has gone'));
    await expect(following?.next()).rejects.toThrow('the client has gone');
    while (cluster.podLogs.open > 0) await sleep(1);
  });

  test('following pod logs reports a failure that occurs while its reader is busy with the last records', async () => {
    const following = await followed();
    await new Promise<void>((looked) => {
      const containers = (): never => {
        looked();
        throw new Error('the containers are unknown');
      };
      pods.push({ namespace: 'n', name: 'b', createdAt: begin, containers });
    });
    await turn();
    await expect(following?.next()).rejects.toThrow('the containers are unknown');
  });

  test('following pod logs continues after an interrupted stream without loss or duplicates', async () => {
    put('a', [[1, 'old']]);
    const following = storeWith({ lookInterval: 5 }).follow?.(selection, never);
    const next = following?.next();
    const { podLogs } = cluster;
    const until = async (open: number): Promise<void> => {
      while (podLogs.open !== open) await sleep(1);
    };
    await until(1);
    podLogs.write('n/a/c', { time: timeText(begin + 5), log: 'one' });
    podLogs.write('n/a/c', { time: timeText(begin + 5), log: 'two' });
    const received = [...recordsOf(await next)];
    while (received.length < 2) received.push(...recordsOf(await following?.next()));
    podLogs.breakOff('n/a/c');
    podLogs.logs.get('n/a/c')?.lines.push({ time: timeText(begin + 5), log: 'three' });
    received.push(...recordsOf(await following?.next()));
    expect(received.map(({ log }) => log)).toEqual(['one', 'two', 'three']);
    await following?.return({});
    await until(0);
  });

  test('following pod logs reads the log of a pod from the beginning when the pod is scheduled later', async () => {
    put('a', []);
    const log = cluster.podLogs.logs.get('n/a/c');
    if (log !== undefined) log.refusal = { code: 204, reason: '' };
    const following = storeWith({ lookInterval: 5 }).follow?.(selection, never);
    const next = following?.next();
    while (cluster.podLogs.seen.length < 2) await sleep(1);
    cluster.podLogs.put('n/a/c', { time: timeText(begin + 1), log: 'first' });
    while (cluster.podLogs.open === 0) await sleep(1);
    cluster.podLogs.write('n/a/c', { time: timeText(begin + 2), log: 'second' });
    const received = [...recordsOf(await next)];
    while (received.length < 2) received.push(...recordsOf(await following?.next()));
    expect(received.map(({ log: text }) => text)).toEqual(['first', 'second']);
    await following?.return({});
  });

  test('following pod logs reads the log of a restarted container from the beginning', async () => {
    put('a', [[1, 'old']]);
    const following = storeWith({ lookInterval: 5 }).follow?.(selection, never);
    const next = following?.next();
    while (cluster.podLogs.open === 0) await sleep(1);
    cluster.podLogs.end('n/a/c');
    cluster.podLogs.put('n/a/c', { time: timeText(begin + 9), log: 'anew' });
    const container = { name: 'c', restarts: 1, hasPrevious: true, isOver: false };
    pods = [{ namespace: 'n', name: 'a', createdAt: begin, containers: () => [container] }];
    expect((await next)?.value).toEqual([expect.objectContaining({ log: 'anew' })]);
    await following?.return({});
  });
});

const entry = (time: number, pod: string, index: number): PodLogEntry => ({
  record: { time: timeText(time), namespace: 'n', pod, container: 'c', log: 'x' },
  index,
});

test('FirstEntries keeps the first log records in order', () => {
  const entries = fc.array(
    fc.tuple(fc.nat(20), fc.constantFrom('a', 'b'), fc.nat(5)).map((parts) => entry(...parts)),
    { maxLength: 2_000, size: 'max' },
  );
  fc.assert(
    fc.property(entries, fc.constantFrom<TimeOrder>('asc', 'desc'), fc.nat(50), (all, order, max) => {
      const best = new FirstEntries(order, max, 1e9);
      for (const one of all) if (best.mayInclude(one.record.time)) best.add(one);
      expect(best.all()).toEqual(all.toSorted(compareIn(order)).slice(0, max));
    }),
    { numRuns: 10 },
  );
});

test('the time windows of an export cover each second once, and only windows of a single second exceed the maximum size', () => {
  const sizes = fc.array(fc.tuple(fc.nat(100_000), fc.integer({ min: 1, max: 500 })), { maxLength: 200 });
  fc.assert(
    fc.property(sizes, (all) => {
      const measured = new Sizes();
      for (const [second, size] of all) measured.add(second, size);
      const windows = measured.windows(1_000);
      for (const [index, { from, to }] of windows.entries()) {
        expect(from).toBeGreaterThan(windows[index - 1]?.to ?? -1);
        const within = all.filter(([second]) => second >= from && second <= to);
        const held = within.reduce((sum, [, size]) => sum + size, 0);
        expect(held <= 1_000 || from === to).toBe(true);
      }
      for (const [second] of all)
        expect(windows.filter(({ from, to }) => from <= second && second <= to)).toHaveLength(1);
    }),
  );
});
