import { describe, expect, test } from '@jest/globals';
import { followByPolling } from '../../../../src/logs/stores/polling.ts';
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
const started = 1_000;

const record = (second: number, log: string): LogRecord => ({
  time: timeText(second),
  namespace: 'n',
  pod: 'p',
  container: 'c',
  log,
});

/** A store that receives records between two polls. */
class Arriving {
  readonly records: LogRecord[] = [];
  second = started;
  /** The records that arrive before the second poll, before the third poll, and so on. */
  readonly #arrivals: (readonly LogRecord[])[];
  #isFirst = true;

  constructor(arrivals: readonly (readonly LogRecord[])[]) {
    this.#arrivals = [...arrivals];
  }

  /** Maximum number of characters in a page. */
  maxCharacters = Infinity;

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
      if (characters > this.maxCharacters && records.length > 0)
        return { total: found.length, records, partial: { reason: 'the page is too large' } };
      records.push(one);
    }
    return { total: found.length, records };
  }
}

async function followed(
  arrivals: readonly (readonly LogRecord[])[],
  before: readonly LogRecord[] = [],
  maxCharacters = Infinity,
) {
  const store = new Arriving(arrivals);
  store.maxCharacters = maxCharacters;
  store.records.push(...before);
  const received: string[] = [];
  const options = { interval: 0, overlap: 10, page: 3, remembered: 6, now: () => (store.second += 1) * 1_000 };
  const follow = async (): Promise<void> => {
    for await (const records of followByPolling(store, selection, new AbortController().signal, options))
      received.push(...records.map(({ log }) => log));
  };
  await expect(follow()).rejects.toThrow('over');
  return received;
}

describe('a polled log store', () => {
  test('a polled log store returns each new record once, and no earlier record', async () => {
    expect(await followed([[], [record(1_001, 'a')], [], [record(1_002, 'b')], []], [record(1_001, 'old')])).toEqual([
      'a',
      'b',
    ]);
  });

  test('a polled log store neither loses nor duplicates records with equal times or equal contents', async () => {
    const same = record(1_002, 'same');
    const received = await followed([[same], [same, record(1_002, 'other')], [], [same], []]);
    expect(received.toSorted()).toEqual(['other', 'same', 'same', 'same']);
  });

  test('a polled log store returns records that arrive late', async () => {
    const arrivals = [[record(1_005, 'first')], [], [], [record(1_003, 'late')], []];
    expect(await followed([...arrivals])).toEqual(['first', 'late']);
  });

  test('a polled log store returns all records, even if they exceed a page or the number of remembered records', async () => {
    const many = Array.from({ length: 40 }, (_, i) => record(1_002 + Math.floor(i / 8), `r${i}`));
    const received = await followed([many, [], [], [], [], [], [], [], [], [], []]);
    expect(received.toSorted()).toEqual(many.map(({ log }) => log).toSorted());
  });

  test('a polled log store returns records that are too large for a page', async () => {
    const many = Array.from({ length: 8 }, (_, i) => record(1_002, `r${i}`));
    expect((await followed([many, [], []], [], 4)).toSorted()).toEqual(many.map(({ log }) => log));
  });
});
