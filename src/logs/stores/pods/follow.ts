/** What containers write from now on: a stream of each, also of those that come later. */
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

  /** Resolves at the next `wake`. A wake-up before the call is lost: check in the same turn whether there is something to wait for. */
  filled(): Promise<void> {
    return new Promise((resolve) => (this.#filled = resolve));
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

class Follower {
  readonly #options: FollowOptions;
  readonly #ended = new AbortController();
  readonly #signal: AbortSignal;
  readonly #wanted: ReturnType<typeof textWanted>;
  readonly #waiting = new Waiting();
  readonly #readings = new Map<string, Reading>();
  #failure: { readonly error: unknown } | undefined;

  constructor(options: FollowOptions) {
    this.#options = options;
    this.#signal = AbortSignal.any([options.signal, this.#ended.signal]);
    this.#wanted = textWanted(options.selection);
  }

  async *records(): AsyncGenerator<readonly LogRecord[], Cut> {
    const { signal } = this.#options;
    const wake = (): void => this.#waiting.wake();
    signal.addEventListener('abort', wake);
    try {
      await this.#startReading(true);
      this.#lookForContainers().catch((error: unknown) => this.#fail(error));
      for (;;) {
        signal.throwIfAborted();
        const records = this.#waiting.take();
        if (records.length > 0) yield records;
        else if (this.#failure !== undefined) throw this.#failure.error;
        else await this.#waiting.filled();
      }
    } finally {
      signal.removeEventListener('abort', wake);
      this.#ended.abort();
      this.#waiting.take();
    }
  }

  #fail(error: unknown): void {
    if (this.#signal.aborted) return;
    this.#failure ??= { error };
    this.#waiting.wake();
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
      const begun = { restarts: source.restarts, isNew: !isFirst, isOpen: false, isDone: false, time: '', count: 0 };
      const reading: Reading = isSame && known !== undefined ? known : begun;
      this.#readings.set(key, reading);
      this.#read(source, reading).catch((error: unknown) => this.#fail(error));
    }
  }

  async #sources(): Promise<readonly ContainerLog[]> {
    const { list, selection, limits } = this.#options;
    const most = limits.followed;
    const all = await sourcesOf(list, selection, most + 1, new Reasons(), this.#signal);
    const sources = all.filter(({ previous }) => !previous);
    if (sources.length > most)
      throw badRequest(`at most ${most} containers can be followed at once: name fewer namespaces, workloads or pods`);
    return sources;
  }

  async #read(source: ContainerLog, reading: Reading): Promise<void> {
    const { caller, takeSlot } = this.#options;
    const freeSlot = takeSlot();
    reading.isOpen = true;
    // Older records are not new, except those of a container that started since.
    const from = reading.time === '' ? (reading.isNew ? {} : { tailLines: 0 }) : { since: secondsOf(reading.time) };
    try {
      const options = { ...from, follow: true, signal: this.#signal };
      const { as } = await readLog(caller, source, options, this.#visitor(source, reading));
      if (as === 'refused') this.#fail(serviceUnavailable(`the log of ${keyOf(source)} may not be read any more`, 1));
      reading.isDone = as === 'read';
      // The container has not started yet.
      if (as === 'none') reading.isNew = true;
    } finally {
      reading.isOpen = false;
      freeSlot();
    }
  }

  /** Adds the lines that were not read before. */
  #visitor({ namespace, pod, container }: ContainerLog, reading: Reading): Visit {
    const wanted = this.#wanted;
    const waiting = this.#waiting;
    const before = reading.time;
    let again = reading.count;
    return (time, bytes) => {
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
  }
}

/** Throws 400 if there are too many containers. */
export const followSources = (options: FollowOptions): AsyncGenerator<readonly LogRecord[], Cut> =>
  new Follower(options).records();
