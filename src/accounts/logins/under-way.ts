import { InProgress } from '../../runtime/bounded-cache.ts';
import { Shares } from '../../runtime/shares.ts';

/** Counts attempts under way by key, and queues attempts that must wait until fewer are under way. */
export class UnderWay {
  readonly #counts = new Shares('logins_in_progress');
  readonly #waiting = new InProgress<Retry[]>('logins_waiting');

  count(key: string): number {
    return this.#counts.count(key);
  }

  add(keys: readonly string[], count: number): void {
    this.#counts.add(keys, count);
  }

  remove(keys: readonly string[], count: number): void {
    this.#counts.add(keys, -count);
    for (const key of keys) this.#retry(key);
  }

  /**
   * Calls `retry` when fewer attempts with this key are under way. Retries run in the order in which `wait` was called.
   */
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

/** Retries an attempt. Returns the key for which the attempt still waits, or undefined if it no longer waits. */
type Retry = () => string | undefined;
