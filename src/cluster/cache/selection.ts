/**
 * What lists select. A selection is kept in its order and follows every change, so that the next who asks the same has it at once,
 * whatever has changed meanwhile.
 */
import { BoundedCache, InProgress } from '../../runtime/bounded-cache.ts';
import type { Change } from './history.ts';
import { byName, follow, stateAfter, type Compare } from './order.ts';
import { sortInSlices, visitInSlices, type WaitingSlice } from '../../runtime/slice.ts';
import type { StoredObject } from './stored-object.ts';

/** One condition that objects have to meet. It must tell the same of an object whenever it is asked. */
export interface ObjectFilter<F> {
  (object: StoredObject<F>): boolean;
  /** What it asks, in full. Without one a selection is made for one request. */
  readonly key?: string;
  /** All objects that pass have one of these values there. */
  readonly within?: { readonly index: IndexName; readonly values: readonly string[] };
  /** It looks for a value in the object's bytes, which takes longer than all other filters. */
  readonly isLookUp?: true;
}

export type IndexName = 'name' | 'namespace' | 'uid' | `label ${string}`;

export interface ObjectOrder<F> {
  /** What it orders by, in full. */
  readonly key: string;
  readonly compare: Compare<F>;
  /** Sorts as `compare` does. */
  readonly sort?: (objects: readonly Stored[], waiting: WaitingSlice) => Promise<Stored[]>;
}

/** By what is found in each object, then by name. A sort looks for it once: an object does not remember much, and others sort too. */
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

/** Limits of one store, whose selections together also refer to at most four times its objects. */
const selections = {
  name: 'selections',
  maxEntries: 64,
  maxBytes: 64 * 1024 * 1024,
  ttl: 3_600_000,
  sizeOf: ({ objects }: Selection) => pointerSize * objects.length,
};
const pointerSize = 8;
const bytesOfKeys = 8 * 1024;
const longestKey = 1024;
/** What is selected from fewer objects is not worth keeping. */
const fewObjects = 128;
const maxIndexes = 32;

type Index = Map<string, Set<Stored>>;

interface Selection {
  readonly passes: (object: Stored) => boolean;
  readonly compare: Compare<unknown>;
  readonly objects: Stored[];
}

/** Do all of these hold? One alone is asked without a detour: this is asked of every object. */
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

function indexChange(index: Index, name: IndexName, change: Change<unknown>): void {
  const { previous } = change;
  const after = stateAfter(change);
  if (previous !== undefined) remove(index, valueIn(previous, name), previous);
  if (after !== undefined) insert(index, valueIn(after, name), after);
}

/** What selections are made from. */
export interface SelectionSource {
  readonly size: number;
  /** Sorted by that order, if it is one that is maintained. */
  ordered(key: string): readonly Stored[] | undefined;
  all(): Iterable<Stored>;
  /** A place in the history, and the changes from there; undefined if they are forgotten. */
  readonly position: number;
  changesFrom(position: number): readonly Change<unknown>[] | undefined;
}

export class Selections {
  readonly #source: SelectionSource;
  readonly #kept = new BoundedCache<Selection>(selections);
  readonly #making = new InProgress<Promise<void>>('selections_in_progress');
  /** The one that was not used for longest is first. */
  readonly #indexes = new Map<IndexName, Index>();
  readonly #indexing = new InProgress<Promise<void>>('indexes_in_progress');

  constructor(source: SelectionSource) {
    this.#source = source;
  }

  /**
   * What passes all filters, in that order, as it is when this resolves: `use` is called with the living array. Throws the signal's
   * reason.
   */
  async select<T>(
    filters: readonly ObjectFilter<unknown>[],
    order: ObjectOrder<unknown>,
    waiting: WaitingSlice,
    use: (objects: readonly Stored[]) => T,
  ): Promise<T> {
    const key = keyOf(filters, order);
    const kept = key === undefined ? undefined : this.#kept.get(key);
    if (kept !== undefined) return use(kept.objects);
    if (key !== undefined) {
      // Many who ask the same at once wait for one to find it.
      const under = this.#making.get(key);
      if (under !== undefined) {
        await under;
        waiting.signal.throwIfAborted();
        const made = this.#kept.get(key);
        if (made !== undefined) return use(made.objects);
      }
    }
    const making = this.#make(filters, order, waiting, (selection, visited) => {
      if (key !== undefined && visited > fewObjects) this.#keep(key, selection);
      // What is kept next must not push out what this was made from.
      this.#ordered(order);
      return use(selection.objects);
    });
    if (key !== undefined) {
      const settled = making.then(
        () => undefined,
        () => undefined,
      );
      this.#making.set(key, settled);
      void settled.then(() => this.#making.delete(key));
    }
    return await making;
  }

  change(change: Change<unknown>): void {
    let bytes = 0;
    // The cache knows only the sizes that the selections had when they were added.
    this.#kept.retain((selection) => {
      followChange(selection, change);
      bytes += pointerSize * selection.objects.length;
      return bytes <= this.#maxBytes;
    });
    for (const [name, index] of this.#indexes) indexChange(index, name, change);
  }

  /** All that was known is past. */
  clear(): void {
    this.#kept.clear();
    this.#indexes.clear();
  }

  /** `use` is called before anything else can change. */
  async #make<T>(
    filters: readonly ObjectFilter<unknown>[],
    order: ObjectOrder<unknown>,
    waiting: WaitingSlice,
    use: (selection: Selection, visited: number) => T,
  ): Promise<T> {
    const source = this.#source;
    const passes = all(filters);
    const { compare, sort = (passed) => sortInSlices(passed, compare, waiting) } = order;
    let orderAll = filters.length > 0;
    for (;;) {
      for (const { within } of filters) if (within !== undefined) await this.#indexed(within.index, waiting);
      // From here on to the look at the changes all is of this moment.
      const { position } = source;
      const narrowed = this.#narrowed(filters);
      const maintained = this.#ordered(order);
      const ordered = isWorthSorting(narrowed?.length ?? source.size, source.size) ? undefined : maintained;
      const candidates = ordered?.slice() ?? narrowed ?? [...source.all()];
      const passed: Stored[] = [];
      await visitInSlices(candidates, waiting, (object) => {
        if (passes(object)) passed.push(object);
      });
      if (ordered === undefined && orderAll && passed.length > source.size / 2) {
        // All in that order serve those too who ask for other parts of them.
        orderAll = false;
        await this.select([], order, waiting, () => undefined);
        continue;
      }
      const objects = ordered === undefined ? await sort(passed, waiting) : passed;
      const selection = { passes, compare, objects };
      const changes = source.changesFrom(position);
      if (changes === undefined) continue;
      for (const change of changes) followChange(selection, change);
      return use(selection, candidates.length);
    }
  }

  /** All objects in that order, if they are at hand. */
  #ordered(order: ObjectOrder<unknown>): readonly Stored[] | undefined {
    const maintained = this.#source.ordered(order.key);
    if (maintained !== undefined) return maintained;
    const key = keyOf([], order);
    return key === undefined ? undefined : this.#kept.get(key)?.objects;
  }

  /** The objects that can pass, as far as an index tells: the fewest that one of them does. */
  #narrowed(filters: readonly ObjectFilter<unknown>[]): Stored[] | undefined {
    let fewest: Set<Stored>[] | undefined;
    let least = Infinity;
    for (const { within } of filters) {
      if (within === undefined) continue;
      const index = this.#indexes.get(within.index);
      // Others may have had it forgotten meanwhile.
      if (index === undefined) continue;
      const sets = [...new Set(within.values)].flatMap((value) => index.get(value) ?? []);
      const size = sets.reduce((sum, set) => sum + set.size, 0);
      if (size >= least) continue;
      least = size;
      fewest = sets;
    }
    return fewest?.flatMap((set) => [...set]);
  }

  /** Sees to it that there is an index, made in slices by one for all who want it. Throws the signal's reason. */
  async #indexed(name: IndexName, waiting: WaitingSlice): Promise<void> {
    for (;;) {
      const index = this.#indexes.get(name);
      if (index !== undefined) {
        // The one that was not used for longest is first.
        this.#indexes.delete(name);
        this.#indexes.set(name, index);
        return;
      }
      const under = this.#indexing.get(name);
      if (under === undefined) {
        const making = this.#makeIndex(name, waiting).finally(() => this.#indexing.delete(name));
        this.#indexing.set(
          name,
          making.catch(() => undefined),
        );
        await making;
      } else {
        await under;
        waiting.signal.throwIfAborted();
      }
    }
  }

  async #makeIndex(name: IndexName, waiting: WaitingSlice): Promise<void> {
    const { position } = this.#source;
    const index: Index = new Map();
    await visitInSlices([...this.#source.all()], waiting, (object) => {
      insert(index, valueIn(object, name), object);
    });
    const changes = this.#source.changesFrom(position);
    if (changes === undefined) return;
    for (const change of changes) indexChange(index, name, change);
    this.#indexes.set(name, index);
    for (const [first] of this.#indexes) {
      if (this.#indexes.size <= maxIndexes) break;
      this.#indexes.delete(first);
    }
  }

  #keep(key: string, selection: Selection): void {
    this.#kept.set(key, selection);
    this.#kept.trim(this.#maxBytes);
  }

  get #maxBytes(): number {
    return 4 * pointerSize * this.#source.size + bytesOfKeys;
  }
}

/** Or is it cheaper to look through all that is in order already? */
const isWorthSorting = (some: number, present: number): boolean => some * Math.log2(some + 1) < present;

function keyOf(filters: readonly ObjectFilter<unknown>[], { key }: ObjectOrder<unknown>): string | undefined {
  const keys = [key];
  for (const filter of filters) {
    if (filter.key === undefined) return undefined;
    keys.push(filter.key);
  }
  const text = JSON.stringify(keys);
  return text.length > longestKey ? undefined : text;
}

function valueIn(object: Stored, index: IndexName): string | undefined {
  if (index === 'name' || index === 'namespace' || index === 'uid') return object[index];
  return labelOf(object, index.slice('label '.length));
}

/** Undefined if there is none; never what every object of JavaScript has. */
export function labelOf({ labels }: StoredObject<unknown>, key: string): string | undefined {
  const value: unknown = labels[key];
  return typeof value === 'string' ? value : undefined;
}

function insert(index: Index, value: string | undefined, object: Stored): void {
  if (value === undefined) return;
  const set = index.get(value);
  if (set === undefined) index.set(value, new Set([object]));
  else set.add(object);
}

function remove(index: Index, value: string | undefined, object: Stored): void {
  if (value === undefined) return;
  const set = index.get(value);
  set?.delete(object);
  if (set?.size === 0) index.delete(value);
}
