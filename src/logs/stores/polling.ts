/**
 * The new records of a store that cannot follow: it is asked again and again. A shipper is late, and does not keep to the order of time, so
 * each time the last while is asked for once more, and of that only what was not there before is told.
 */
import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cut, LogRecord, LogStore, Selection } from './log-store.ts';
import { limits } from '../query/parameters.ts';
import { secondsOf } from '../query/times.ts';

export interface AskingOptions {
  /** Between two questions, in milliseconds. */
  readonly interval: number;
  /** So late a record may come, in seconds. */
  readonly overlap: number;
  readonly page: number;
  /** Records that are remembered; where there are more, those that come late may be lost. */
  readonly remembered: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

export const asking: AskingOptions = {
  interval: 2_000,
  overlap: 30,
  page: 1_000,
  remembered: 20_000,
  now: Date.now,
};

/** The same text at the same time may well be written twice. A digest: texts of a megabyte are not kept. */
const keyOf = ({ time, namespace, pod, container, log }: LogRecord): string =>
  hash('sha256', JSON.stringify([time, namespace, pod, container, log]), 'base64');

/** How often each record was there, of those that may be there again. */
type Seen = Map<string, { readonly time: string; readonly count: number }>;

/** Ends only when its reader, or the signal, ends it. */
export async function* followByAsking(
  store: Pick<LogStore, 'query'>,
  selection: Selection,
  signal: AbortSignal,
  { interval, overlap, page, remembered, now }: AskingOptions = asking,
): AsyncGenerator<readonly LogRecord[], Cut> {
  let start = Math.floor(now() / 1_000);
  let seen: Seen = new Map();
  let isFirst = true;
  for (;;) {
    const end = Math.ceil(now() / 1_000);
    const present: Seen = new Map();
    /** The second at which it broke off, as there is so much. */
    let reached: number | undefined;
    for (let from = 0; reached === undefined;) {
      const asked = { order: 'asc', from, size: page } as const;
      const { records, partial } = await store.query({ ...selection, start, end }, asked, signal);
      const fresh: LogRecord[] = [];
      for (const record of records) {
        const key = keyOf(record);
        const count = (present.get(key)?.count ?? 0) + 1;
        present.set(key, { time: record.time, count });
        if (count > (seen.get(key)?.count ?? 0)) fresh.push(record);
      }
      // What was there in the second in which it began is not new.
      if (fresh.length > 0 && !isFirst) yield fresh;
      // One that is cut says so: its records are large.
      if (records.length === 0 || (records.length < page && partial === undefined)) break;
      from += records.length;
      const last = secondsOf(records.at(-1)?.time ?? '');
      if (from >= remembered && last > start) reached = last;
      else if (from + page > limits.reach)
        return { partial: { reason: `more than ${limits.reach} records a second cannot be followed` } };
    }
    isFirst = false;
    start = Math.max(start, reached ?? end - overlap);
    seen = new Map([...present].filter(([, { time }]) => secondsOf(time) >= start));
    if (reached !== undefined) continue;
    await sleep(interval, undefined, { signal });
  }
}
