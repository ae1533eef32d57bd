import { createHmac, createSecretKey, randomBytes } from 'node:crypto';
import { BoundedCache } from '../../runtime/bounded-cache.ts';

/** After this a secret is hashed again, in milliseconds. */
const ttl = 24 * 3_600_000;
/** Of more clients than that those are hashed again that were not here for longest. */
const maxEntries = 1_000;

/**
 * The secrets of clients that were right, so that a client which shows its secret with each request costs one hash and not one each
 * time. What is kept of them fits one client and one hash, and tells nobody anything who has not a key that this process alone has.
 */
export class KnownSecrets {
  readonly #key = createSecretKey(randomBytes(32));
  readonly #marks = new BoundedCache<true>({ name: 'client_secrets', maxEntries, maxBytes: 1024 * 1024, ttl });

  has(client: string, hash: string, secret: string): boolean {
    return this.#marks.get(this.#mark(client, hash, secret)) === true;
  }

  add(client: string, hash: string, secret: string): void {
    this.#marks.set(this.#mark(client, hash, secret), true);
  }

  #mark(...parts: readonly string[]): string {
    return createHmac('sha256', this.#key).update(JSON.stringify(parts)).digest('base64');
  }
}
