import { InProgress } from './bounded-cache.ts';
import { tooManyRequests, type StatusError } from './errors.ts';
import { keysOf, Shares, type ShareHolder } from './shares.ts';

export interface SlotsOptions {
  /** Purpose of the slots, in the plural. Refusal messages begin with this text. */
  readonly what: string;
  readonly total: number;
  /** Maximum slots per user or address. Default: `total`. */
  readonly perUser?: number;
  /** Limits of the queue. Without a queue, `wait` fails immediately when no slot is free. */
  readonly queue?: QueueOptions;
}

interface QueueOptions {
  readonly total: number;
  readonly perUser: number;
  /** Milliseconds that a request can wait before it is refused. */
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
 * Slots of a limited resource, shared fairly. Each user or address holds at most `perUser` slots and has its own line
 * of waiting requests. The lines are served in turn, so a long line delays only its own holder. When the queue is over
 * its limit, the network with the most waiting requests loses the last request of its longest line. p-queue and p-limit
 * are not used, because they have one queue for all users and refuse no request.
 */
export class Slots {
  readonly #options: Required<Omit<SlotsOptions, 'queue'>> & Pick<SlotsOptions, 'queue'>;
  readonly #held = new Shares('slots_held');
  readonly #awaited = new Shares('slots_awaited');
  /** Invariant: while a slot is free, every holder with a line has used its whole share. */
  readonly #lines = new InProgress<Line>('slots_lines');
  #used = 0;
  #waiting = 0;

  constructor(options: SlotsOptions) {
    this.#options = { perUser: options.total, ...options };
  }

  /** Requests that wait for a slot. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Takes `count` slots and returns the function that frees them. Throws 429 if fewer are free. */
  take(holder: ShareHolder, count = 1): () => void {
    if (!this.#hasRoom(holder, count)) throw this.#noSlot(holder, count);
    return this.#grant(holder, count);
  }

  /** Waits for one slot and returns the function that frees it. Rejects with 429, or with the reason of the signal. */
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
        refuse: () => fail(this.#refusal(`the server's limit of ${queue.total} waiting requests is reached`)),
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
      // The next turn of this line comes after the turns of all other lines.
      const [key] = keysOf(holder);
      this.#lines.delete(key);
      this.#lines.set(key, line);
      const [first] = waiting;
      first?.start();
      return;
    }
  }

  /**
   * Returns the longest line of the network with the most waiting requests; the newest line if several are equally
   * long. A network can have a line for each of its 65,536 hosts.
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
      full === undefined ? `the server's total of ${total} is in use` : `your share of ${full.share} is in use`,
    );
  }

  #refusal(problem: string): StatusError {
    return tooManyRequests(`${this.#options.what}: ${problem}; please try again later`, 1);
  }
}

/**
 * Slots without a total limit and without a queue. Each `take` passes the limit per user or address, because the
 * configuration can change it.
 */
export class HolderSlots {
  readonly #what: string;
  readonly #setting: string | undefined;
  readonly #taken = new Shares('places_taken');

  /** `setting`: the configuration key of the limit, if any. */
  constructor(what: string, setting?: string) {
    this.#what = what;
    this.#setting = setting;
  }

  /**
   * Takes a slot and returns the function that frees it. Throws 429. The message contains the first word of the key
   * that has no free slot.
   */
  take(holder: ShareHolder, share: number): () => void {
    const keys = keysOf(holder);
    const full = this.#taken.exceeded(keys, 1, share);
    if (full !== undefined)
      throw tooManyInProgress(`${full.share} ${this.#what} of this ${full.key.split(' ')[0]}`, this.#setting);
    this.#taken.add(keys, 1);
    return () => this.#taken.add(keys, -1);
  }
}

/** Returns 429. `setting`: the configuration key of the limit, if any. */
export const tooManyInProgress = (what: string, setting?: string): StatusError =>
  tooManyRequests(
    `${what} are already in progress${setting === undefined ? '' : ` (${setting})`}; please try again later`,
    1,
  );
