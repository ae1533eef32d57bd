/**
 * Writes to the cluster that nobody waits for: what comes for one key in the meantime becomes one write, no key is written more
 * often than once in an interval, one write goes out after the other, and what fails is tried again, in bounded memory.
 */
import { sleep, type Clock } from '../runtime/time.ts';
import { KubeError } from './client/kube-error.ts';
import type { Logger } from '../runtime/logger.ts';

const interval = 1_000;
const retryAfter = 10_000;
/** Between two writes: no flood of logins becomes one of writes. */
const pause = 20;
/** Keys that wait. */
const most = 2_000;
/** What is left when the server ends must be written in that time. */
const lastMoment = 3_000;

interface WriteBehindOptions<T extends object | string | true> {
  /** As the log calls it. */
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
  #until = Infinity;
  readonly #stopping = new AbortController();

  constructor(options: WriteBehindOptions<T>) {
    this.#options = options;
    this.#clock = options.clock;
  }

  /** Costs the caller nothing and never throws. */
  put(key: string, value: T): void {
    const before = this.#waiting.get(key);
    if (before === undefined && this.#waiting.size >= most) return;
    this.#waiting.set(key, before === undefined ? value : this.#options.merge(before, value));
    this.#later(interval);
  }

  /** What was put and is perhaps not written yet. */
  unwritten(key: string): T | undefined {
    const waiting = this.#waiting.get(key);
    const writing = this.#writing?.key === key ? this.#writing.value : undefined;
    return writing === undefined || waiting === undefined
      ? (waiting ?? writing)
      : this.#options.merge(writing, waiting);
  }

  /** Writes what waits, within seconds. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#cancel?.();
    this.#until = this.#clock.now() + lastMoment;
    await this.#pass;
    await this.#writeAll();
  }

  #later(time: number): void {
    if (this.#stopping.signal.aborted || this.#pass !== undefined) return;
    this.#cancel ??= this.#clock.after(time, () => {
      this.#cancel = undefined;
      this.#pass = this.#run();
    });
  }

  async #run(): Promise<void> {
    const isDone = await this.#writeAll();
    this.#pass = undefined;
    if (this.#waiting.size > 0) this.#later(isDone ? interval : retryAfter);
  }

  /** Each key once; false if the cluster does not take them now. */
  async #writeAll(): Promise<boolean> {
    const { write, merge, what, log } = this.#options;
    // Not those that come meanwhile.
    const keys = [...this.#waiting.keys()];
    for (const key of keys) {
      const value = this.#waiting.get(key);
      if (value === undefined) continue;
      if (this.#clock.now() > this.#until) return false;
      this.#waiting.delete(key);
      this.#writing = { key, value };
      try {
        await write(key, value);
      } catch (error) {
        log.warn(`${what} could not be written`, { key, error });
        if (isRefused(error)) continue;
        const later = this.#waiting.get(key);
        // Behind the others, which it must not hold up.
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

/** It will be so each time. */
const isRefused = (error: unknown): boolean => error instanceof KubeError && [400, 413, 422].includes(error.code);
