/** Follows the logs of containers with one stream each, including containers that start later. */
import { setTimeout as sleep } from 'node:timers/promises';
import { badRequest, serviceUnavailable } from '../../../runtime/errors.ts';
import { Reasons, type Caller, type Cut, type LogRecord, type Selection } from '../log-store.ts';
import { secondsOf } from '../../query/times.ts';
import { sizeOf } from './entry.ts';
import { readLog, type Visit } from './read.ts';
import { sourcesOf, textWanted, type ListPods, type ContainerLog } from './source.ts';

export interface FollowOptions {
  readonly caller: Caller;
  readonly list: ListPods;
  readonly selection: Selection;
  readonly limits: { readonly followed: number; readonly lookInterval: number };
  /**
   * Takes a slot and returns the function that frees it. Each followed container has its own connection to
   * kube-apiserver. Throws 429 if no slot is free.
   */
  readonly takeSlot: () => () => void;
  readonly signal: AbortSignal;
}

/** Maximum bytes that wait for the reader. */
const maxBuffered = 4 * 1024 * 1024;

/** Buffer between the streams of the containers and the reader of the tail. */
class RecordBuffer {
  #records: LogRecord[] = [];
  #bytes = 0;
  #filled: (() => void) | undefined;
  #writers: (() => void)[] = [];

  /**
   * Adds a record. Returns undefined if the buffer has room, otherwise a promise that resolves when it has room again.
   */
  add(record: LogRecord): Promise<void> | undefined {
    this.#records.push(record);
    this.#bytes += sizeOf(record);
    this.wake();
    return this.#bytes < maxBuffered ? undefined : new Promise((resolve) => this.#writers.push(resolve));
  }

  wake(): void {
    this.#filled?.();
    this.#filled = undefined;
  }

  /**
   * Resolves at the next `wake`, and misses any earlier `wake`. Callers must therefore find the buffer empty and call
   * this method in the same turn of the event loop.
   */
  filled(): Promise<void> {
    return new Promise((resolve) => (this.#filled = resolve));
  }

  take(): readonly LogRecord[] {
    const records = this.#records;
    this.#records = [];
    this.#bytes = 0;
    for (const resume of this.#writers.splice(0)) resume();
    return records;
  }
}

/** Position in the log of a container. */
interface Reading {
  /** Number of restarts, which identifies the log. */
  readonly restarts: number;
  /** True if all records of the container are new. */
  isNew: boolean;
  isOpen: boolean;
  /** True once the log was read to its end. The container writes no more records until it restarts. */
  isDone: boolean;
  time: string;
  /** Number of lines read so far that have the same time as the last line. */
  count: number;
}

const keyOf = ({ namespace, pod, container }: ContainerLog): string => `${namespace}/${pod}/${container}`;

class Follower {
  readonly #options: FollowOptions;
  readonly #ended = new AbortController();
  readonly #signal: AbortSignal;
  readonly #wanted: ReturnType<typeof textWanted>;
  readonly #buffer = new RecordBuffer();
  readonly #readings = new Map<string, Reading>();
  #failure: { readonly error: unknown } | undefined;

  constructor(options: FollowOptions) {
    this.#options = options;
    this.#signal = AbortSignal.any([options.signal, this.#ended.signal]);
    this.#wanted = textWanted(options.selection);
  }

  async *records(): AsyncGenerator<readonly LogRecord[], Cut> {
    const { signal } = this.#options;
    const wake = (): void => this.#buffer.wake();
    signal.addEventListener('abort', wake);
    try {
      await this.#startReading(true);
      this.#lookForContainers().catch((error: unknown) => this.#fail(error));
      for (;;) {
        signal.throwIfAborted();
        const records = this.#buffer.take();
        if (records.length > 0) yield records;
        else if (this.#failure !== undefined) throw this.#failure.error;
        else await this.#buffer.filled();
      }
    } finally {
      signal.removeEventListener('abort', wake);
      this.#ended.abort();
      this.#buffer.take();
    }
  }

  #fail(error: unknown): void {
    if (this.#signal.aborted) return;
    this.#failure ??= { error };
    this.#buffer.wake();
  }

  async #lookForContainers(): Promise<void> {
    for (;;) {
      await sleep(this.#options.limits.lookInterval, undefined, { signal: this.#signal });
      await this.#startReading(false);
    }
  }

  /** Starts to read the containers that are not read yet. */
  async #startReading(isFirst: boolean): Promise<void> {
    const sources = await this.#sources();
    const present = new Set(sources.map(keyOf));
    for (const [key, { isOpen }] of this.#readings) if (!present.has(key) && !isOpen) this.#readings.delete(key);
    for (const source of sources) {
      const key = keyOf(source);
      const known = this.#readings.get(key);
      if (known === undefined && isFirst && source.isOver) continue;
      const isSame = known?.restarts === source.restarts;
      if (known !== undefined && (known.isOpen || (isSame && known.isDone))) continue;
      const fresh = { restarts: source.restarts, isNew: !isFirst, isOpen: false, isDone: false, time: '', count: 0 };
      const reading: Reading = isSame && known !== undefined ? known : fresh;
      this.#readings.set(key, reading);
      this.#read(source, reading).catch((error: unknown) => this.#fail(error));
    }
  }

  async #sources(): Promise<readonly ContainerLog[]> {
    const { list, selection, limits } = this.#options;
    const max = limits.followed;
    const all = await sourcesOf(list, selection, max + 1, new Reasons(), this.#signal);
    const sources = all.filter(({ previous }) => !previous);
    if (sources.length > max)
      throw badRequest(`at most ${max} containers can be followed at once: select fewer namespaces, workloads or pods`);
    return sources;
  }

  async #read(source: ContainerLog, reading: Reading): Promise<void> {
    const { caller, takeSlot } = this.#options;
    const freeSlot = takeSlot();
    reading.isOpen = true;
    // A tail skips existing records, except those of containers that started after the tail.
    const from = reading.time === '' ? (reading.isNew ? {} : { tailLines: 0 }) : { since: secondsOf(reading.time) };
    try {
      const options = { ...from, follow: true, signal: this.#signal };
      const { outcome } = await readLog(caller, source, options, this.#visitor(source, reading));
      if (outcome === 'refused')
        this.#fail(serviceUnavailable(`the log of ${keyOf(source)} can no longer be read with your rights`, 1));
      reading.isDone = outcome === 'read';
      // The container has not started yet.
      if (outcome === 'none') reading.isNew = true;
    } finally {
      reading.isOpen = false;
      freeSlot();
    }
  }

  /** Returns a visitor that adds the lines that were not read before. */
  #visitor({ namespace, pod, container }: ContainerLog, reading: Reading): Visit {
    const wanted = this.#wanted;
    const buffer = this.#buffer;
    const before = reading.time;
    let repeated = reading.count;
    return (time, bytes) => {
      if (before !== '') {
        if (time < before) return true;
        if (time === before && repeated > 0) {
          repeated -= 1;
          return true;
        }
      }
      reading.count = time === reading.time ? reading.count + 1 : 1;
      reading.time = time;
      const log = bytes.toString('utf8');
      if (wanted?.(log) === false) return true;
      return buffer.add({ time, namespace, pod, container, log }) ?? true;
    };
  }
}

/** Follows the selected containers. Throws 400 if there are too many containers. */
export const followSources = (options: FollowOptions): AsyncGenerator<readonly LogRecord[], Cut> =>
  new Follower(options).records();
