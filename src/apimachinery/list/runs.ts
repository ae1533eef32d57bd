export interface RunsOptions<Item, Run> {
  readonly sizeOf: (item: Item) => number;
  /** Minimum size of a run. The item that reaches this size is the last item of the run. */
  readonly size: number;
  readonly make: (items: readonly Item[]) => Run;
}

interface CachedRun<Item, Run> {
  readonly items: readonly Item[];
  readonly run: Run;
}

/**
 * Cuts sequences of items into runs and caches the result of `make` for each run. A run stays cached as long as its
 * items are unchanged and consecutive, regardless of changes before and after them.
 */
export class Runs<Item extends object, Run> {
  readonly #options: RunsOptions<Item, Run>;
  /** Runs by their first item. */
  readonly #cached = new WeakMap<Item, CachedRun<Item, Run>>();

  constructor(options: RunsOptions<Item, Run>) {
    this.#options = options;
  }

  /** Returns the results for the runs of the first `end` items. */
  of(items: readonly Item[], end = items.length): Run[] {
    const runs: Run[] = [];
    for (let start = 0; start < end;) {
      const cached = this.#find(items, start, end) ?? this.#add(items.slice(start, this.#endOf(items, start, end)));
      runs.push(cached.run);
      start += cached.items.length;
    }
    return runs;
  }

  /** Returns the cached run that begins at `start`, if its items are unchanged. */
  #find(items: readonly Item[], start: number, end: number): CachedRun<Item, Run> | undefined {
    const cached = this.#cached.get(items[start] as Item);
    if (cached === undefined || start + cached.items.length > end) return undefined;
    for (let index = 1; index < cached.items.length; index += 1)
      if (cached.items[index] !== items[start + index]) return undefined;
    return cached;
  }

  #add(items: readonly Item[]): CachedRun<Item, Run> {
    const cached = { items, run: this.#options.make(items) };
    this.#cached.set(items[0] as Item, cached);
    return cached;
  }

  /**
   * Returns the index after the last item of a new run. The run ends when it is large enough, or before an item with
   * which a cached run starts.
   */
  #endOf(items: readonly Item[], start: number, end: number): number {
    const { sizeOf, size: targetSize } = this.#options;
    let size = 0;
    let at = start;
    for (; at < end; at += 1) {
      const item = items[at] as Item;
      if (size >= targetSize || (size >= targetSize / 2 && this.#cached.has(item))) break;
      size += sizeOf(item);
    }
    return at;
  }
}
