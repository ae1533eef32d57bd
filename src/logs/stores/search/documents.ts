/** What a shipper of logs writes into Elasticsearch and OpenSearch, and what of it is a record. */
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

/** All that is read of a document. */
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

const inFull = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/;

/**
 * The nanoseconds of `time`, which must be in this millisecond. fluent-bit's script for containerd writes them without leading zeros:
 * ".5000000" is 5 ms, where others mean half a second by it.
 */
export function exactTime(time: unknown, milliseconds: number): string {
  // As most are.
  if (typeof time === 'string' && inFull.test(time) && millisecondsOf(time) === milliseconds) return time;
  const whole = new Date(milliseconds).toISOString();
  const expected = whole.slice(20, 23);
  const [, fraction = ''] = (typeof time === 'string' && /\.(\d{1,9})/.exec(time)) || [];
  const readings = [fraction.padEnd(9, '0'), fraction.padStart(9, '0')];
  const nanoseconds = readings.find((reading) => reading.startsWith(expected)) ?? `${expected}000000`;
  return `${whole.slice(0, 20)}${nanoseconds}Z`;
}

const text = (value: unknown): string => (typeof value === 'string' ? value.toWellFormed() : '');

/** `milliseconds`: by which the store sorts it. */
export const recordOf = ({ log, time, kubernetes }: Document, milliseconds: number): LogRecord => ({
  time: exactTime(time, milliseconds),
  namespace: text(kubernetes?.namespace_name),
  pod: text(kubernetes?.pod_name),
  container: text(kubernetes?.container_name),
  log: text(log).replace(/\n$/, ''),
});
