/** Reads many logs, a few at a time, and selects the lines in the requested time window. */
import { serviceUnavailable } from '../../../runtime/errors.ts';
import { mapConcurrent } from '../../../runtime/promises.ts';
import type { Caller, LogRecord, Reasons } from '../log-store.ts';
import { timeText } from '../../query/times.ts';
import type { PodLogEntry } from './entry.ts';
import { readLog, type ReadResult } from './read.ts';
import type { ContainerLog } from './source.ts';

export interface Window {
  /** Whole seconds. */
  readonly from: number;
  readonly to: number;
  /** Last time in the window, as a string. */
  readonly last: string;
  /** Returns the second from which the logs of a namespace are visible. */
  readonly since: (namespace: string) => number;
}

export interface ScanOptions {
  readonly caller: Caller;
  readonly sources: readonly ContainerLog[];
  readonly window: Window;
  /** Returns whether the text of a line is selected; undefined if all lines are selected. */
  readonly wanted: ((text: string) => boolean) | undefined;
  readonly atOnce: number;
  /** Maximum number of lines per log, counted from the newest. */
  readonly tailLines?: number;
  /** Maximum bytes per log, counted from the oldest line of `tailLines`. */
  readonly limitBytes: number;
  /** Milliseconds after which the remaining logs are skipped; undefined: no limit. */
  readonly budget?: number;
  readonly reasons: Reasons;
  readonly signal: AbortSignal;
}

/** Receives each selected line. `entry` creates the record and must be called synchronously. */
export type Take = (source: ContainerLog, time: string, entry: () => PodLogEntry) => void;

/** Seconds by which lines of a container's two output streams may be out of order. */
const disorder = 2;

const nameOf = ({ namespace, pod, container }: ContainerLog): string => `${namespace}/${pod}/${container}`;

/** Collects the logs that were not read completely, and reports them without the addresses of nodes. */
class IncompleteLogs {
  readonly #reasons: Reasons;
  #read = 0;
  #unreadable: string[] = [];
  #refused: string[] = [];
  #older: string[] = [];
  #newer: string[] = [];
  #late = 0;

  constructor(reasons: Reasons) {
    this.#reasons = reasons;
  }

  add(
    source: ContainerLog,
    result: ReadResult,
    { tailLines, limitBytes }: Pick<ScanOptions, 'tailLines' | 'limitBytes'>,
  ): void {
    const name = nameOf(source);
    if (result.outcome === 'unreadable') this.#unreadable.push(name);
    else if (result.outcome === 'refused') this.#refused.push(name);
    else this.#read += 1;
    if (result.outcome === 'stopped') return;
    if (result.bytes >= limitBytes) this.#newer.push(name);
    else if (result.lines === tailLines) this.#older.push(name);
  }

  addLate(): void {
    this.#late += 1;
  }

  /** Adds a reason for each kind of incomplete log. Throws 503 if the nodes returned none of the logs. */
  report({ tailLines, limitBytes, budget = 0 }: ScanOptions): void {
    if (this.#read === 0 && this.#unreadable.length > 0 && this.#late === 0)
      throw serviceUnavailable(`the logs of ${some(this.#unreadable)} are not available from the nodes`, 5);
    if (this.#unreadable.length > 0)
      this.#reasons.add(`the logs of ${some(this.#unreadable)} are not available from the nodes`);
    if (this.#refused.length > 0) this.#reasons.add(`you are not allowed to read the logs of ${some(this.#refused)}`);
    if (this.#older.length > 0)
      this.#reasons.add(`only the newest ${tailLines} lines of ${some(this.#older)} were read`);
    if (this.#newer.length > 0)
      this.#reasons.add(
        `only the oldest ${limitBytes} bytes of ${some(this.#newer)} were read: use a shorter time range`,
      );
    if (this.#late > 0)
      this.#reasons.add(`${this.#late} logs were not read completely within ${budget / 1_000} s: select fewer pods`);
  }
}

const some = (names: readonly string[]): string =>
  names.length === 1 ? (names[0] ?? '') : `${names[0]} and ${names.length - 1} more`;

/** Reads all sources. Throws the reason of the aborted signal, and 503 if no log can be read. */
export async function scan(options: ScanOptions, take: Take): Promise<void> {
  const { caller, sources, window, wanted, atOnce, tailLines, limitBytes, budget, reasons, signal } = options;
  const incomplete = new IncompleteLogs(reasons);
  const spent = new AbortController();
  const timer = budget === undefined ? undefined : setTimeout(() => spent.abort(), budget);
  const until = AbortSignal.any([signal, spent.signal]);
  const stopAfter = timeText(window.to + disorder);
  const one = async (source: ContainerLog): Promise<void> => {
    const from = Math.max(window.from, window.since(source.namespace));
    if (from > window.to) return;
    const first = timeText(from);
    const { namespace, pod, container } = source;
    let [before, index] = ['', 0];
    const visit = (time: string, bytes: Buffer): boolean => {
      if (time > stopAfter) return false;
      if (time < first || time > window.last) return true;
      index = time === before ? index + 1 : 0;
      before = time;
      const position = source.previous ? index - 1e9 : index;
      const text = wanted === undefined ? undefined : bytes.toString('utf8');
      if (text !== undefined && wanted?.(text) === false) return true;
      take(source, time, () => {
        const record: LogRecord = { time, namespace, pod, container, log: text ?? bytes.toString('utf8') };
        return { record, index: position };
      });
      return true;
    };
    const result = await readLog(caller, source, { since: from, tailLines, limitBytes, signal: until }, visit);
    incomplete.add(source, result, options);
  };
  const oneInTime = async (source: ContainerLog): Promise<void> => {
    try {
      await one(source);
    } catch (error) {
      signal.throwIfAborted();
      if (!spent.signal.aborted) throw error;
      incomplete.addLate();
    }
  };
  try {
    await mapConcurrent(sources, atOnce, oneInTime);
  } finally {
    clearTimeout(timer);
    spent.abort();
  }
  incomplete.report(options);
}
