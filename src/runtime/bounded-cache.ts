/**
 * Memory for values whose keys come from requests. A caller chooses such a key, so neither its length nor the number of keys may cost
 * more than a limit: long keys are kept as digests, and no key keeps the text alive that it was cut from.
 */
import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';

/** Characters of a SHA-256 in hex: a key of as many or more is replaced by its digest, so no short key equals a digest. */
const digestLength = 64;
/** Bytes of an entry beside its key and what its value holds. */
const entryOverhead = 128;

/** As JSON, because UTF-8 would make one key of two that differ in lone surrogates. */
const keyOf = (key: string): string => (key.length < digestLength ? key : hash('sha256', JSON.stringify(key), 'hex'));

/** V8 itself copies slices shorter than this. */
const shortestSlice = 13;

/** Returns the same text in its own memory: a slice, such as a parameter of a URL, keeps alive the whole text that it was cut from. */
export const copied = (text: string): string =>
  text.length < shortestSlice ? text : Buffer.from(text, 'utf16le').toString('utf16le');

const bytesOf = (key: string): number => entryOverhead + key.length;

/** Expired entries that are dropped when an entry is added. */
const purgedAtOnce = 4;

interface CacheOptions<V> {
  /** The label `name` of the metrics cache_entries and cache_bytes. */
  readonly name: string;
  readonly maxEntries: number;
  readonly maxBytes: number;
  /** Milliseconds after which an entry is gone. */
  readonly ttl: number;
  /** Bytes of what the value holds, if that varies. */
  readonly sizeOf?: (value: V) => number;
  /** Milliseconds; unless stated a monotonic clock, so that an entry that has expired stays so if the system clock is set back. */
  readonly clock?: () => number;
}

interface Figures {
  readonly entries: number;
  readonly bytes: number;
}

interface Counted extends Figures {
  readonly name: string;
}

/** Weak, because the store of a list that is not cached has caches for one request. */
const all = new Set<WeakRef<Counted>>();
const dropped = new FinalizationRegistry<WeakRef<Counted>>((reference) => all.delete(reference));

function include(one: Counted): void {
  const reference = new WeakRef(one);
  all.add(reference);
  dropped.register(one, reference);
}

/** Entries and bytes of all of them, by name. */
export function cacheFigures(): ReadonlyMap<string, Figures> {
  const figures = new Map<string, Figures>();
  for (const reference of all) {
    const one = reference.deref();
    if (one === undefined) continue;
    const { entries = 0, bytes = 0 } = figures.get(one.name) ?? {};
    figures.set(one.name, { entries: entries + one.entries, bytes: bytes + one.bytes });
  }
  return figures;
}

/** Keeps the entries that were used last, up to a number, to a sum of bytes and to an age. */
export class BoundedCache<V extends object | string | number | boolean> implements Counted {
  readonly name: string;
  readonly #cache: LRUCache<string, V>;
  readonly #maxEntries: number;
  readonly #ttl: number;

  constructor({ name, maxEntries, maxBytes, ttl, sizeOf = () => 0, clock = () => performance.now() }: CacheOptions<V>) {
    this.name = name;
    this.#maxEntries = maxEntries;
    this.#ttl = ttl;
    // With `max` it would take the memory for all entries at once.
    this.#cache = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: (value, key) => bytesOf(key) + sizeOf(value),
      ttl,
      ttlResolution: 0,
      perf: { now: clock },
      // Otherwise iterators skip the entries to purge.
      allowStale: true,
    });
    include(this);
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

  /** The same without counting as a use. */
  peek(key: string): V | undefined {
    return this.#cache.peek(keyOf(key), { allowStale: false });
  }

  has(key: string): boolean {
    return this.#cache.has(keyOf(key));
  }

  /** `ttl`: of this entry, in milliseconds. */
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

  /** Drops the least recently used entries until no more than `maxBytes` are left. */
  trim(maxBytes: number): void {
    while (this.bytes > maxBytes) this.#cache.pop();
  }

  /** Yields long keys as their digests, by which get() and delete() find nothing. */
  *[Symbol.iterator](): IterableIterator<[string, V]> {
    for (const entry of this.#cache.entries() as Iterable<[string, V]>) if (this.#cache.has(entry[0])) yield entry;
  }

  /** Calls the function with each value, the most recently used first. Drops the entries for which it returns false. */
  retain(isRetained: (value: V) => boolean): void {
    const rejected: string[] = [];
    for (const [key, value] of this) if (!isRetained(value)) rejected.push(key);
    for (const key of rejected) this.#cache.delete(key);
  }

  /**
   * Drops expired entries that are not requested again: a few at each addition, because dropping all at once would block the event loop.
   * They are the least recently used ones.
   */
  #purge(): void {
    for (let count = 0; count < purgedAtOnce; count += 1) {
      const { done, value: oldest } = this.#cache.rkeys().next();
      if (done === true || this.#cache.has(oldest)) return;
      this.#cache.delete(oldest);
    }
  }
}

/**
 * Values that exist while something is in progress: the code that adds one deletes it at the end. Their number is limited by the
 * requests in flight. None is evicted, because limits depend on them.
 */
export class InProgress<V> implements Counted {
  readonly name: string;
  readonly #values = new Map<string, V>();
  #bytes = 0;

  /** `name`: as of a cache. */
  constructor(name: string) {
    this.name = name;
    include(this);
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
    const kept = keyOf(key);
    // A Map keeps the key that it has.
    if (this.#values.has(kept)) this.#values.set(kept, value);
    else {
      this.#bytes += bytesOf(kept);
      this.#values.set(copied(kept), value);
    }
  }

  delete(key: string): void {
    const kept = keyOf(key);
    if (this.#values.delete(kept)) this.#bytes -= bytesOf(kept);
  }

  [Symbol.iterator](): IterableIterator<[string, V]> {
    return this.#values.entries();
  }
}
