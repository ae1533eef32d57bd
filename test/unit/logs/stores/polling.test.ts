import { describe, expect, test } from '@jest/globals';
import { followByAsking } from '../../../../src/logs/stores/polling.ts';
import type { Found, LogRecord, LogPage, Selection } from '../../../../src/logs/stores/log-store.ts';
import { timeText } from '../../../../src/logs/query/times.ts';

const keywords = { namespace: [], workload: [], pod: [], container: [], log: [] };
const selection: Selection = {
  start: undefined,
  end: 0,
  namespaces: undefined,
  workloads: [],
  pods: [],
  containers: [],
  keywords,
};
const begun = 1_000;

const record = (second: number, log: string): LogRecord => ({
  time: timeText(second),
  namespace: 'n',
  pod: 'p',
  container: 'c',
  log,
});

/** A store into which records come between two questions. */
class Arriving {
  readonly records: LogRecord[] = [];
  second = begun;
  /** What comes before each question but the first. */
  readonly #arrivals: (readonly LogRecord[])[];
  #isFirst = true;

  constructor(arrivals: readonly (readonly LogRecord[])[]) {
    this.#arrivals = [...arrivals];
  }

  /** Characters of a page. */
  most = Infinity;

  async query({ start = 0, end }: Selection, { from, size }: LogPage): Promise<Found> {
    if (from === 0 && !this.#isFirst) {
      const arrived = this.#arrivals.shift();
      if (arrived === undefined) throw new Error('over');
      this.records.push(...arrived);
    }
    this.#isFirst = false;
    const found = this.records
      .filter(({ time }) => time >= timeText(start) && time <= timeText(end))
      .toSorted((a, b) => (a.time === b.time ? 0 : a.time < b.time ? -1 : 1));
    const records: LogRecord[] = [];
    let characters = 0;
    for (const one of found.slice(from, from + size)) {
      characters += one.log.length;
      if (characters > this.most && records.length > 0)
        return { total: found.length, records, partial: { reason: 'the page is too large' } };
      records.push(one);
    }
    return { total: found.length, records };
  }
}

async function followed(
  arrivals: readonly (readonly LogRecord[])[],
  before: readonly LogRecord[] = [],
  most = Infinity,
) {
  const store = new Arriving(arrivals);
  store.most = most;
  store.records.push(...before);
  const told: string[] = [];
  const options = { interval: 0, overlap: 10, page: 3, remembered: 6, now: () => (store.second += 1) * 1_000 };
  const follow = async (): Promise<void> => {
    for await (const records of followByAsking(store, selection, new AbortController().signal, options))
      told.push(...records.map(({ log }) => log));
  };
  await expect(follow()).rejects.toThrow('over');
  return told;
}

describe('a store that is asked again and again', () => {
  test('tells what is new once, and not what was there', async () => {
    expect(await followed([[], [record(1_001, 'a')], [], [record(1_002, 'b')], []], [record(1_001, 'old')])).toEqual([
      'a',
      'b',
    ]);
  });

  test('loses and doubles nothing at equal times, nor what is written twice', async () => {
    const same = record(1_002, 'same');
    const told = await followed([[same], [same, record(1_002, 'other')], [], [same], []]);
    expect(told.toSorted()).toEqual(['other', 'same', 'same', 'same']);
  });

  test('tells what comes late', async () => {
    const arrivals = [[record(1_005, 'first')], [], [], [record(1_003, 'late')], []];
    expect(await followed([...arrivals])).toEqual(['first', 'late']);
  });

  test('takes what is more than a page, and more than it remembers', async () => {
    const many = Array.from({ length: 40 }, (_, i) => record(1_002 + Math.floor(i / 8), `r${i}`));
    const told = await followed([many, [], [], [], [], [], [], [], [], [], []]);
    expect(told.toSorted()).toEqual(many.map(({ log }) => log).toSorted());
  });

  test('takes what is too large for a page', async () => {
    const many = Array.from({ length: 8 }, (_, i) => record(1_002, `r${i}`));
    expect((await followed([many, [], []], [], 4)).toSorted()).toEqual(many.map(({ log }) => log));
  });
});
