import { setImmediate as immediate } from 'node:timers/promises';

/** Milliseconds of work after which other tasks get a turn. */
const sliceTime = 2;

/**
 * Promise of the last turn. Turns are granted one at a time, in the order of the requests. Many long tasks therefore
 * delay other tasks no more than a single long task does.
 */
let lastTurn: Promise<unknown> = Promise.resolve();

function turn(): Promise<unknown> {
  lastTurn = lastTurn.then(() => immediate());
  return lastTurn;
}

/**
 * Caller of long work, such as a request. `signal` is read, and therefore created, only if the work takes longer than a
 * slice.
 */
export interface SignalSource {
  readonly signal: AbortSignal;
}

/** Divides long work on the event loop into slices: `if (slice.isOver) await slice.next();` */
export class Slice {
  readonly #caller: SignalSource | undefined;
  #start = performance.now();

  /** `caller`: the work is abandoned when the caller's signal is aborted. */
  constructor(caller?: SignalSource) {
    this.#caller = caller;
  }

  get isOver(): boolean {
    return performance.now() - this.#start >= sliceTime;
  }

  /** Yields to other tasks. Throws the signal's reason if the signal is aborted in the meantime. */
  async next(): Promise<void> {
    await turn();
    this.#caller?.signal.throwIfAborted();
    this.#start = performance.now();
  }
}

/**
 * Approximate milliseconds between two checks of the clock. A check costs as much as a quick visit, so the clock is not
 * checked at every visit.
 */
const checkInterval = 0.2;
/** Maximum visits between two checks. */
const maxUnchecked = 64;

/** Visits the items in order, in slices, until `visit` returns false. */
export async function visitInSlices<T>(
  items: Iterable<T>,
  caller: SignalSource,
  visit: (item: T) => unknown,
): Promise<void> {
  const slice = new Slice(caller);
  let unchecked = 0;
  let allowed = 1;
  let checkedAt = performance.now();
  for (const item of items) {
    if (unchecked === allowed) {
      if (slice.isOver) await slice.next();
      const now = performance.now();
      allowed = Math.max(1, Math.min(maxUnchecked, Math.floor((checkInterval * unchecked) / (now - checkedAt))));
      checkedAt = now;
      unchecked = 0;
    }
    if (visit(item) === false) return;
    unchecked += 1;
  }
}

/** Items that are sorted or merged between two checks of the clock. */
const runLength = 64;

/** Sorts like `toSorted`, in slices: a merge sort that starts with short sorted runs. */
export async function sortInSlices<T>(
  items: readonly T[],
  compare: (a: T, b: T) => number,
  caller: SignalSource,
): Promise<T[]> {
  const slice = new Slice(caller);
  let runs: T[][] = [];
  for (let start = 0; start < items.length; start += runLength) {
    if (slice.isOver) await slice.next();
    runs.push(items.slice(start, start + runLength).toSorted(compare));
  }
  while (runs.length > 1) {
    const merged: T[][] = [];
    for (let i = 0; i < runs.length; i += 2) {
      const [first = [], second = []] = [runs[i], runs[i + 1]];
      const run: T[] = [];
      let [a, b] = [0, 0];
      while (a < first.length && b < second.length) {
        if (run.length % runLength === 0 && slice.isOver) await slice.next();
        const [left, right] = [first[a] as T, second[b] as T];
        if (compare(right, left) < 0) {
          run.push(right);
          b += 1;
        } else {
          run.push(left);
          a += 1;
        }
      }
      merged.push(run.concat(first.slice(a), second.slice(b)));
    }
    runs = merged;
  }
  return runs[0] ?? [];
}
