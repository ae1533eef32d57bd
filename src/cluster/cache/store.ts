/**
 * A copy of one resource, fed by a reflector and read by many: every object by its key, in the orders that lists ask for, and
 * the last changes, so that a watch can begin in the past (k8s.io/apiserver pkg/storage/cacher/watch_cache.go).
 */
import { Arena } from './arena.ts';
import { History, maxChanges, type Change } from './history.ts';
import type { ChangeType } from '../client/kube-object.ts';
import { byName, exchanged, follow, orders, stateAfter, type OrderName } from './order.ts';
import { Selections, type ObjectFilter, type ObjectOrder } from './selection.ts';
import type { WaitingSlice } from '../../runtime/slice.ts';
import type { StoredObject } from './stored-object.ts';

/** What subscribers are told. `reset`: the history broke, so every watch has to end and its client to list again. */
export interface StoreListener<F> {
  change(change: Change<F>): void;
  reset(): void;
}

const orderNames = Object.keys(orders) as OrderName[];
const isOrderName = (key: string): key is OrderName => Object.hasOwn(orders, key);

/** Bytes that may lie unpacked. */
const maxPlainBytes = 256 * 1024 * 1024;
/** More changes at once are not taken over into each order one by one: each would move what stands behind it. */
const maxSingly = 100;
/** What the V8 heap holds of an object, about. */
const indexSize = 1024;

const keyOf = (object: { namespace: string; name: string }): string =>
  object.namespace === '' ? object.name : `${object.namespace}/${object.name}`;

export class Store<F> {
  readonly #objects = new Map<string, StoredObject<F>>();
  readonly #orders: Record<OrderName, StoredObject<F>[]> = { name: [], newest: [], oldest: [] };
  readonly #arena = new Arena(maxPlainBytes);
  readonly #history = new History<F>();
  /** Its `since` is the oldest resourceVersion from which a watch can begin. */
  readonly history: Omit<History<F>, 'add' | 'reset'> = this.#history;
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

  /** Up to where the store is known to be complete. 0 before the first list. */
  get resourceVersion(): number {
    return this.#resourceVersion;
  }

  get size(): number {
    return this.#objects.size;
  }

  /** Held of the objects: their bytes, and about what the index of them takes. */
  get bytes(): number {
    return this.#arena.bytes + this.#objects.size * indexSize;
  }

  /** `namespace` is '' at cluster scope. */
  get(namespace: string, name: string): StoredObject<F> | undefined {
    return this.#objects.get(keyOf({ namespace, name }));
  }

  /** All objects in that order. It is the living array: take what is needed before anything else runs. */
  order(name: OrderName): readonly StoredObject<F>[] {
    return this.#orders[name];
  }

  /** All objects by name as they are now, for who needs them for long: all who ask before the next change share them. */
  snapshot(): readonly StoredObject<F>[] {
    return (this.#snapshot ??= this.#orders.name.slice());
  }

  /**
   * Calls `use` with the objects that pass all filters, in that order, and with the resourceVersion at which they do. It is the living
   * array: take what is needed before anything else runs. Throws the signal's reason.
   */
  async select<T>(
    filters: readonly ObjectFilter<F>[],
    order: OrderName | ObjectOrder<F>,
    waiting: WaitingSlice,
    use: (objects: readonly StoredObject<F>[], resourceVersion: number) => T,
  ): Promise<T> {
    if (filters.length === 0 && typeof order === 'string') return use(this.#orders[order], this.#resourceVersion);
    const by = typeof order === 'string' ? { key: order, compare: orders[order] } : order;
    // Its objects are those of this store.
    return await this.#selections.select(
      filters as readonly ObjectFilter<unknown>[],
      by as ObjectOrder<unknown>,
      waiting,
      (objects) => use(objects as readonly StoredObject<F>[], this.#resourceVersion),
    );
  }

  /** Lays the bytes of all objects side by side in the order of the newest first, in slices. Throws the signal's reason. */
  tidy(waiting: WaitingSlice): Promise<void> {
    return this.#arena.tidy(this.#orders.newest.slice(), waiting);
  }

  /** Returns what ends the calls. */
  subscribe(listener: StoreListener<F>): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** All objects by name as they were at a resourceVersion; undefined if that is forgotten or lies ahead. */
  at(resourceVersion: number): readonly StoredObject<F>[] | undefined {
    const changes = resourceVersion > this.#resourceVersion ? undefined : this.#history.after(resourceVersion);
    if (changes === undefined) return undefined;
    if (changes.length === 0) return this.#orders.name;
    const was = new Map<string, StoredObject<F> | undefined>();
    const is = new Set<StoredObject<F>>();
    for (const { object, previous } of changes) {
      const key = keyOf(object);
      if (was.has(key)) continue;
      was.set(key, previous);
      const present = this.#objects.get(key);
      if (present !== undefined) is.add(present);
    }
    return exchanged(this.#orders.name, byName, is, [...was.values()]);
  }

  /** Resolves with true when the store has reached a resourceVersion, with false when the signal is aborted before. */
  reached(resourceVersion: number, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const check = (): void => {
        const there = this.#resourceVersion >= resourceVersion;
        if (!there && !signal.aborted) return;
        this.#waiting.delete(check);
        signal.removeEventListener('abort', check);
        resolve(there);
      };
      this.#waiting.add(check);
      signal.addEventListener('abort', check);
      check();
    });
  }

  /** Gives the bytes of an object, that a list or a change is about to bring, their place: so a long list is never held twice. */
  hold(object: StoredObject<F>): void {
    this.#arena.add(object);
  }

  /** What was held for a list that broke off is given up. */
  release(): void {
    this.#arena.retain(new Set(this.#objects.values()));
  }

  /** The whole state, after a list. What differs is told as changes, so that watches need not end. */
  replace(items: readonly StoredObject<F>[], resourceVersion: number): void {
    if (this.#resourceVersion === 0 || resourceVersion < this.#resourceVersion)
      return this.#reset(items, resourceVersion);
    const present = new Set(items.map(keyOf));
    const changes: Change<F>[] = [];
    const gone: Gone<F>[] = [];
    for (const [key, previous] of this.#objects)
      if (!present.has(key)) gone.push({ previous, latest: resourceVersion });
    for (const object of items) {
      const previous = this.#objects.get(keyOf(object));
      const version = object.resourceVersion;
      if (previous === undefined) changes.push({ type: 'ADDED', resourceVersion: version, object, previous });
      else if (previous.uid !== object.uid) {
        gone.push({ previous, latest: version - 1 });
        changes.push({ type: 'ADDED', resourceVersion: version, object, previous: undefined });
      } else if (previous.resourceVersion !== version)
        changes.push({ type: 'MODIFIED', resourceVersion: version, object, previous });
    }
    // Nobody could be told them all.
    if (changes.length + gone.length > maxChanges) return this.#reset(items, resourceVersion);
    const all = changes
      .concat(deletions(gone, this.#resourceVersion, new Set(items.map((object) => object.resourceVersion))))
      .toSorted((a, b) => a.resourceVersion - b.resourceVersion);
    if (all.length <= maxSingly) for (const change of all) this.#record(change);
    else this.#recordAll(all);
    this.#arena.retain(new Set(this.#objects.values()));
    this.bookmark(resourceVersion);
  }

  /** One change, as a watch tells it. */
  apply(type: ChangeType, object: StoredObject<F>): void {
    const { resourceVersion } = object;
    const previous = this.#objects.get(keyOf(object));
    if (type === 'DELETED') {
      if (previous !== undefined) this.#record({ type, resourceVersion, object, previous });
    } else if (previous === undefined) this.#record({ type: 'ADDED', resourceVersion, object, previous });
    else if (previous.resourceVersion !== resourceVersion)
      this.#record({ type: 'MODIFIED', resourceVersion, object, previous });
    this.bookmark(resourceVersion);
  }

  /** Nothing else has changed up to this resourceVersion. */
  bookmark(resourceVersion: number): void {
    if (resourceVersion > this.#resourceVersion) this.#resourceVersion = resourceVersion;
    for (const check of this.#waiting) check();
  }

  /** The first list, one that lies before what was known, as etcd was restored from a backup, or one in which too much is new. */
  #reset(items: readonly StoredObject<F>[], resourceVersion: number): void {
    this.#objects.clear();
    for (const object of items) this.#objects.set(keyOf(object), object);
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

  /** Changes of a list: of one object there are no more than its deletion and another of its name. */
  #recordAll(changes: readonly Change<F>[]): void {
    for (const change of changes) this.#keep(change);
    const before = new Set(changes.map(({ previous }) => previous));
    const after = changes.map(stateAfter);
    for (const name of orderNames) this.#orders[name] = exchanged(this.#orders[name], orders[name], before, after);
    this.#selections.clear();
    for (const change of changes) this.#publish(change);
  }

  #keep(change: Change<F>): void {
    this.#snapshot = undefined;
    const { object, previous } = change;
    const after = stateAfter(change);
    if (after === undefined) {
      this.#objects.delete(keyOf(object));
      this.#arena.retire(object);
    } else {
      this.#objects.set(keyOf(object), after);
      this.#arena.add(after);
    }
    if (previous !== undefined) this.#arena.retire(previous);
  }

  #publish(change: Change<F>): void {
    this.#history.add(change);
    for (const listener of this.#listeners) listener.change(change);
  }
}

/** An object that was deleted at some time up to the revision `latest`. */
interface Gone<F> {
  readonly previous: StoredObject<F>;
  readonly latest: number;
}

/**
 * What a list no longer shows was deleted at revisions that nobody knows any more, each at its own, after `since`. Each gets one that
 * is not taken, so that a watch can go on after every single one of them.
 */
function deletions<F>(gone: readonly Gone<F>[], since: number, taken: ReadonlySet<number>): Change<F>[] {
  let free = Infinity;
  return gone
    .toSorted((a, b) => b.latest - a.latest)
    .map(({ previous, latest }) => {
      free = Math.min(free, latest);
      while (taken.has(free)) free -= 1;
      const resourceVersion = free > since ? free : latest;
      free -= 1;
      return {
        type: 'DELETED',
        resourceVersion,
        object: previous.withResourceVersion(resourceVersion),
        previous,
      };
    });
}
