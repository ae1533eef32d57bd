/** Documents that log shippers write to Elasticsearch and OpenSearch, and their conversion to records. */
import type { LogRecord } from '../log-store.ts';
import { millisecondsOf } from '../../query/times.ts';

export interface Document {
  readonly log?: unknown;
  readonly time?: unknown;
  readonly kubernetes?: {
    readonly namespace_name?: unknown;
    readonly pod_name?: unknown;
    readonly container_name?: unknown;
  } | null;
}

/** Fields of a document that are read. */
export const documentFields = [
  'log',
  'time',
  'kubernetes.namespace_name',
  'kubernetes.pod_name',
  'kubernetes.container_name',
];

export const fields = {
  namespace: 'kubernetes.namespace_name.keyword',
  pod: 'kubernetes.pod_name.keyword',
  container: 'kubernetes.container_name.keyword',
  text: 'log',
} as const;

const fullTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/;

/**
 * Returns `time` with nanoseconds. The result is always within the given millisecond. fluent-bit's script for
 * containerd omits leading zeros: ".5000000" then means 5 ms, but half a second in documents of other shippers.
 */
export function exactTime(time: unknown, milliseconds: number): string {
  // Most documents already have a time with nine digits after the decimal point.
  if (typeof time === 'string' && fullTime.test(time) && millisecondsOf(time) === milliseconds) return time;
  const whole = new Date(milliseconds).toISOString();
  const expected = whole.slice(20, 23);
  const [, fraction = ''] = (typeof time === 'string' && /\.(\d{1,9})/.exec(time)) || [];
  const readings = [fraction.padEnd(9, '0'), fraction.padStart(9, '0')];
  const nanoseconds = readings.find((reading) => reading.startsWith(expected)) ?? `${expected}000000`;
  return `${whole.slice(0, 20)}${nanoseconds}Z`;
}

const text = (value: unknown): string => (typeof value === 'string' ? value.toWellFormed() : '');

/** Converts a document to a record. `milliseconds`: time by which the store sorts the document. */
export const recordOf = ({ log, time, kubernetes }: Document, milliseconds: number): LogRecord => ({
  time: exactTime(time, milliseconds),
  namespace: text(kubernetes?.namespace_name),
  pod: text(kubernetes?.pod_name),
  container: text(kubernetes?.container_name),
  log: text(log).replace(/\n$/, ''),
});
