export interface RunsOptions<Item, Run> {
  readonly sizeOf: (item: Item) => number;
  /** A run ends with the item that makes it so large. */
  readonly size: number;
  readonly make: (items: readonly Item[]) => Run;
}

interface Kept<Item, Run> {
  readonly items: readonly Item[];
  readonly run: Run;
}

/**
 * Sequences cut into runs, of each of which something is made. A run stays what it is for as long as its items are the same and follow
 * each other, whatever changes before and behind them.
 */
export class Runs<Item extends object, Run> {
  readonly #options: RunsOptions<Item, Run>;
  /** By their first item. */
  readonly #kept = new WeakMap<Item, Kept<Item, Run>>();

  constructor(options: RunsOptions<Item, Run>) {
    this.#options = options;
  }

  /** What is made of the runs of the first `end` items. */
  of(items: readonly Item[], end = items.length): Run[] {
    const runs: Run[] = [];
    for (let start = 0; start < end;) {
      const kept = this.#known(items, start, end) ?? this.#begin(items.slice(start, this.#endOf(items, start, end)));
      runs.push(kept.run);
      start += kept.items.length;
    }
    return runs;
  }

  /** The run that begins there, if it is still what it was. */
  #known(items: readonly Item[], start: number, end: number): Kept<Item, Run> | undefined {
    const kept = this.#kept.get(items[start] as Item);
    if (kept === undefined || start + kept.items.length > end) return undefined;
    for (let index = 1; index < kept.items.length; index += 1)
      if (kept.items[index] !== items[start + index]) return undefined;
    return kept;
  }

  #begin(items: readonly Item[]): Kept<Item, Run> {
    const kept = { items, run: this.#options.make(items) };
    this.#kept.set(items[0] as Item, kept);
    return kept;
  }

  /** A run ends where it is large enough, or where one begins that may still be what it was. */
  #endOf(items: readonly Item[], start: number, end: number): number {
    const { sizeOf, size: enough } = this.#options;
    let size = 0;
    let at = start;
    for (; at < end; at += 1) {
      const item = items[at] as Item;
      if (size >= enough || (size >= enough / 2 && this.#kept.has(item))) break;
      size += sizeOf(item);
    }
    return at;
  }
}
