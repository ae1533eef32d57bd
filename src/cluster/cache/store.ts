/**
 * Cached objects of one resource, by key and in the orders of lists. A reflector updates the objects. The last changes
 * are kept, so that a watch can start at an earlier resourceVersion (k8s.io/apiserver
 * pkg/storage/cacher/watch_cache.go).
 */
import { Arena } from './arena.ts';
import { findDifferences } from './differences.ts';
import { History, maxChanges, type Change } from './history.ts';
import { namespacedName, type ChangeType } from '../client/kube-object.ts';
import { byName, withReplaced, follow, orders, stateAfter, type OrderName } from './order.ts';
import { Selections, type ObjectFilter, type ObjectOrder } from './selection.ts';
import type { SignalSource } from '../../runtime/slice.ts';
import type { StoredObject } from './stored-object.ts';

export interface StoreListener<F> {
  change(change: Change<F>): void;
  /**
   * Called when the changes between two resourceVersions are known only as the differences between two lists. A watch
   * that continues from a version between them may miss changes, and must end.
   */
  gap?(from: number, to: number): void;
  /** Called when the history restarts. Every watch must then end, so that its client lists again. */
  reset(): void;
}

const orderNames = Object.keys(orders) as OrderName[];
const isOrderName = (key: string): key is OrderName => Object.hasOwn(orders, key);

/** Maximum bytes of unpacked objects: 65,000 nodes without managedFields. */
const maxPlainBytes = 384 * 1024 * 1024;
/**
 * If a list brings at most this many changes, each change is applied to the orders separately. Each separate change
 * moves all later objects of an array.
 */
const maxSingleChanges = 100;
/** Approximate bytes of an object in the V8 heap. */
const indexSize = 1024;

export class Store<F> {
  readonly #objects = new Map<string, StoredObject<F>>();
  readonly #orders: Record<OrderName, StoredObject<F>[]> = { name: [], newest: [], oldest: [] };
  readonly #arena = new Arena(maxPlainBytes);
  readonly #history = new History<F>();
  readonly history: Omit<History<F>, 'add' | 'addGap' | 'reset'> = this.#history;
  readonly #selections: Selections;
  readonly #listeners = new Set<StoreListener<F>>();
  readonly #waiting = new Set<() => void>();
  #snapshot: readonly StoredObject<F>[] | undefined;
  #resourceVersion = 0;

  constructor() {
    const history = this.#history;
    const size = (): number => this.#objects.size;
    this.#selections = new Selections({
      get size() {
        return size();
      },
      get position() {
        return history.position;
      },
      all: () => this.#objects.values(),
      ordered: (key) => (isOrderName(key) ? this.#orders[key] : undefined),
      changesFrom: (position) => history.from(position),
    });
  }

  /** The resourceVersion up to which the store is complete; 0 before the first list. */
  get resourceVersion(): number {
    return this.#resourceVersion;
  }

  get size(): number {
    return this.#objects.size;
  }

  /** Bytes of the objects, including an estimate of their index. */
  get bytes(): number {
    return this.#arena.bytes + this.#arena.size * indexSize;
  }

  /** `namespace` is '' at cluster scope. */
  get(namespace: string, name: string): StoredObject<F> | undefined {
    return this.#objects.get(namespacedName({ namespace, name }));
  }

  /** Returns all objects in an order. The array is live: read it synchronously. */
  order(name: OrderName): readonly StoredObject<F>[] {
    return this.#orders[name];
  }

  /**
   * Returns an immutable array of all objects by name, for long reads. Callers share the array until the next change.
   */
  snapshot(): readonly StoredObject<F>[] {
    return (this.#snapshot ??= this.#orders.name.slice());
  }

  /**
   * Calls `use` with the objects that pass all filters, in an order, and with the resourceVersion of the selection. The
   * array is live: read it synchronously. Throws the signal's reason if the signal is aborted.
   */
  async select<T>(
    filters: readonly ObjectFilter<F>[],
    order: OrderName | ObjectOrder<F>,
    waiting: SignalSource,
    use: (objects: readonly StoredObject<F>[], resourceVersion: number) => T,
  ): Promise<T> {
    if (filters.length === 0 && typeof order === 'string') return use(this.#orders[order], this.#resourceVersion);
    const by = typeof order === 'string' ? { key: order, compare: orders[order] } : order;
    // The selections contain only objects of this store.
    return await this.#selections.select(
      filters as readonly ObjectFilter<unknown>[],
      by as ObjectOrder<unknown>,
      waiting,
      (objects) => use(objects as readonly StoredObject<F>[], this.#resourceVersion),
    );
  }

  /**
   * Makes the bytes of all objects contiguous, newest first. Works in slices, so that the event loop is not blocked.
   * Throws the signal's reason if the signal is aborted.
   */
  tidy(waiting: SignalSource): Promise<void> {
    return this.#arena.tidy(this.#orders.newest.slice(), waiting);
  }

  /** Returns a function that unsubscribes the listener. */
  subscribe(listener: StoreListener<F>): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Returns all objects by name at a resourceVersion; undefined if the history is incomplete or the store has not
   * reached that version.
   */
  at(resourceVersion: number): readonly StoredObject<F>[] | undefined {
    const changes = resourceVersion > this.#resourceVersion ? undefined : this.#history.after(resourceVersion);
    if (changes === undefined) return undefined;
    if (changes.length === 0) return this.snapshot();
    const before = new Map<string, StoredObject<F> | undefined>();
    const after = new Set<StoredObject<F>>();
    for (const { object, previous } of changes) {
      const key = namespacedName(object);
      if (before.has(key)) continue;
      before.set(key, previous);
      const present = this.#objects.get(key);
      if (present !== undefined) after.add(present);
    }
    return withReplaced(this.#orders.name, byName, after, [...before.values()]);
  }

  /** Resolves to true once the store has reached a resourceVersion, and to false if the signal is aborted first. */
  waitFor(resourceVersion: number, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const check = (): void => {
        const isReached = this.#resourceVersion >= resourceVersion;
        if (!isReached && !signal.aborted) return;
        this.#waiting.delete(check);
        signal.removeEventListener('abort', check);
        resolve(isReached);
      };
      this.#waiting.add(check);
      signal.addEventListener('abort', check);
      check();
    });
  }

  /**
   * Moves the bytes of an object to the arena before its list is complete, so that a long list is never in memory
   * twice.
   */
  hold(object: StoredObject<F>): void {
    this.#arena.add(object);
  }

  /** Releases the objects of an interrupted list. */
  release(): void {
    this.#arena.retain(new Set(this.#objects.values()));
  }

  /** Replaces all objects after a list. Differences are published as changes, so that watches continue. */
  replace(items: readonly StoredObject<F>[], resourceVersion: number): void {
    if (this.#resourceVersion === 0 || resourceVersion < this.#resourceVersion)
      return this.#reset(items, resourceVersion);
    const changes = findDifferences(this.#objects, items, {
      since: this.#resourceVersion,
      until: resourceVersion,
      max: maxChanges,
    });
    // The history is too short for all the changes.
    if (changes === undefined) return this.#reset(items, resourceVersion);
    if (changes.length <= maxSingleChanges) for (const change of changes) this.#record(change);
    else this.#recordAll(changes);
    this.#arena.retain(new Set(this.#objects.values()));
    if (resourceVersion > this.#resourceVersion) {
      this.#history.addGap(this.#resourceVersion, resourceVersion, changes.at(-1)?.resourceVersion ?? 0);
      for (const listener of this.#listeners) listener.gap?.(this.#resourceVersion, resourceVersion);
    }
    this.bookmark(resourceVersion);
  }

  /** Applies a change that a watch reported. The change may be part of the store already. */
  apply(type: ChangeType, object: StoredObject<F>): void {
    const { resourceVersion } = object;
    const previous = this.#objects.get(namespacedName(object));
    const isKnown = type === 'DELETED' ? previous === undefined : previous?.resourceVersion === resourceVersion;
    // `hold` has moved the object to the arena, where it would remain until the next list.
    if (isKnown) this.#arena.discard(object);
    else {
      const change = type === 'DELETED' ? type : previous === undefined ? 'ADDED' : 'MODIFIED';
      this.#record({ type: change, resourceVersion, object, previous });
    }
    this.bookmark(resourceVersion);
  }

  /** Records that nothing else has changed up to this resourceVersion. */
  bookmark(resourceVersion: number): void {
    if (resourceVersion > this.#resourceVersion) this.#resourceVersion = resourceVersion;
    for (const check of this.#waiting) check();
  }

  /**
   * Replaces all objects: after the first list, after a list with an older resourceVersion (etcd restored from a
   * backup), or after too many changes.
   */
  #reset(items: readonly StoredObject<F>[], resourceVersion: number): void {
    this.#objects.clear();
    for (const object of items) this.#objects.set(namespacedName(object), object);
    for (const name of orderNames) this.#orders[name] = items.toSorted(orders[name]);
    this.#snapshot = undefined;
    this.#selections.clear();
    this.#history.reset(resourceVersion);
    for (const object of items) this.#arena.add(object);
    this.#arena.retain(new Set(items));
    this.#resourceVersion = resourceVersion;
    for (const listener of this.#listeners) listener.reset();
    for (const check of this.#waiting) check();
  }

  #record(change: Change<F>): void {
    this.#keep(change);
    const { previous } = change;
    const after = stateAfter(change);
    for (const name of orderNames) follow(this.#orders[name], orders[name], previous, after);
    this.#selections.change(change);
    this.#publish(change);
  }

  /**
   * Records the changes of a list. An object has at most two changes: its deletion and the addition of another object
   * with the same name.
   */
  #recordAll(changes: readonly Change<F>[]): void {
    for (const change of changes) this.#keep(change);
    const before = new Set(changes.map(({ previous }) => previous));
    const after = changes.map(stateAfter);
    for (const name of orderNames) this.#orders[name] = withReplaced(this.#orders[name], orders[name], before, after);
    this.#selections.clear();
    for (const change of changes) this.#publish(change);
  }

  #keep(change: Change<F>): void {
    this.#snapshot = undefined;
    const { object, previous } = change;
    const after = stateAfter(change);
    if (after === undefined) {
      this.#objects.delete(namespacedName(object));
      this.#arena.retire(object);
    } else {
      this.#objects.set(namespacedName(object), after);
      this.#arena.add(after);
    }
    if (previous !== undefined) this.#arena.retire(previous);
  }

  #publish(change: Change<F>): void {
    this.#history.add(change);
    for (const listener of this.#listeners) listener.change(change);
  }
}
