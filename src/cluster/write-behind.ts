/**
 * Writes to the cluster in the background. Values for the same key are merged into one write per interval. Writes are
 * sent one after the other, failed writes are retried, and the memory is bounded.
 */
import { sleep, type Clock } from '../runtime/time.ts';
import { withoutSpan } from '../runtime/tracing.ts';
import { KubeError } from './client/kube-error.ts';
import type { Logger } from '../runtime/logger.ts';

/** Milliseconds for which values are collected before they are written. */
const interval = 1_000;
const retryDelay = 10_000;
/** Milliseconds between two writes, so that many logins do not cause a burst of writes. */
const pause = 20;
/** Milliseconds for the remaining writes when the server stops. */
const stopTimeout = 3_000;
/** Maximum waiting keys; values for further keys are dropped. */
const maxKeys = 2_000;

interface WriteBehindOptions<T extends object | string | true> {
  /** Name of the written data in log messages. */
  readonly what: string;
  readonly write: (key: string, value: T) => Promise<void>;
  readonly merge: (waiting: T, later: T) => T;
  readonly clock: Clock;
  readonly log: Logger;
}

export class WriteBehind<T extends object | string | true> {
  readonly #options: WriteBehindOptions<T>;
  readonly #clock: Clock;
  readonly #waiting = new Map<string, T>();
  #writing: { readonly key: string; readonly value: T } | undefined;
  #cancel: (() => void) | undefined;
  #pass: Promise<void> | undefined;
  #deadline = Infinity;
  readonly #stopping = new AbortController();

  constructor(options: WriteBehindOptions<T>) {
    this.#options = options;
    this.#clock = options.clock;
  }

  /** Schedules a write. Returns immediately and never throws. */
  put(key: string, value: T): void {
    const before = this.#waiting.get(key);
    if (before === undefined && this.#waiting.size >= maxKeys) return;
    this.#waiting.set(key, before === undefined ? value : this.#options.merge(before, value));
    this.#schedule(interval);
  }

  /** Returns the value that waits for its write or is being written; undefined if there is none. */
  unwritten(key: string): T | undefined {
    const waiting = this.#waiting.get(key);
    const writing = this.#writing?.key === key ? this.#writing.value : undefined;
    return writing === undefined || waiting === undefined
      ? (waiting ?? writing)
      : this.#options.merge(writing, waiting);
  }

  /** Writes the waiting values, within `stopTimeout`. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#cancel?.();
    this.#deadline = this.#clock.now() + stopTimeout;
    await this.#pass;
    await this.#writeAll();
  }

  #schedule(delay: number): void {
    if (this.#stopping.signal.aborted || this.#pass !== undefined) return;
    this.#cancel ??= this.#clock.after(delay, () => {
      this.#cancel = undefined;
      this.#pass = withoutSpan(() => this.#run());
    });
  }

  async #run(): Promise<void> {
    const isDone = await this.#writeAll();
    this.#pass = undefined;
    if (this.#waiting.size > 0) this.#schedule(isDone ? interval : retryDelay);
  }

  /** Writes each waiting key once. Returns false after the first failure that is worth a retry. */
  async #writeAll(): Promise<boolean> {
    const { write, merge, what, log } = this.#options;
    // Iterates over a snapshot: keys added in the meantime are written in the next pass.
    const keys = [...this.#waiting.keys()];
    for (const key of keys) {
      const value = this.#waiting.get(key);
      if (value === undefined) continue;
      if (this.#clock.now() > this.#deadline) return false;
      this.#waiting.delete(key);
      this.#writing = { key, value };
      try {
        await write(key, value);
      } catch (error) {
        log.warn(`writing ${what} failed`, { key, error });
        if (isPermanent(error)) continue;
        const later = this.#waiting.get(key);
        // Moves the key to the end, so that it does not delay the other keys.
        this.#waiting.delete(key);
        this.#waiting.set(key, later === undefined ? value : merge(value, later));
        return false;
      } finally {
        this.#writing = undefined;
      }
      await sleep(this.#clock, pause, this.#stopping.signal);
    }
    return true;
  }
}

/** Returns true if a retry would fail in the same way. */
const isPermanent = (error: unknown): boolean => error instanceof KubeError && [400, 413, 422].includes(error.code);
