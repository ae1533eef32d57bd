import { InProgress } from './bounded-cache.ts';
import { tooManyRequests, type StatusError } from './errors.ts';
import { keysOf, Shares, type ShareHolder } from './shares.ts';

export interface SlotsOptions {
  /** Purpose of the slots, in the plural. Refusals begin with it. */
  readonly what: string;
  readonly total: number;
  /** Slots that one user or address may hold; `total` unless stated. */
  readonly perUser?: number;
  /** Without a queue nothing waits. */
  readonly queue?: QueueOptions;
}

interface QueueOptions {
  readonly total: number;
  readonly perUser: number;
  /** Milliseconds until a request that waits is refused. */
  readonly timeout: number;
}

interface Waiting {
  readonly start: () => void;
  readonly refuse: () => void;
}

interface Line {
  readonly holder: ShareHolder;
  readonly waiting: Set<Waiting>;
}

/**
 * A limited resource that users share. A user or address holds at most `perUser` slots. Requests that wait are in one line per user or
 * address, and the lines take turns, so a long line delays only its own holder. When the queue is full the longest line of the network
 * with most requests loses its last one. The libraries p-queue and p-limit have one queue for all users, and nothing is refused.
 */
export class Slots {
  readonly #options: Required<Omit<SlotsOptions, 'queue'>> & Pick<SlotsOptions, 'queue'>;
  readonly #held = new Shares('slots_held');
  readonly #awaited = new Shares('slots_awaited');
  /** While a slot is free, every holder with a line has a full share. */
  readonly #lines = new InProgress<Line>('slots_lines');
  #used = 0;
  #waiting = 0;

  constructor(options: SlotsOptions) {
    this.#options = { perUser: options.total, ...options };
  }

  /** Returns the function that frees the slots. Throws 429 at once when there are not as many as `count`. */
  take(holder: ShareHolder, count = 1): () => void {
    if (!this.#hasRoom(holder, count)) throw this.#noSlot(holder, count);
    return this.#grant(holder, count);
  }

  /** The same for one slot, after its turn in the queue. Rejects with 429 and with the reason of the signal. */
  async wait(holder: ShareHolder, signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    const { queue } = this.#options;
    if (queue === undefined || this.#hasRoom(holder, 1)) return this.take(holder);
    const full = this.#awaited.exceeded(holder, 1, queue.perUser);
    if (full !== undefined) throw this.#refusal(`your share of ${full.share} waiting requests is in use`);
    return await this.#enqueue(holder, queue, signal);
  }

  /** Runs `work` with a slot. */
  async run<T>(holder: ShareHolder, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const free = await this.wait(holder, signal);
    try {
      return await work();
    } finally {
      free();
    }
  }

  #hasRoom(holder: ShareHolder, count: number): boolean {
    const { total, perUser } = this.#options;
    return this.#used + count <= total && this.#held.exceeded(holder, count, perUser) === undefined;
  }

  #grant(holder: ShareHolder, count: number): () => void {
    this.#used += count;
    this.#held.add(holder, count);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#used -= count;
      this.#held.add(holder, -count);
      this.#startNext();
    };
  }

  #enqueue(holder: ShareHolder, queue: QueueOptions, signal?: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const [key] = keysOf(holder);
      const line = this.#lines.get(key) ?? { holder, waiting: new Set() };
      const leave = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', giveUp);
        line.waiting.delete(waiting);
        if (line.waiting.size === 0) this.#lines.delete(key);
        this.#awaited.add(holder, -1);
        this.#waiting -= 1;
      };
      const fail = (error: Error): void => {
        leave();
        reject(error);
      };
      const giveUp = (): void => fail(signal?.reason as Error);
      const waiting: Waiting = {
        start: () => {
          leave();
          resolve(this.#grant(holder, 1));
        },
        refuse: () => fail(this.#refusal(`${queue.total} requests wait already, the limit of this server`)),
      };
      const timer = setTimeout(() => fail(this.#noSlot(holder, 1)), queue.timeout);
      signal?.addEventListener('abort', giveUp, { once: true });
      line.waiting.add(waiting);
      this.#lines.set(key, line);
      this.#awaited.add(holder, 1);
      this.#waiting += 1;
      if (this.#waiting > queue.total) [...this.#longest().waiting].at(-1)?.refuse();
    });
  }

  #startNext(): void {
    for (const [, line] of this.#lines) {
      const { holder, waiting } = line;
      if (!this.#hasRoom(holder, 1)) continue;
      // Its next turn comes after those of all others.
      const [key] = keysOf(holder);
      this.#lines.delete(key);
      this.#lines.set(key, line);
      const [first] = waiting;
      first?.start();
      return;
    }
  }

  /**
   * Returns the longest line of the network in which most requests wait, and of several the one that started last. A network can
   * have a line for each of its 65,536 hosts.
   */
  #longest(): Line {
    const lines = [...this.#lines].map(([, line]) => ({ line, ofNetwork: this.#awaited.countOfWidest(line.holder) }));
    return lines.reduce((longest, one) => {
      const more = one.ofNetwork - longest.ofNetwork || one.line.waiting.size - longest.line.waiting.size;
      return more >= 0 ? one : longest;
    }).line;
  }

  #noSlot(holder: ShareHolder, count: number): StatusError {
    const { total, perUser } = this.#options;
    const full = this.#held.exceeded(holder, count, perUser);
    return this.#refusal(
      full === undefined ? `all ${total} of this server are in use` : `your share of ${full.share} is in use`,
    );
  }

  #refusal(why: string): StatusError {
    return tooManyRequests(`${this.#options.what}: ${why}; please try again later`, 1);
  }
}
