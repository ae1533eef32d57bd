/**
 * A copy of one resource, fed by a reflector and read by many: every object by its key, in the orders that lists ask for, and
 * the last changes, so that a watch can begin in the past (k8s.io/apiserver pkg/storage/cacher/watch_cache.go).
 */
import type { ChangeType } from './kube-object.ts';
import { sizeOf, withResourceVersion, type StoredObject } from './stored-object.ts';

export interface Change<F> {
  readonly type: ChangeType;
  readonly resourceVersion: number;
  /** The state after the change; of a deletion the last state, under the deletion's resourceVersion. */
  readonly object: StoredObject<F>;
  /** The state before; undefined for an addition. */
  readonly previous: StoredObject<F> | undefined;
}

/** What subscribers are told. `reset`: the history broke, so every watch has to end and its client to list again. */
export interface StoreListener<F> {
  change(change: Change<F>): void;
  reset(): void;
}

export type OrderName = 'name' | 'newest' | 'oldest';

type Compare<F> = (a: StoredObject<F>, b: StoredObject<F>) => number;

const text = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** By name, within one name by namespace: the order of names in all namespaces. */
export const byName: Compare<unknown> = (a, b) => text(a.name, b.name) || text(a.namespace, b.namespace);

const orders: Readonly<Record<OrderName, Compare<unknown>>> = {
  name: byName,
  newest: (a, b) => b.createdAt - a.createdAt || byName(a, b),
  oldest: (a, b) => a.createdAt - b.createdAt || byName(a, b),
};

const orderNames = Object.keys(orders) as OrderName[];

/** Bounds of the remembered changes. */
const mostChanges = 10_000;
const mostBytes = 64 * 1024 * 1024;

const keyOf = (object: { namespace: string; name: string }): string =>
  object.namespace === '' ? object.name : `${object.namespace}/${object.name}`;

/** Where this object stands, or would have to stand, in a sorted list. */
export function indexIn<F>(sorted: readonly StoredObject<F>[], object: StoredObject<F>, compare: Compare<F>): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compare(sorted[middle] as StoredObject<F>, object) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

export class Store<F> {
  readonly #objects = new Map<string, StoredObject<F>>();
  readonly #orders: Record<OrderName, StoredObject<F>[]> = { name: [], newest: [], oldest: [] };
  readonly #listeners = new Set<StoreListener<F>>();
  readonly #waiting = new Set<() => void>();
  #resourceVersion = 0;
  #bytes = 0;
  /** The last changes, oldest first; those before `#first` are forgotten. */
  #changes: Change<F>[] = [];
  #first = 0;
  /** The position of the first of `#changes`. */
  #start = 0;
  #changeBytes = 0;
  /** Every change after this resourceVersion is remembered. */
  #since = 0;

  /** Up to where the store is known to be complete. 0 before the first list. */
  get resourceVersion(): number {
    return this.#resourceVersion;
  }

  get size(): number {
    return this.#objects.size;
  }

  /** Of the objects, outside the V8 heap. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The oldest resourceVersion from which a watch can begin. */
  get oldestResourceVersion(): number {
    return this.#since;
  }

  /** `namespace` is '' at cluster scope. */
  get(namespace: string, name: string): StoredObject<F> | undefined {
    return this.#objects.get(keyOf({ namespace, name }));
  }

  /** All objects in that order. It is the living array: take what is needed before anything else runs. */
  order(name: OrderName): readonly StoredObject<F>[] {
    return this.#orders[name];
  }

  /** Returns what ends the calls. */
  subscribe(listener: StoreListener<F>): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The remembered changes after a resourceVersion, oldest first; undefined if they are not all remembered. */
  changesAfter(resourceVersion: number): readonly Change<F>[] | undefined {
    if (resourceVersion < this.#since) return undefined;
    return this.#changes.slice(this.#indexAfter(resourceVersion));
  }

  /** Where the next change will stand among all that there were since the start: a place in the history to read on from. */
  get position(): number {
    return this.#start + this.#changes.length;
  }

  /** Of the oldest change that is remembered. */
  get oldestPosition(): number {
    return this.#start + this.#first;
  }

  /** Of the first change after a resourceVersion; undefined if not all changes after it are remembered. */
  positionAfter(resourceVersion: number): number | undefined {
    return resourceVersion < this.#since ? undefined : this.#start + this.#indexAfter(resourceVersion);
  }

  /** Undefined if it is forgotten or yet to come. */
  changeAt(position: number): Change<F> | undefined {
    return position < this.oldestPosition ? undefined : this.#changes[position - this.#start];
  }

  /** All objects by name as they were at a resourceVersion; undefined if that is forgotten or lies ahead. */
  at(resourceVersion: number): readonly StoredObject<F>[] | undefined {
    if (resourceVersion < this.#since || resourceVersion > this.#resourceVersion) return undefined;
    const first = this.#indexAfter(resourceVersion);
    if (first === this.#changes.length) return this.#orders.name;
    const was = new Map<string, StoredObject<F> | undefined>();
    for (const { object, previous } of this.#changes.slice(first)) {
      const key = keyOf(object);
      if (!was.has(key)) was.set(key, previous);
    }
    const snapshot = this.#orders.name.filter((object) => !was.has(keyOf(object)));
    for (const object of was.values())
      if (object !== undefined) snapshot.splice(indexIn(snapshot, object, byName), 0, object);
    return snapshot;
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
    changes.push(...deletions(gone, this.#resourceVersion, new Set(items.map((object) => object.resourceVersion))));
    for (const change of changes.toSorted((a, b) => a.resourceVersion - b.resourceVersion)) this.#record(change);
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

  /** The first list, or one that lies before what was known: etcd was restored from a backup. */
  #reset(items: readonly StoredObject<F>[], resourceVersion: number): void {
    this.#objects.clear();
    this.#bytes = 0;
    for (const object of items) {
      this.#objects.set(keyOf(object), object);
      this.#bytes += sizeOf(object);
    }
    for (const name of orderNames) this.#orders[name] = items.toSorted(orders[name]);
    this.#start += this.#changes.length;
    this.#changes = [];
    this.#first = 0;
    this.#changeBytes = 0;
    this.#since = resourceVersion;
    this.#resourceVersion = resourceVersion;
    for (const listener of this.#listeners) listener.reset();
    for (const check of this.#waiting) check();
  }
  #record(change: Change<F>): void {
    const { object, previous, type } = change;
    const key = keyOf(object);
    if (previous !== undefined) {
      this.#bytes -= sizeOf(previous);
      for (const name of orderNames) {
        const order = this.#orders[name];
        order.splice(indexIn(order, previous, orders[name]), 1);
      }
    }
    if (type === 'DELETED') this.#objects.delete(key);
    else {
      this.#objects.set(key, object);
      this.#bytes += sizeOf(object);
      for (const name of orderNames) {
        const order = this.#orders[name];
        order.splice(indexIn(order, object, orders[name]), 0, object);
      }
    }
    this.#changes.push(change);
    this.#changeBytes += sizeOf(object);
    this.#forget();
    for (const listener of this.#listeners) listener.change(change);
  }

  /** Keeps the remembered changes within their bounds. */
  #forget(): void {
    while (this.#changes.length - this.#first > mostChanges || this.#changeBytes > mostBytes) {
      const { object, resourceVersion } = this.#changes[this.#first] as Change<F>;
      this.#changeBytes -= sizeOf(object);
      this.#since = resourceVersion;
      this.#first += 1;
    }
    if (this.#first > 1000 && this.#first * 2 > this.#changes.length) {
      this.#changes = this.#changes.slice(this.#first);
      this.#start += this.#first;
      this.#first = 0;
    }
  }

  /** Of the first remembered change after a resourceVersion. */
  #indexAfter(resourceVersion: number): number {
    let low = this.#first;
    let high = this.#changes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#changes[middle] as Change<F>).resourceVersion <= resourceVersion) low = middle + 1;
      else high = middle;
    }
    return low;
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
        object: withResourceVersion(previous, resourceVersion),
        previous,
      };
    });
}
