/**
 * Polls for new records in a store that does not support tails. Log shippers deliver late and out of order, so each
 * query repeats the last `overlap` seconds. Only records that no earlier query returned are yielded.
 */
import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cut, LogRecord, LogStore, Selection } from './log-store.ts';
import { limits } from '../query/parameters.ts';
import { secondsOf } from '../query/times.ts';

export interface PollingOptions {
  /** Delay between two queries in milliseconds. */
  readonly interval: number;
  /** Maximum delay of records in seconds. */
  readonly overlap: number;
  /** Records per query. */
  readonly page: number;
  /**
   * Maximum number of records that are remembered. If more records arrive within `overlap`, late records may be lost.
   */
  readonly remembered: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

export const pollingDefaults: PollingOptions = {
  interval: 2_000,
  overlap: 30,
  page: 1_000,
  remembered: 20_000,
  now: Date.now,
};

/**
 * Identifies a record. Identical records have the same key, so the number of records per key is counted. Digests take
 * less memory than large texts.
 */
const keyOf = ({ time, namespace, pod, container, log }: LogRecord): string =>
  hash('sha256', JSON.stringify([time, namespace, pod, container, log]), 'base64');

/** Number of identical records by key, for records that the next query may return again. */
type Seen = Map<string, { readonly time: string; readonly count: number }>;

/** Polls until its reader returns or the signal is aborted. */
export async function* followByPolling(
  store: Pick<LogStore, 'query'>,
  selection: Selection,
  signal: AbortSignal,
  { interval, overlap, page, remembered, now }: PollingOptions = pollingDefaults,
): AsyncGenerator<readonly LogRecord[], Cut> {
  let start = Math.floor(now() / 1_000);
  let seen: Seen = new Map();
  let isFirst = true;
  for (;;) {
    const end = Math.ceil(now() / 1_000);
    const present: Seen = new Map();
    /** Second at which reading stopped, because there were too many records. */
    let reached: number | undefined;
    for (let from = 0; reached === undefined;) {
      const nextPage = { order: 'asc', from, size: page } as const;
      const { records, partial } = await store.query({ ...selection, start, end }, nextPage, signal);
      const fresh: LogRecord[] = [];
      for (const record of records) {
        const key = keyOf(record);
        const count = (present.get(key)?.count ?? 0) + 1;
        present.set(key, { time: record.time, count });
        if (count > (seen.get(key)?.count ?? 0)) fresh.push(record);
      }
      // Records that existed when polling started are not new.
      if (fresh.length > 0 && !isFirst) yield fresh;
      // A short page is the last page, unless it was cut because its records are large.
      if (records.length === 0 || (records.length < page && partial === undefined)) break;
      from += records.length;
      const last = secondsOf(records.at(-1)?.time ?? '');
      if (from >= remembered && last > start) reached = last;
      else if (from + page > limits.reach)
        return { partial: { reason: `more than ${limits.reach} records per second cannot be followed` } };
    }
    isFirst = false;
    start = Math.max(start, reached ?? end - overlap);
    seen = new Map([...present].filter(([, { time }]) => secondsOf(time) >= start));
    if (reached !== undefined) continue;
    await sleep(interval, undefined, { signal });
  }
}
