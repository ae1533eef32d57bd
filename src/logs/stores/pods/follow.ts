/** What containers write from now on: a stream of each, also of those that come later. */
import { setTimeout as sleep } from 'node:timers/promises';
import { badRequest, serviceUnavailable } from '../../../runtime/errors.ts';
import type { Caller, Cut, LogRecord, Selection } from '../log-store.ts';
import { secondsOf } from '../../query/times.ts';
import { sizeOf } from './entry.ts';
import { readLog } from './read.ts';
import { Reasons } from './scan.ts';
import { sourcesOf, textWanted, type ListPods, type ContainerLog } from './source.ts';

export interface FollowOptions {
  readonly caller: Caller;
  readonly list: ListPods;
  readonly selection: Selection;
  readonly limits: { readonly followed: number; readonly lookInterval: number };
  /** Returns what frees the slot. Each followed container has a connection to kube-apiserver. Throws 429 when there is none. */
  readonly takeSlot: () => () => void;
  readonly signal: AbortSignal;
}

/** Bytes that may wait for the reader. */
const mostWaiting = 4 * 1024 * 1024;

/** Between those who read the logs and the one who takes what they read. */
class Waiting {
  #records: LogRecord[] = [];
  #bytes = 0;
  #filled: (() => void) | undefined;
  #taken: (() => void)[] = [];

  /** Undefined while there is room, else a promise of it. */
  add(record: LogRecord): Promise<void> | undefined {
    this.#records.push(record);
    this.#bytes += sizeOf(record);
    this.wake();
    return this.#bytes < mostWaiting ? undefined : new Promise((resolve) => this.#taken.push(resolve));
  }

  wake(): void {
    this.#filled?.();
    this.#filled = undefined;
  }

  /** Resolves at `wake`, at once if something waits. */
  filled(): Promise<void> {
    return this.#records.length > 0 ? Promise.resolve() : new Promise((resolve) => (this.#filled = resolve));
  }

  take(): readonly LogRecord[] {
    const records = this.#records;
    this.#records = [];
    this.#bytes = 0;
    for (const go of this.#taken.splice(0)) go();
    return records;
  }
}

/** How far a container was read. */
interface Reading {
  /** Of which start of the container. */
  readonly restarts: number;
  /** All that it wrote is new. */
  isNew: boolean;
  isOpen: boolean;
  /** Its stream ended by itself: there is no more, until it starts anew. */
  isDone: boolean;
  time: string;
  /** Lines of that time. */
  count: number;
}

const keyOf = ({ namespace, pod, container }: ContainerLog): string => `${namespace}/${pod}/${container}`;

/** Throws 400 if there are too many containers. */
export async function* followSources(options: FollowOptions): AsyncGenerator<readonly LogRecord[], Cut> {
  const { caller, list, selection, limits, takeSlot } = options;
  const ended = new AbortController();
  const signal = AbortSignal.any([options.signal, ended.signal]);
  const waiting = new Waiting();
  const readings = new Map<string, Reading>();
  const wanted = textWanted(selection);
  let failure: { readonly error: unknown } | undefined;
  const fail = (error: unknown): void => {
    failure ??= { error };
    waiting.wake();
  };

  async function read(source: ContainerLog, reading: Reading): Promise<void> {
    const giveBack = takeSlot();
    reading.isOpen = true;
    const { namespace, pod, container } = source;
    const before = reading.time;
    let again = reading.count;
    const visit = (time: string, bytes: Buffer): boolean | Promise<void> => {
      if (before !== '') {
        if (time < before) return true;
        if (time === before && again > 0) {
          again -= 1;
          return true;
        }
      }
      reading.count = time === reading.time ? reading.count + 1 : 1;
      reading.time = time;
      const log = bytes.toString('utf8');
      if (wanted?.(log) === false) return true;
      return waiting.add({ time, namespace, pod, container, log }) ?? true;
    };
    // What was there before is not new, but for what a container wrote that began since.
    const from = before === '' ? (reading.isNew ? {} : { tailLines: 0 }) : { since: secondsOf(before) };
    try {
      const { as } = await readLog(caller, source, { ...from, follow: true, signal }, visit);
      if (as === 'refused') fail(serviceUnavailable(`the log of ${keyOf(source)} may not be read any more`, 1));
      reading.isDone = as === 'read';
      // It has not begun yet.
      if (as === 'none') reading.isNew = true;
    } finally {
      reading.isOpen = false;
      giveBack();
    }
  }

  /** Begins to read what is not read yet. */
  async function look(isFirst: boolean): Promise<void> {
    const most = limits.followed;
    const sources = (await sourcesOf(list, selection, most + 1, new Reasons(), signal)).filter(
      ({ previous }) => !previous,
    );
    if (sources.length > most)
      throw badRequest(`at most ${most} containers can be followed at once: name fewer namespaces, workloads or pods`);
    const present = new Set(sources.map(keyOf));
    for (const [key, { isOpen }] of readings) if (!present.has(key) && !isOpen) readings.delete(key);
    for (const source of sources) {
      const key = keyOf(source);
      const known = readings.get(key);
      if (known === undefined && isFirst && source.isOver) continue;
      const isSame = known?.restarts === source.restarts;
      if (known !== undefined && (known.isOpen || (isSame && known.isDone))) continue;
      const begun = { restarts: source.restarts, isNew: !isFirst, isOpen: false, isDone: false, time: '', count: 0 };
      const reading: Reading = isSame && known !== undefined ? known : begun;
      readings.set(key, reading);
      read(source, reading).catch((error: unknown) => {
        if (!signal.aborted) fail(error);
      });
    }
  }

  async function keepLooking(): Promise<void> {
    for (;;) {
      await sleep(limits.lookInterval, undefined, { signal });
      await look(false);
    }
  }

  const wake = (): void => waiting.wake();
  options.signal.addEventListener('abort', wake);
  try {
    await look(true);
    keepLooking().catch((error: unknown) => {
      if (!signal.aborted) fail(error);
    });
    for (;;) {
      await waiting.filled();
      options.signal.throwIfAborted();
      const records = waiting.take();
      if (records.length > 0) yield records;
      else if (failure !== undefined) throw failure.error;
    }
  } finally {
    options.signal.removeEventListener('abort', wake);
    ended.abort();
    waiting.take();
  }
}
