import { LRUCache } from 'lru-cache';

interface Options {
  /** Milliseconds. */
  readonly ttl?: number;
  readonly perf?: { now(): number };
}

/** Keeps so many entries, those that were used last. It takes memory for those that are there; with lru-cache's `max` it takes it for all at once. */
export const boundedCache = <V extends object | string | number | boolean>(
  most: number,
  options: Options = {},
): LRUCache<string, V> => new LRUCache({ maxSize: most, sizeCalculation: () => 1, ...options });
