import { InProgress } from './bounded-cache.ts';
import { tooManyRequests, type StatusError } from './errors.ts';

export interface SlotsOptions {
  /** Purpose of the slots, in the plural. Refusals begin with it. */
  readonly what: string;
  readonly total: number;
  /** Slots that one user, or one address, may hold; `total` unless stated. */
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

/**
 * A limited resource that users share. A user holds at most `perUser` slots. Requests that wait are in one line per user, and the lines
 * take turns, so a long line delays only its own user. When the queue is full the longest line loses its last request.
 */
export class Slots {
  readonly #options: Required<Omit<SlotsOptions, 'queue'>> & Pick<SlotsOptions, 'queue'>;
  readonly #held = new InProgress<number>('slots_held');
  /** While a slot is free, every user in a line holds `perUser` slots. */
  readonly #lines = new InProgress<Set<Waiting>>('slots_awaited');
  #used = 0;
  #waiting = 0;

  constructor(options: SlotsOptions) {
    this.#options = { perUser: options.total, ...options };
  }

  /** Returns the function that frees the slots. Throws 429 at once when there are not as many as `count`. */
  take(user: string, count = 1): () => void {
    if (!this.#hasRoom(user, count)) throw this.#noSlot(user, count);
    return this.#grant(user, count);
  }

  /** The same for one slot, after its turn in the queue. Rejects with 429 and with the reason of the signal. */
  async wait(user: string, signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    const { queue } = this.#options;
    if (queue === undefined || this.#hasRoom(user, 1)) return this.take(user);
    if ((this.#lines.get(user)?.size ?? 0) >= queue.perUser)
      throw this.#refusal(`your share of ${queue.perUser} waiting requests is in use`);
    return await this.#enqueue(user, queue, signal);
  }

  /** Runs `work` with a slot. */
  async run<T>(user: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const free = await this.wait(user, signal);
    try {
      return await work();
    } finally {
      free();
    }
  }

  #hasRoom(user: string, count: number): boolean {
    const { total, perUser } = this.#options;
    return this.#used + count <= total && this.#heldBy(user) + count <= perUser;
  }

  #heldBy(user: string): number {
    return this.#held.get(user) ?? 0;
  }

  #grant(user: string, count: number): () => void {
    this.#used += count;
    this.#held.set(user, this.#heldBy(user) + count);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#used -= count;
      const left = this.#heldBy(user) - count;
      if (left === 0) this.#held.delete(user);
      else this.#held.set(user, left);
      this.#startNext();
    };
  }

  #enqueue(user: string, queue: QueueOptions, signal?: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const line = this.#lines.get(user) ?? new Set();
      const leave = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', giveUp);
        line.delete(waiting);
        if (line.size === 0) this.#lines.delete(user);
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
          resolve(this.#grant(user, 1));
        },
        refuse: () => fail(this.#refusal(`${queue.total} requests wait already, the limit of this server`)),
      };
      const timer = setTimeout(() => fail(this.#noSlot(user, 1)), queue.timeout);
      signal?.addEventListener('abort', giveUp, { once: true });
      this.#lines.set(user, line.add(waiting));
      this.#waiting += 1;
      if (this.#waiting > queue.total) [...this.#longest()].at(-1)?.refuse();
    });
  }

  #startNext(): void {
    for (const [user, line] of this.#lines) {
      if (!this.#hasRoom(user, 1)) continue;
      // Its next turn comes after those of all others.
      this.#lines.delete(user);
      this.#lines.set(user, line);
      const [first] = line;
      first?.start();
      return;
    }
  }

  /** Returns the line that started last among the longest. */
  #longest(): ReadonlySet<Waiting> {
    return [...this.#lines]
      .map(([, line]) => line)
      .reduce((longest, line) => (line.size >= longest.size ? line : longest));
  }

  #noSlot(user: string, count: number): StatusError {
    const { total, perUser } = this.#options;
    return this.#refusal(
      this.#heldBy(user) + count > perUser
        ? `your share of ${perUser} is in use`
        : `all ${total} of this server are in use`,
    );
  }

  #refusal(why: string): StatusError {
    return tooManyRequests(`${this.#options.what}: ${why}; please try again later`, 1);
  }
}
