/** Indexes of the objects of a store. An index is created when a list first needs it, and updated by every change. */
import { InProgress } from '../../runtime/bounded-cache.ts';
import type { Change } from './history.ts';
import { stateAfter } from './order.ts';
import { visitInSlices, type SignalSource } from '../../runtime/slice.ts';
import { labelOf, type StoredObject } from './stored-object.ts';

/** Property whose values are indexed. */
export type IndexName = 'name' | 'namespace' | 'uid' | `label ${string}`;

/** Values of an index, any of which an object may have. */
export interface IndexedValues {
  readonly index: IndexName;
  readonly values: readonly string[];
}

type Stored = StoredObject<unknown>;
type Index = Map<string, Set<Stored>>;

/** Store whose objects are indexed. */
export interface IndexSource {
  all(): Iterable<Stored>;
  /** Current position in the history. */
  readonly position: number;
  /** Returns the changes from a position in the history; undefined if any of these changes is missing. */
  changesFrom(position: number): readonly Change<unknown>[] | undefined;
}

/** Maximum indexes of a store. The least recently used index is removed first. */
const maxIndexes = 32;

export class Indexes {
  readonly #source: IndexSource;
  /** Indexes, least recently used first. */
  readonly #indexes = new Map<IndexName, Index>();
  readonly #inProgress = new InProgress<Promise<void>>('indexes_in_progress');

  constructor(source: IndexSource) {
    this.#source = source;
  }

  /**
   * Creates an index, or marks an existing index as used. Works in slices, so that the event loop is not blocked.
   * Concurrent callers share the work. Throws the signal's reason if the signal is aborted.
   */
  async ensure(name: IndexName, waiting: SignalSource): Promise<void> {
    for (;;) {
      const index = this.#indexes.get(name);
      if (index !== undefined) {
        // Moves the index to the end: it is now the most recently used.
        this.#indexes.delete(name);
        this.#indexes.set(name, index);
        return;
      }
      const inProgress = this.#inProgress.get(name);
      if (inProgress === undefined) {
        const creation = this.#build(name, waiting).finally(() => this.#inProgress.delete(name));
        this.#inProgress.set(
          name,
          creation.catch(() => undefined),
        );
        await creation;
      } else {
        await inProgress;
        waiting.signal.throwIfAborted();
      }
    }
  }

  async #build(name: IndexName, waiting: SignalSource): Promise<void> {
    const { position } = this.#source;
    const index: Index = new Map();
    await visitInSlices([...this.#source.all()], waiting, (object) => {
      insert(index, valueIn(object, name), object);
    });
    const changes = this.#source.changesFrom(position);
    if (changes === undefined) return;
    for (const change of changes) applyChange(index, name, change);
    this.#indexes.set(name, index);
    for (const [first] of this.#indexes) {
      if (this.#indexes.size <= maxIndexes) break;
      this.#indexes.delete(first);
    }
  }

  /** Returns the objects with these values in the most selective index; undefined if none of the indexes exists. */
  candidates(indexed: readonly IndexedValues[]): Stored[] | undefined {
    let smallest: Set<Stored>[] | undefined;
    let minSize = Infinity;
    for (const { index: name, values } of indexed) {
      const index = this.#indexes.get(name);
      // Other requests may have evicted the index in the meantime.
      if (index === undefined) continue;
      const sets = [...new Set(values)].flatMap((value) => index.get(value) ?? []);
      const size = sets.reduce((sum, set) => sum + set.size, 0);
      if (size >= minSize) continue;
      minSize = size;
      smallest = sets;
    }
    return smallest?.flatMap((set) => [...set]);
  }

  /** Applies a change of the store to all indexes. Never throws. */
  change(change: Change<unknown>): void {
    for (const [name, index] of this.#indexes) applyChange(index, name, change);
  }

  clear(): void {
    this.#indexes.clear();
  }
}

function applyChange(index: Index, name: IndexName, change: Change<unknown>): void {
  const { previous } = change;
  const after = stateAfter(change);
  if (previous !== undefined) remove(index, valueIn(previous, name), previous);
  if (after !== undefined) insert(index, valueIn(after, name), after);
}

function valueIn(object: Stored, index: IndexName): string | undefined {
  if (index === 'name' || index === 'namespace' || index === 'uid') return object[index];
  return labelOf(object, index.slice('label '.length));
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
