import { setImmediate as immediate } from 'node:timers/promises';

/** Milliseconds of work after which others have their turn. */
const longest = 2;

/** Who waits for a turn comes after all who wait already, and no two have the same turn: many long works are no longer than one. */
let lastTurn: Promise<unknown> = Promise.resolve();

function turn(): Promise<unknown> {
  lastTurn = lastTurn.then(() => immediate());
  return lastTurn;
}

/** Long work on the event loop, done in slices: `if (slice.isOver) await slice.next();` */
export class Slice {
  readonly #signal: AbortSignal | undefined;
  #begun = performance.now();

  /** `signal`: is the work still wanted? */
  constructor(signal?: AbortSignal) {
    this.#signal = signal;
  }

  get isOver(): boolean {
    return performance.now() - this.#begun >= longest;
  }

  /** Gives way to others. Throws the signal's reason when that is aborted meanwhile. */
  async next(): Promise<void> {
    await turn();
    this.#signal?.throwIfAborted();
    this.#begun = performance.now();
  }
}

/** Visits the items in their order, in slices, until `visit` returns false. */
export async function visitInSlices<T>(
  items: Iterable<T>,
  signal: AbortSignal,
  visit: (item: T) => unknown,
): Promise<void> {
  const slice = new Slice(signal);
  for (const item of items) {
    if (slice.isOver) await slice.next();
    if (visit(item) === false) return;
  }
}
