/** Caches the namespaces in which callers are allowed to list resources (ADR 16). */
import { decisionKey } from '../auth/authorizers/access-review.ts';
import type { AccessReviews } from '../auth/authorizers/authorizer.ts';
import { holderOf } from '../auth/user.ts';
import type { Granted } from '../cluster/catalogue/granted-namespaces.ts';
import { BoundedCache, type CacheOptions } from '../runtime/bounded-cache.ts';
import type { Clock } from '../runtime/time.ts';
import { NamespaceAccess, type ListRight } from './namespace-access.ts';

const maxBytes = 64 * 1024 * 1024;
/** Approximate bytes of an entry without decisions. */
const entryBytes = 2_048;
/** Approximate bytes of a decision, including its part of the set and of the filter of visible namespaces. */
const decisionBytes = 250;
/** Milliseconds without a request after which an entry is dropped. */
const ttl = 10 * 60_000;

interface Entry {
  readonly access: NamespaceAccess;
  readonly bytes: number;
}

/** Entries of one holder (holderOf), by caller and resource. */
interface Share {
  readonly entries: BoundedCache<Entry>;
  readonly bytes: number;
}

/** Cache with an entry per caller and resource. Each holder has at most a quarter of the cache. */
export class NamespaceAccessCache {
  readonly #reviews: AccessReviews;
  readonly #clock: Clock;
  readonly #shares: BoundedCache<Share>;

  constructor(reviews: AccessReviews, clock: Clock) {
    this.#reviews = reviews;
    this.#clock = clock;
    this.#shares = this.#createCache<Share>({ name: 'namespace_access', maxBytes });
  }

  /** Returns the namespaces of a caller after `update`, and throws like it. */
  async of(right: ListRight, candidates: Granted): Promise<NamespaceAccess> {
    const holder = holderOf(right.user);
    const key = decisionKey(right.user, right.attributes);
    const share = this.#shares.get(holder) ?? this.#addShare(holder);
    const { entries } = share;
    let entry = entries.get(key);
    if (entry === undefined) {
      entry = { access: new NamespaceAccess(right, this.#reviews, this.#clock), bytes: entryBytes };
      entries.set(key, entry);
    }
    try {
      await entry.access.update(candidates);
      return entry.access;
    } finally {
      const bytes = entryBytes + entry.access.size * decisionBytes;
      if (bytes !== entry.bytes) entries.set(key, { ...entry, bytes });
      if (entries.bytes !== share.bytes) this.#shares.set(holder, { entries, bytes: entries.bytes });
    }
  }

  #addShare(holder: string): Share {
    const share = { entries: this.#createCache<Entry>({ maxBytes: maxBytes / 4 }), bytes: entryBytes };
    this.#shares.set(holder, share);
    return share;
  }

  #createCache<V extends { readonly bytes: number }>(
    options: Pick<CacheOptions<V>, 'name' | 'maxBytes'>,
  ): BoundedCache<V> {
    return new BoundedCache({
      ...options,
      maxEntries: options.maxBytes / entryBytes,
      ttl,
      renewsOnGet: true,
      sizeOf: ({ bytes }) => bytes,
      clock: () => this.#clock.monotonic(),
    });
  }
}
