import { InProgress } from './bounded-cache.ts';

/**
 * A question whose answer is true of the time when it was asked: all who want to know at once share it, but nobody gets the answer to
 * one that was asked before they came. At most one is under way and one is waited for.
 */
export function sharedQuestion<T>(ask: () => Promise<T>): () => Promise<T> {
  let asking: Promise<T> | undefined;
  let next: Promise<T> | undefined;
  function question(): Promise<T> {
    if (asking === undefined) {
      asking = ask().finally(() => {
        asking = undefined;
      });
      return asking;
    }
    next ??= asking
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return question();
      });
    return next;
  }
  return question;
}

/** How many attempts are under way under each key, and those that wait until fewer are. */
export class UnderWay {
  readonly #counts: InProgress<number>;
  readonly #waiting: InProgress<Retry[]>;

  /** `name`: of the attempts, in the metrics. */
  constructor(name: string) {
    this.#counts = new InProgress(`${name}_in_progress`);
    this.#waiting = new InProgress(`${name}_waiting`);
  }

  count(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  add(keys: readonly string[], count: number): void {
    for (const key of keys) this.#counts.set(key, this.count(key) + count);
  }

  remove(keys: readonly string[], count: number): void {
    for (const key of keys) {
      const left = this.count(key) - count;
      if (left > 0) this.#counts.set(key, left);
      else this.#counts.delete(key);
    }
    for (const key of keys) this.#retry(key);
  }

  /** Asks `retry` when fewer are under way under this key, those first that came first. */
  wait(key: string, retry: Retry): void {
    const line = this.#waiting.get(key);
    if (line === undefined) this.#waiting.set(key, [retry]);
    else line.push(retry);
  }

  #retry(key: string): void {
    const line = this.#waiting.get(key) ?? [];
    for (let [first] = line; first !== undefined; [first] = line) {
      const next = first();
      if (next === key) return;
      line.shift();
      if (next !== undefined) this.wait(next, first);
    }
    this.#waiting.delete(key);
  }
}

/** The key for which it waits further, if it does. */
type Retry = () => string | undefined;
