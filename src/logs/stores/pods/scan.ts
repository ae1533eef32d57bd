/** Many logs read at once, a few at a time, and what their lines are in the window that is asked for. */
import { serviceUnavailable } from '../../../runtime/errors.ts';
import { mapConcurrent } from '../../../runtime/promises.ts';
import type { Caller, LogRecord, Reasons } from '../log-store.ts';
import { timeText } from '../../query/times.ts';
import type { PodLogEntry } from './entry.ts';
import { readLog, type Ended } from './read.ts';
import type { ContainerLog } from './source.ts';

export interface Window {
  /** Whole seconds. */
  readonly from: number;
  readonly to: number;
  /** The last time that is in it, as a text. */
  readonly last: string;
  /** By namespace, the second from which on its logs may be shown. */
  readonly since: (namespace: string) => number;
}

export interface ScanOptions {
  readonly caller: Caller;
  readonly sources: readonly ContainerLog[];
  readonly window: Window;
  /** Whether a text is meant; undefined: all are. */
  readonly wanted: ((text: string) => boolean) | undefined;
  readonly atOnce: number;
  /** Only so many of the newest lines of a log. */
  readonly tailLines?: number;
  /** And of these only so many bytes. */
  readonly limitBytes: number;
  /** Milliseconds, after which what is not read yet is left; undefined: as long as it takes. */
  readonly budget?: number;
  readonly reasons: Reasons;
  readonly signal: AbortSignal;
}

/** Told of each line that is meant, by its source and time; `entry` makes it a record, now or never. */
export type Take = (source: ContainerLog, time: string, entry: () => PodLogEntry) => void;

/** Lines of the two streams of a container may stand in another order than their times, by less than this, in seconds. */
const disorder = 2;

const nameOf = ({ namespace, pod, container }: ContainerLog): string => `${namespace}/${pod}/${container}`;

/** What was not read, in words; no address is among them. */
class Missing {
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

  note(
    source: ContainerLog,
    ended: Ended,
    { tailLines, limitBytes }: Pick<ScanOptions, 'tailLines' | 'limitBytes'>,
  ): void {
    const name = nameOf(source);
    if (ended.as === 'unreadable') this.#unreadable.push(name);
    else if (ended.as === 'refused') this.#refused.push(name);
    else this.#read += 1;
    if (ended.as === 'stopped') return;
    if (ended.bytes >= limitBytes) this.#newer.push(name);
    else if (ended.lines === tailLines) this.#older.push(name);
  }

  late(): void {
    this.#late += 1;
  }

  /** Throws 503 if not a single log could be read, as the nodes cannot be reached. */
  tell({ tailLines, limitBytes, budget = 0 }: ScanOptions): void {
    if (this.#read === 0 && this.#unreadable.length > 0 && this.#late === 0)
      throw serviceUnavailable(`the logs of ${some(this.#unreadable)} cannot be had from the nodes now`, 5);
    if (this.#unreadable.length > 0)
      this.#reasons.add(`the logs of ${some(this.#unreadable)} cannot be had from the nodes now`);
    if (this.#refused.length > 0) this.#reasons.add(`the logs of ${some(this.#refused)} were refused`);
    if (this.#older.length > 0)
      this.#reasons.add(`of ${some(this.#older)} only the ${tailLines} newest lines were read`);
    if (this.#newer.length > 0)
      this.#reasons.add(
        `of ${some(this.#newer)} only ${limitBytes} bytes were read, and not what is newer: ask for a shorter time`,
      );
    if (this.#late > 0)
      this.#reasons.add(`${this.#late} logs were not read to their end within ${budget / 1_000} s: name fewer pods`);
  }
}

const some = (names: readonly string[]): string =>
  names.length === 1 ? (names[0] ?? '') : `${names[0]} and ${names.length - 1} more`;

/** Reads them all. Throws the signal's reason, and 503 if nothing can be read. */
export async function scan(options: ScanOptions, take: Take): Promise<void> {
  const { caller, sources, window, wanted, atOnce, tailLines, limitBytes, budget, reasons, signal } = options;
  const missing = new Missing(reasons);
  const spent = new AbortController();
  const timer = budget === undefined ? undefined : setTimeout(() => spent.abort(), budget);
  const until = AbortSignal.any([signal, spent.signal]);
  const enough = timeText(window.to + disorder);
  const one = async (source: ContainerLog): Promise<void> => {
    const from = Math.max(window.from, window.since(source.namespace));
    if (from > window.to) return;
    const first = timeText(from);
    const { namespace, pod, container } = source;
    let [before, index] = ['', 0];
    const visit = (time: string, bytes: Buffer): boolean => {
      if (time > enough) return false;
      if (time < first || time > window.last) return true;
      index = time === before ? index + 1 : 0;
      before = time;
      const place = source.previous ? index - 1e9 : index;
      const text = wanted === undefined ? undefined : bytes.toString('utf8');
      if (text !== undefined && wanted?.(text) === false) return true;
      take(source, time, () => {
        const record: LogRecord = { time, namespace, pod, container, log: text ?? bytes.toString('utf8') };
        return { record, index: place };
      });
      return true;
    };
    const ended = await readLog(caller, source, { since: from, tailLines, limitBytes, signal: until }, visit);
    missing.note(source, ended, options);
  };
  const oneInTime = async (source: ContainerLog): Promise<void> => {
    try {
      await one(source);
    } catch (error) {
      signal.throwIfAborted();
      if (!spent.signal.aborted) throw error;
      missing.late();
    }
  };
  try {
    await mapConcurrent(sources, atOnce, oneInTime);
  } finally {
    clearTimeout(timer);
    spent.abort();
  }
  missing.tell(options);
}
