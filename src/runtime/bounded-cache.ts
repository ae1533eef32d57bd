/**
 * Collections for values whose keys come from requests. Callers choose these keys, so both the length and the number of
 * keys must be limited. Long keys are stored as digests, and no key keeps in memory the text from which it was cut.
 */
import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';

/**
 * Length of a SHA-256 digest in hex. Keys of this length or more are replaced by their digest, so no short key equals a
 * digest.
 */
const digestLength = 64;
/** Approximate bytes of an entry in addition to its key and value. */
const entryOverhead = 128;

/** Hashes the key as JSON, because two keys that differ only in lone surrogates are the same in UTF-8. */
const keyOf = (key: string): string => (key.length < digestLength ? key : hash('sha256', JSON.stringify(key), 'hex'));

/** Minimum length of a text for which V8 creates a slice. V8 copies shorter texts. */
const shortestSlice = 13;

/**
 * Copies the text into its own memory. A slice, such as a URL parameter, would keep the whole original text in memory.
 */
export const copied = (text: string): string =>
  text.length < shortestSlice ? text : Buffer.from(text, 'utf16le').toString('utf16le');

const bytesOf = (key: string): number => entryOverhead + key.length;

/** Maximum expired entries that are dropped when an entry is added. */
const maxPurged = 4;

export interface CacheOptions<V> {
  /** Label `name` of the metrics cache_entries and cache_bytes. Default: the metrics do not contain the cache. */
  readonly name?: string;
  readonly maxEntries: number;
  readonly maxBytes: number;
  /** Milliseconds until an entry expires. */
  readonly ttl: number;
  /** True if `get` starts this time again, so that only unused entries expire. */
  readonly renewsOnGet?: boolean;
  /** Returns the bytes of a value, if they vary. */
  readonly sizeOf?: (value: V) => number;
  /**
   * Returns milliseconds. Default: a monotonic clock, so that expired entries stay expired if the system clock is set
   * back.
   */
  readonly clock?: () => number;
}

interface Figures {
  readonly entries: number;
  readonly bytes: number;
}

/**
 * Names of all collections in the metrics. The references are weak, because the store of an uncached list has caches for
 * a single request.
 */
const all = new Map<WeakRef<Figures>, string>();
const dropped = new FinalizationRegistry<WeakRef<Figures>>((reference) => all.delete(reference));

function register(name: string, collection: Figures): void {
  const reference = new WeakRef(collection);
  all.set(reference, name);
  dropped.register(collection, reference);
}

/** Returns the entries and bytes of all collections, by name. */
export function cacheFigures(): ReadonlyMap<string, Figures> {
  const figures = new Map<string, Figures>();
  for (const [reference, name] of all) {
    const collection = reference.deref();
    if (collection === undefined) continue;
    const { entries = 0, bytes = 0 } = figures.get(name) ?? {};
    figures.set(name, { entries: entries + collection.entries, bytes: bytes + collection.bytes });
  }
  return figures;
}

/** LRU cache with limits for the number of entries, their bytes and their age. */
export class BoundedCache<V extends object | string | number | boolean> implements Figures {
  readonly #cache: LRUCache<string, V>;
  readonly #maxEntries: number;
  readonly #ttl: number;

  constructor({
    name,
    maxEntries,
    maxBytes,
    ttl,
    renewsOnGet = false,
    sizeOf = () => 0,
    clock = () => performance.now(),
  }: CacheOptions<V>) {
    this.#maxEntries = maxEntries;
    this.#ttl = ttl;
    // The option `max` is not used, because lru-cache would then allocate the memory for all entries at once.
    this.#cache = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: (value, key) => bytesOf(key) + sizeOf(value),
      ttl,
      ttlResolution: 0,
      updateAgeOnGet: renewsOnGet,
      perf: { now: clock },
      // Without this option, iterators would skip the expired entries that `#purge` drops.
      allowStale: true,
    });
    if (name !== undefined) register(name, this);
  }

  get entries(): number {
    return this.#cache.size;
  }

  get bytes(): number {
    return this.#cache.calculatedSize;
  }

  get(key: string): V | undefined {
    return this.#cache.get(keyOf(key), { allowStale: false });
  }

  /** Returns the value without marking the entry as used. */
  peek(key: string): V | undefined {
    return this.#cache.peek(keyOf(key), { allowStale: false });
  }

  has(key: string): boolean {
    return this.#cache.has(keyOf(key));
  }

  /** Adds or replaces an entry. `ttl`: milliseconds until it expires. */
  set(key: string, value: V, ttl: number = this.#ttl): void {
    this.#purge();
    this.#cache.set(copied(keyOf(key)), value, { ttl });
    if (this.#cache.size > this.#maxEntries) this.#cache.pop();
  }

  delete(key: string): void {
    this.#cache.delete(keyOf(key));
  }

  clear(): void {
    this.#cache.clear();
  }

  /** Drops the least recently used entries until at most `maxBytes` are left. */
  trim(maxBytes: number): void {
    while (this.bytes > maxBytes) this.#cache.pop();
  }

  /** Yields long keys as their digests, which get() and delete() do not accept. */
  *[Symbol.iterator](): IterableIterator<[string, V]> {
    for (const entry of this.#cache.entries() as Iterable<[string, V]>) if (this.#cache.has(entry[0])) yield entry;
  }

  /**
   * Drops the entries for which the function returns false. Calls the function with the most recently used value first.
   */
  retain(isRetained: (value: V) => boolean): void {
    const rejected: string[] = [];
    for (const [key, value] of this) if (!isRetained(value)) rejected.push(key);
    for (const key of rejected) this.#cache.delete(key);
  }

  /**
   * Drops a few expired entries, which are the least recently used ones. Dropping all of them at once would block the
   * event loop.
   */
  #purge(): void {
    for (let count = 0; count < maxPurged; count += 1) {
      const { done, value: oldest } = this.#cache.rkeys().next();
      if (done === true || this.#cache.has(oldest)) return;
      this.#cache.delete(oldest);
    }
  }
}

/**
 * Map of values that exist while a task is in progress. The code that adds a value also deletes it, so the requests in
 * flight limit the number of values. No value is evicted, because limits depend on the values.
 */
export class InProgress<V> implements Figures {
  readonly #values = new Map<string, V>();
  #bytes = 0;

  /** `name`: label in the metrics, as for a cache. */
  constructor(name: string) {
    register(name, this);
  }

  get entries(): number {
    return this.#values.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get(key: string): V | undefined {
    return this.#values.get(keyOf(key));
  }

  set(key: string, value: V): void {
    const shortKey = keyOf(key);
    // The Map keeps its existing key, so no copy is needed.
    if (this.#values.has(shortKey)) this.#values.set(shortKey, value);
    else {
      this.#bytes += bytesOf(shortKey);
      this.#values.set(copied(shortKey), value);
    }
  }

  delete(key: string): void {
    const shortKey = keyOf(key);
    if (this.#values.delete(shortKey)) this.#bytes -= bytesOf(shortKey);
  }

  [Symbol.iterator](): IterableIterator<[string, V]> {
    return this.#values.entries();
  }
}
