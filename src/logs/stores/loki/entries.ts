/** Records of a Loki response, which groups them by stream. */
import type { LogRecord, TimeOrder } from '../log-store.ts';
import { sum, targetBytes } from '../remote/paging.ts';
import type { LokiStream } from './client.ts';
import type { Labels } from './logql.ts';

export interface LokiEntry {
  /** Nanoseconds since the epoch, zero-padded so that the lexical order is the order in time. */
  readonly time: string;
  readonly line: string;
  readonly labels: LokiStream['labels'];
}

/** Zero-pads nanoseconds since the epoch. */
export const textOf = (time: string | bigint): string => String(time).padStart(19, '0');

/** Merges streams by time; records of the same time are sorted by stream. */
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

/** Formats nanoseconds since the epoch (RFC 3339). */
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

/** Returns the number of records to request next, for a response of about `targetBytes`. */
export function sizeAfter(records: readonly LokiEntry[]): number {
  const each = sum(records.map(({ line }) => line.length)) / records.length;
  return Math.max(1, Math.floor(targetBytes / (200 + each)));
}
