import { InProgress } from '../../runtime/bounded-cache.ts';
import { Shares } from '../../runtime/shares.ts';

/** Counts the attempts in progress under each key, and holds those that wait until there are fewer. */
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

  /** Calls `retry` when there are fewer under this key, in the order of the calls. */
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

/** Returns the key that it still waits for; undefined if it waits no longer. */
type Retry = () => string | undefined;
