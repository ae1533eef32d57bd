/**
 * Selections of lists. A selection is cached in its order and updated by every change, so that the next identical
 * request needs no search.
 */
import { BoundedCache, InProgress } from '../../runtime/bounded-cache.ts';
import type { Change } from './history.ts';
import { Indexes, type IndexedValues, type IndexSource } from './indexes.ts';
import { byName, follow, stateAfter, type Compare } from './order.ts';
import { sortInSlices, visitInSlices, type SignalSource } from '../../runtime/slice.ts';
import type { StoredObject } from './stored-object.ts';

/** Condition on objects. The condition must be deterministic. */
export interface ObjectFilter<F> {
  (object: StoredObject<F>): boolean;
  /** Full description of the condition. A selection is cached only if all its filters have a key. */
  readonly key?: string;
  /** All objects that pass have one of these values in the index. */
  readonly indexed?: IndexedValues;
  /** True if the filter searches the bytes of the object, which is slower than all other filters. */
  readonly isLookUp?: true;
}

export interface ObjectOrder<F> {
  /** Full description of the order. */
  readonly key: string;
  readonly compare: Compare<F>;
  /** Sorts faster than with `compare`, with the same result. */
  readonly sort?: (objects: readonly Stored[], waiting: SignalSource) => Promise<Stored[]>;
}

/**
 * Orders by a value of each object, then by name. Computes each value once per sort, because an object memoizes only
 * few values.
 */
export function orderByValue<V>(
  key: string,
  find: (object: Stored) => V,
  compareValues: (a: V, b: V) => number,
): ObjectOrder<unknown> {
  return {
    key,
    compare: (a, b) => compareValues(find(a), find(b)) || byName(a, b),
    async sort(objects, waiting) {
      const rows: { readonly object: Stored; readonly value: V }[] = [];
      await visitInSlices(objects, waiting, (object) => {
        rows.push({ object, value: find(object) });
      });
      const compare = (a: (typeof rows)[0], b: (typeof rows)[0]): number =>
        compareValues(a.value, b.value) || byName(a.object, b.object);
      return (await sortInSlices(rows, compare, waiting)).map(({ object }) => object);
    },
  };
}

type Stored = StoredObject<unknown>;

/**
 * Limits per store. In addition, all selections of a store together have at most four times as many entries as the
 * store has objects.
 */
const selections = {
  name: 'selections',
  maxEntries: 64,
  maxBytes: 64 * 1024 * 1024,
  ttl: 3_600_000,
  sizeOf: ({ objects }: Selection) => pointerSize * objects.length,
};
const pointerSize = 8;
const keyBytes = 8 * 1024;
const maxKeyLength = 1024;
/** Selections that visited at most this many objects are not cached. */
const minVisited = 128;
/** Maximum filters of all cached selections that search the bytes of each changed object. */
const maxLookUps = 64;

interface Selection {
  readonly passes: (object: Stored) => boolean;
  readonly compare: Compare<unknown>;
  readonly objects: Stored[];
  /** Number of filters that search the bytes of an object. */
  readonly lookUps: number;
}

/** Combines conditions. Returns a single condition unchanged, because a wrapper would be called for every object. */
export function all<T>(conditions: readonly ((object: T) => boolean)[]): (object: T) => boolean {
  const [first, second] = conditions;
  if (first === undefined) return () => true;
  if (second === undefined) return first;
  return (object) => {
    for (const holds of conditions) if (!holds(object)) return false;
    return true;
  };
}

function followChange({ passes, compare, objects }: Selection, change: Change<unknown>): void {
  const { previous } = change;
  const after = stateAfter(change);
  follow(
    objects,
    compare,
    previous !== undefined && passes(previous) ? previous : undefined,
    after !== undefined && passes(after) ? after : undefined,
  );
}

/** Store from which selections are made. */
export interface SelectionSource extends IndexSource {
  readonly size: number;
  /** Returns the objects in an order that the store maintains; undefined for other orders. */
  ordered(key: string): readonly Stored[] | undefined;
}

export class Selections {
  readonly #source: SelectionSource;
  readonly #cached = new BoundedCache<Selection>(selections);
  readonly #inProgress = new InProgress<Promise<void>>('selections_in_progress');
  readonly #indexes: Indexes;

  constructor(source: SelectionSource) {
    this.#source = source;
    this.#indexes = new Indexes(source);
  }

  /**
   * Calls `use` with the objects that pass all filters, in the given order and as they are at that moment. The array is
   * live. Throws the signal's reason if the signal is aborted.
   */
  async select<T>(
    filters: readonly ObjectFilter<unknown>[],
    order: ObjectOrder<unknown>,
    waiting: SignalSource,
    use: (objects: readonly Stored[]) => T,
  ): Promise<T> {
    const key = keyOf(filters, order);
    for (;;) {
      if (key === undefined) break;
      const cached = this.#cached.get(key);
      if (cached !== undefined) return use(cached.objects);
      const inProgress = this.#inProgress.get(key);
      if (inProgress === undefined) break;
      // Concurrent identical requests wait for the first request.
      await inProgress;
      waiting.signal.throwIfAborted();
    }
    const result = this.#make(filters, order, waiting, (selection, visited) => {
      if (key !== undefined && visited > minVisited) this.#cache(key, selection);
      // Marks the order as used, so that the new selection does not evict it.
      this.#ordered(order);
      return use(selection.objects);
    });
    if (key !== undefined) {
      const settled = result.then(
        () => undefined,
        () => undefined,
      );
      this.#inProgress.set(key, settled);
      void settled.then(() => this.#inProgress.delete(key));
    }
    return await result;
  }

  /** Never throws. Drops a selection whose filter or order throws: the next request for it reports the error. */
  change(change: Change<unknown>): void {
    let bytes = 0;
    let lookUps = 0;
    // The cache knows only the sizes that the selections had when they were added.
    this.#cached.retain((selection) => {
      if (lookUps + selection.lookUps > maxLookUps) return false;
      lookUps += selection.lookUps;
      try {
        followChange(selection, change);
      } catch {
        return false;
      }
      bytes += pointerSize * selection.objects.length;
      return bytes <= this.#maxBytes;
    });
    this.#indexes.change(change);
  }

  /** Removes all selections and indexes. */
  clear(): void {
    this.#cached.clear();
    this.#indexes.clear();
  }

  /** Calls `use` synchronously after the last change is applied. */
  async #make<T>(
    filters: readonly ObjectFilter<unknown>[],
    order: ObjectOrder<unknown>,
    waiting: SignalSource,
    use: (selection: Selection, visited: number) => T,
  ): Promise<T> {
    const source = this.#source;
    const passes = all(filters);
    const lookUps = filters.filter(({ isLookUp }) => isLookUp).length;
    const { compare, sort = (passed) => sortInSlices(passed, compare, waiting) } = order;
    const indexed = filters.flatMap((filter) => filter.indexed ?? []);
    let orderAll = filters.length > 0;
    for (;;) {
      for (const { index } of indexed) await this.#indexes.ensure(index, waiting);
      // Changes after this position are applied below.
      const { position } = source;
      const narrowed = this.#indexes.candidates(indexed);
      const maintained = this.#ordered(order);
      const ordered = isWorthSorting(narrowed?.length ?? source.size, source.size) ? undefined : maintained;
      const candidates = ordered?.slice() ?? narrowed ?? [...source.all()];
      const passed: Stored[] = [];
      await visitInSlices(candidates, waiting, (object) => {
        if (passes(object)) passed.push(object);
      });
      if (ordered === undefined && orderAll && passed.length > source.size / 2) {
        // Sorts all objects, because other requests with this order can use the result too.
        orderAll = false;
        await this.select([], order, waiting, () => undefined);
        continue;
      }
      const objects = ordered === undefined ? await sort(passed, waiting) : passed;
      const selection = { passes, compare, objects, lookUps };
      const changes = source.changesFrom(position);
      if (changes === undefined) continue;
      for (const change of changes) followChange(selection, change);
      return use(selection, candidates.length);
    }
  }

  /** Returns all objects in the order, if that order is maintained or cached. */
  #ordered(order: ObjectOrder<unknown>): readonly Stored[] | undefined {
    const maintained = this.#source.ordered(order.key);
    if (maintained !== undefined) return maintained;
    const key = keyOf([], order);
    return key === undefined ? undefined : this.#cached.get(key)?.objects;
  }

  #cache(key: string, selection: Selection): void {
    this.#cached.set(key, selection);
    this.#cached.trim(this.#maxBytes);
  }

  get #maxBytes(): number {
    return 4 * pointerSize * this.#source.size + keyBytes;
  }
}

/** Returns false if it is cheaper to filter all objects, which are in order, than to sort the candidates. */
const isWorthSorting = (candidates: number, total: number): boolean => candidates * Math.log2(candidates + 1) < total;

function keyOf(filters: readonly ObjectFilter<unknown>[], { key }: ObjectOrder<unknown>): string | undefined {
  const keys = [key];
  for (const filter of filters) {
    if (filter.key === undefined) return undefined;
    keys.push(filter.key);
  }
  const text = JSON.stringify(keys);
  return text.length > maxKeyLength ? undefined : text;
}
