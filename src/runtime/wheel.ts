import { Slice } from './slice.ts';
import { withoutSpan } from './tracing.ts';

/** Resolution in milliseconds. An entry is never called early, and at most about one step late. */
const step = 100;

/**
 * Timer wheel, which calls many entries at their own times with a single timer. Times are values of
 * `performance.now()`.
 */
export class Wheel<T> {
  readonly #call: (entry: T) => void;
  /** Entries by the step at whose end they are due. */
  readonly #slots = new Map<number, Set<T>>();
  #timer: NodeJS.Timeout | undefined;
  #done = 0;

  constructor(call: (entry: T) => void) {
    this.#call = call;
  }

  /** Schedules the entry and returns its slot, which `remove` needs. */
  put(entry: T, time: number): number {
    if (this.#timer === undefined) {
      this.#done = Math.floor(performance.now() / step);
      this.#timer = withoutSpan(() => setInterval(() => void this.#turn(), step));
    }
    const at = Math.max(Math.ceil(time / step), this.#done + 1);
    let slot = this.#slots.get(at);
    if (slot === undefined) this.#slots.set(at, (slot = new Set()));
    slot.add(entry);
    return at;
  }

  /** Unschedules the entry. An entry that is already due may still be called once. */
  remove(entry: T, at: number): void {
    const slot = this.#slots.get(at);
    slot?.delete(entry);
    if (slot?.size === 0) this.#slots.delete(at);
    this.#stopWhenEmpty();
  }

  async #turn(): Promise<void> {
    const slice = new Slice();
    const now = Math.floor(performance.now() / step);
    while (this.#done < now) {
      this.#done += 1;
      const slot = this.#slots.get(this.#done);
      if (slot === undefined) continue;
      this.#slots.delete(this.#done);
      for (const entry of slot) {
        if (slice.isOver) await slice.next();
        this.#call(entry);
      }
    }
    this.#stopWhenEmpty();
  }

  #stopWhenEmpty(): void {
    if (this.#slots.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
