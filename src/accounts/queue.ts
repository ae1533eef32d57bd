/** Runs tasks with bounded concurrency and a bounded queue; what does not fit is refused at once. */
export class TaskQueue {
  readonly #concurrency: number;
  readonly #longest: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(concurrency: number, longest: number) {
    this.#concurrency = concurrency;
    this.#longest = longest;
  }

  /** Throws what `refusal` makes when the queue is full. */
  async run<T>(task: () => Promise<T>, refusal: () => Error): Promise<T> {
    if (this.#running >= this.#concurrency) {
      if (this.#waiting.length >= this.#longest) throw refusal();
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else this.#running += 1;
    try {
      return await task();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}
