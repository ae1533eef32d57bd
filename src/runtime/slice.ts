import { setImmediate as immediate } from 'node:timers/promises';

/** Milliseconds of work after which others have their turn. */
const longest = 2;

/** Who waits for a turn comes after all who wait already, and no two have the same turn: many long works are no longer than one. */
let lastTurn: Promise<unknown> = Promise.resolve();

function turn(): Promise<unknown> {
  lastTurn = lastTurn.then(() => immediate());
  return lastTurn;
}

/** Who waits for long work, a request for one: its signal is looked at, and made, only when the work takes longer than a slice. */
export interface WaitingSlice {
  readonly signal: AbortSignal;
}

/** Long work on the event loop, done in slices: `if (slice.isOver) await slice.next();` */
export class Slice {
  readonly #waiting: WaitingSlice | undefined;
  #begun = performance.now();

  /** `waiting`: for whom the work is, as long as it is wanted. */
  constructor(waiting?: WaitingSlice) {
    this.#waiting = waiting;
  }

  get isOver(): boolean {
    return performance.now() - this.#begun >= longest;
  }

  /** Gives way to others. Throws the signal's reason when that is aborted meanwhile. */
  async next(): Promise<void> {
    await turn();
    this.#waiting?.signal.throwIfAborted();
    this.#begun = performance.now();
  }
}

/** A look at the clock costs as much as a quick visit: it is taken about so often, in milliseconds, but after so many visits. */
const lookInterval = 0.2;
const maxUnwatched = 64;

/** Visits the items in their order, in slices, until `visit` returns false. */
export async function visitInSlices<T>(
  items: Iterable<T>,
  waiting: WaitingSlice,
  visit: (item: T) => unknown,
): Promise<void> {
  const slice = new Slice(waiting);
  let unwatched = 0;
  let allowed = 1;
  let looked = performance.now();
  for (const item of items) {
    if (unwatched === allowed) {
      if (slice.isOver) await slice.next();
      const now = performance.now();
      allowed = Math.max(1, Math.min(maxUnwatched, Math.floor((lookInterval * unwatched) / (now - looked))));
      looked = now;
      unwatched = 0;
    }
    if (visit(item) === false) return;
    unwatched += 1;
  }
}

/** So many are sorted, or taken over from two sorted rows, between two looks at the clock. */
const run = 64;

/** As `toSorted` would, in slices. */
export async function sortInSlices<T>(
  items: readonly T[],
  compare: (a: T, b: T) => number,
  waiting: WaitingSlice,
): Promise<T[]> {
  const slice = new Slice(waiting);
  let rows: T[][] = [];
  for (let start = 0; start < items.length; start += run) {
    if (slice.isOver) await slice.next();
    rows.push(items.slice(start, start + run).toSorted(compare));
  }
  while (rows.length > 1) {
    const merged: T[][] = [];
    for (let i = 0; i < rows.length; i += 2) {
      const [first = [], second = []] = [rows[i], rows[i + 1]];
      const row: T[] = [];
      let [a, b] = [0, 0];
      while (a < first.length && b < second.length) {
        if (row.length % run === 0 && slice.isOver) await slice.next();
        const [left, right] = [first[a] as T, second[b] as T];
        if (compare(right, left) < 0) {
          row.push(right);
          b += 1;
        } else {
          row.push(left);
          a += 1;
        }
      }
      merged.push(row.concat(first.slice(a), second.slice(b)));
    }
    rows = merged;
  }
  return rows[0] ?? [];
}
