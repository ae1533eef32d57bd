/** Hashes of passwords as they are stored, and what stands beside each under keys of its own. */
import { createHash, createHmac, createSecretKey, randomBytes } from 'node:crypto';
import { parametersOf } from '../../config/hash-parameters.ts';
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

/**
 * Beside a hash that was made of the same password as one before: the fingerprint of this hash, and the credentialID that goes on. It
 * says nothing of any other hash.
 */
export const rehashedKey = (key: string): string => `${key}.rehashed`;
/** Beside a hash that its user has chosen: when. */
export const changedKey = (key: string): string => `${key}.changed`;
/** Beside a hash: when its user was last unlocked. */
export const unlockedKey = (key: string): string => `${key}.unlocked`;

export const credentialIDOf = (hash: string): string => createHash('sha256').update(hash).digest('hex').slice(0, 32);

export interface Credential {
  /** Undefined while the Secret that holds it is missing: then nobody can log in as this user. */
  readonly passwordHash: string | undefined;
  /** Changes with the password: sessions that began with another one are over. */
  readonly credentialID: string;
}

/** A hash that this server does not verify is none. `rehashed`: what stands beside it, see `rehashedKey`. */
export function credentialOf(stored: string | undefined, rehashed: string | undefined): Credential {
  if (stored === undefined || parametersOf(stored) === undefined) return { passwordHash: undefined, credentialID: '' };
  const own = credentialIDOf(stored);
  const [of, before] = rehashed?.split(' ') ?? [];
  return { passwordHash: stored, credentialID: of === own && before !== undefined ? before : own };
}
