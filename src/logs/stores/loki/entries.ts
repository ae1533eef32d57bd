/** The records of an answer of Loki, which has them by stream. */
import type { LogRecord, TimeOrder } from '../log-store.ts';
import { sum, wantedBytes } from '../remote/paging.ts';
import type { LokiStream } from './client.ts';
import type { Labels } from './logql.ts';

export interface LokiEntry {
  /** Nanoseconds since the epoch, in so many digits that they compare as texts. */
  readonly time: string;
  readonly line: string;
  readonly labels: LokiStream['labels'];
}

/** Nanoseconds since the epoch. */
export const textOf = (time: string | bigint): string => String(time).padStart(19, '0');

/** Merged by time; of one time by their streams. */
export function entriesOf(streams: readonly LokiStream[], order: TimeOrder): readonly LokiEntry[] {
  const sign = order === 'asc' ? 1 : -1;
  return streams
    .map((stream) => ({
      ...stream,
      key: JSON.stringify(Object.entries(stream.labels).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    }))
    .toSorted((a, b) => (a.key < b.key ? -sign : sign))
    .flatMap(({ labels, values }) => values.map(([time, line]) => ({ time: textOf(time), line, labels })))
    .toSorted((a, b) => (a.time < b.time ? -sign : a.time > b.time ? sign : 0));
}

/** RFC 3339, of nanoseconds since the epoch. */
const timeOf = (time: string): string => {
  const whole = new Date(Number(time.slice(0, -9)) * 1_000).toISOString();
  return `${whole.slice(0, 19)}.${time.slice(-9)}Z`;
};

export const recordOf = ({ time, line, labels }: LokiEntry, { namespace, pod, container }: Labels): LogRecord => ({
  time: timeOf(time),
  namespace: labels[namespace] ?? '',
  pod: labels[pod] ?? '',
  container: labels[container] ?? '',
  log: line.replace(/\n$/, ''),
});

/** How many to ask for after these: as many as make an answer of about that size. */
export function sizeAfter(records: readonly LokiEntry[]): number {
  const each = sum(records.map(({ line }) => line.length)) / records.length;
  return Math.max(1, Math.floor(wantedBytes / (200 + each)));
}
