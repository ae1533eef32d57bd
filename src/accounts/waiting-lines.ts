import type { StatusError } from '../errors.ts';

interface WaitingLinesOptions {
  readonly atOnce: number;
  /** In all lines together. */
  readonly mostWaiting: number;
  readonly mostInLine: number;
  /** Milliseconds. */
  readonly longestWait: number;
  /** For whom there is no room, in their own line or in all, or who waits too long. */
  readonly refusal: (why: 'line' | 'all') => StatusError;
}

interface Waiting {
  readonly start: () => void;
  readonly refuse: () => void;
}

/**
 * So much work at once. The rest waits in lines, one a source, that take turns: a long line holds up none but itself, and where
 * there is no more room the longest line loses its last.
 */
export class WaitingLines {
  readonly #options: WaitingLinesOptions;
  readonly #lines = new Map<string, Waiting[]>();
  /** While something waits all places are taken. */
  #free: number;
  #waiting = 0;

  constructor(options: WaitingLinesOptions) {
    this.#options = options;
    this.#free = options.atOnce;
  }

  /** Throws the refusal. */
  async run<T>(source: string, work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await this.#wait(source);
    try {
      return await work();
    } finally {
      this.#giveOn();
    }
  }

  /** Resolves with a place. */
  #wait(source: string): Promise<void> {
    const line = this.#lines.get(source) ?? [];
    if (line.length >= this.#options.mostInLine) return Promise.reject(this.#options.refusal('line'));
    return new Promise((resolve, reject) => {
      const refuse = (): void => {
        clearTimeout(timer);
        this.#leave(source, waiting);
        reject(this.#options.refusal('all'));
      };
      const start = (): void => {
        clearTimeout(timer);
        this.#leave(source, waiting);
        resolve();
      };
      const waiting = { start, refuse };
      const timer = setTimeout(refuse, this.#options.longestWait);
      this.#lines.set(source, line);
      line.push(waiting);
      this.#waiting += 1;
      if (this.#waiting > this.#options.mostWaiting) this.#longest().at(-1)?.refuse();
    });
  }

  #giveOn(): void {
    const [next] = this.#lines;
    if (next === undefined) {
      this.#free += 1;
      return;
    }
    const [source, line] = next;
    // Its turn comes again after those of all others.
    this.#lines.delete(source);
    this.#lines.set(source, line);
    line[0]?.start();
  }

  #leave(source: string, waiting: Waiting): void {
    const left = (this.#lines.get(source) ?? []).filter((one) => one !== waiting);
    if (left.length === 0) this.#lines.delete(source);
    else this.#lines.set(source, left);
    this.#waiting -= 1;
  }

  /** Of lines as long the one that came last. */
  #longest(): readonly Waiting[] {
    return [...this.#lines.values()].reduce((longest, line) => (line.length >= longest.length ? line : longest));
  }
}
