/** Stored password hashes, and the keys beside each hash in its Secret. */
import { createHash, createHmac, createSecretKey, randomBytes } from 'node:crypto';
import { parametersOf } from '../../config/hash-parameters.ts';
import { BoundedCache } from '../../runtime/bounded-cache.ts';

/** Milliseconds after which a secret is hashed again. */
const ttl = 24 * 3_600_000;
/** Maximum number of clients in the cache. A full cache drops the least recently used client. */
const maxEntries = 1_000;

/**
 * Cache of verified client secrets. A client that sends its secret with each request therefore costs only one hash.
 * Entries are HMACs over client, hash and secret under a random key of this process: without the key they reveal
 * nothing.
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

/**
 * Returns the key for data about a hash that replaced a weaker hash of the same password. The value contains the
 * fingerprint of the new hash and the inherited credentialID. The value applies to no other hash.
 */
export const rehashedKey = (key: string): string => `${key}.rehashed`;
/** Returns the key for the time at which the user chose the password. `key` is the key of the hash. */
export const changedKey = (key: string): string => `${key}.changed`;
/** Returns the key for the time at which the user was last unlocked. `key` is the key of the hash. */
export const unlockedKey = (key: string): string => `${key}.unlocked`;

export const credentialIDOf = (hash: string): string => createHash('sha256').update(hash).digest('hex').slice(0, 32);

export interface Credential {
  /** Hash; undefined while its Secret is missing. Nobody can log in as this user without a hash. */
  readonly passwordHash: string | undefined;
  /**
   * Identifier that changes with the password. A change revokes the sessions that were created with another password.
   */
  readonly credentialID: string;
}

/** Ignores hashes that this server cannot verify. `rehashed` is the value of `rehashedKey`. */
export function credentialOf(stored: string | undefined, rehashed: string | undefined): Credential {
  if (stored === undefined || parametersOf(stored) === undefined) return { passwordHash: undefined, credentialID: '' };
  const own = credentialIDOf(stored);
  const [of, before] = rehashed?.split(' ') ?? [];
  return { passwordHash: stored, credentialID: of === own && before !== undefined ? before : own };
}
