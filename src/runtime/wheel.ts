import { Slice } from './slice.ts';

/** Milliseconds; nothing comes before its time, and little later than so much after it. */
const step = 100;

/** What many entries have to do at some time each, done by one timer. Times are those of `performance.now()`. */
export class Wheel<T> {
  readonly #call: (entry: T) => void;
  /** By the step at whose end they are due. */
  readonly #slots = new Map<number, Set<T>>();
  #timer: NodeJS.Timeout | undefined;
  #done = 0;

  constructor(call: (entry: T) => void) {
    this.#call = call;
  }

  /** Answers where it stands. */
  put(entry: T, time: number): number {
    if (this.#timer === undefined) {
      this.#done = Math.floor(performance.now() / step);
      this.#timer = setInterval(() => void this.#turn(), step);
    }
    const at = Math.max(Math.ceil(time / step), this.#done + 1);
    let slot = this.#slots.get(at);
    if (slot === undefined) this.#slots.set(at, (slot = new Set()));
    slot.add(entry);
    return at;
  }

  /** It may be called once more if its time has come already. */
  remove(entry: T, at: number): void {
    const slot = this.#slots.get(at);
    slot?.delete(entry);
    if (slot?.size === 0) this.#slots.delete(at);
    this.#rest();
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
    this.#rest();
  }

  #rest(): void {
    if (this.#slots.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
