/**
 * Rotates refresh tokens. Each token is valid for one use, and a retry within the grace period gets the same new
 * refresh token. Any later use revokes the session (RFC 9700 section 4.14.2).
 */
import { reuses } from '../../runtime/metrics/definitions.ts';
import { BoundedCache } from '../../runtime/bounded-cache.ts';
import { rfc3339, type Clock, parseMilliseconds } from '../../runtime/time.ts';
import { hashToken, sameHash, type RefreshTokens } from '../refresh-tokens.ts';
import type { Lifetimes } from './lifetimes.ts';
import type { SessionStore } from './session-store.ts';
import type { Session } from './session.ts';

/**
 * Milliseconds for which a failed write of a rotation is remembered, because the cluster may have applied the write
 * without a response.
 */
const unconfirmedLife = 600_000;

/** A refresh token that is valid now, and its session. */
export interface FoundRefreshToken {
  readonly session: Session;
  /** Returns the new refresh token; 'changed' if another request changed the session since it was found. */
  use(): Promise<Refreshed | 'changed'>;
}

export interface Refreshed {
  readonly session: Session;
  readonly refreshToken: string;
}

export class Rotation {
  readonly #store: SessionStore;
  readonly #lifetimes: Lifetimes;
  readonly #tokens: RefreshTokens;
  readonly #clock: Clock;
  /** Times of failed writes, by the hash of the refresh token that was rotated. */
  readonly #unconfirmed: BoundedCache<number>;

  constructor(options: { store: SessionStore; lifetimes: Lifetimes; tokens: RefreshTokens; clock: Clock }) {
    this.#store = options.store;
    this.#lifetimes = options.lifetimes;
    this.#tokens = options.tokens;
    this.#clock = options.clock;
    this.#unconfirmed = new BoundedCache({
      name: 'unanswered_refreshes',
      maxEntries: 10_000,
      maxBytes: 4 * 1024 * 1024,
      ttl: unconfirmedLife,
      clock: () => this.#clock.now(),
    });
  }

  /**
   * Finds the session of a refresh token (RFC 6749 section 6) of this client. Does not rotate the token, but a reused
   * token revokes its session. `isRetry` is true if another request changed the session.
   */
  async find(
    token: string,
    clientID: string,
    isRetry: boolean,
  ): Promise<FoundRefreshToken | 'unknown' | 'reused' | 'ended'> {
    const sid = this.#tokens.sessionOf(token);
    if (sid === undefined) return 'unknown';
    const known = this.#store.known(sid);
    // The cache may lag behind another replica. The cache suffices for a rotation, because the write of a rotation
    // fails if the session has changed.
    if (!isRetry && known?.spec.clientID === clientID && this.#stateOf(known, token) === 'rotate')
      return { session: known, use: () => this.#rotate(known, token) };
    const session = await (known !== undefined || isRetry ? this.#store.readLatest(sid) : this.#store.read(sid));
    if (session?.spec.clientID !== clientID) return 'unknown';
    const state = this.#stateOf(session, token);
    if (state === 'reused') {
      await this.#store.revoke(session);
      reuses.add({ token: 'refresh token' });
    }
    if (state === 'reused' || state === 'ended') return state;
    const uses = {
      rotate: () => this.#rotate(session, token),
      repeat: async () => ({ session, refreshToken: this.#tokens.successor(token) }),
      unconfirmed: () => this.#reissue(session, token),
    };
    return { session, use: uses[state] };
  }

  /**
   * Returns the session of a refresh token, and whether the token is valid now. Changes nothing. Reads from the
   * cluster, because the cache may lag behind another replica.
   */
  async inspect(token: string): Promise<{ readonly session: Session; readonly isCurrent: boolean } | undefined> {
    const sid = this.#tokens.sessionOf(token);
    const session = sid === undefined ? undefined : await this.#store.readLatest(sid);
    return session && { session, isCurrent: !['reused', 'ended'].includes(this.#stateOf(session, token)) };
  }

  /**
   * Returns the state of a token. 'unconfirmed': the token was rotated, but no client has received the new refresh
   * token.
   */
  #stateOf(session: Session, token: string): 'rotate' | 'repeat' | 'unconfirmed' | 'reused' | 'ended' {
    if (!this.#lifetimes.isActive(session)) return 'ended';
    const { currentHash, previousHash, rotatedAt } = session.status;
    const presented = hashToken(token);
    if (sameHash(presented, currentHash)) return 'rotate';
    if (!sameHash(presented, previousHash)) return 'reused';
    const now = this.#clock.now();
    if (now - parseMilliseconds(rotatedAt ?? '') <= this.#lifetimes.settings.refreshGrace) return 'repeat';
    return now - (this.#unconfirmed.get(presented) ?? -Infinity) <= unconfirmedLife ? 'unconfirmed' : 'reused';
  }

  async #rotate(session: Session, token: string): Promise<Refreshed | 'changed'> {
    const now = rfc3339(this.#clock.now());
    const refreshToken = this.#tokens.successor(token);
    const previousHash = hashToken(token);
    try {
      const updated = await this.#store.replace(session, {
        phase: 'Active',
        currentHash: hashToken(refreshToken),
        previousHash,
        rotatedAt: now,
        lastUsedAt: now,
      });
      return updated === undefined ? 'changed' : { session: updated, refreshToken };
    } catch (error) {
      this.#unconfirmed.set(previousHash, this.#clock.now());
      throw error;
    }
  }

  /**
   * Returns the new refresh token that an earlier failed request could not return. The grace period for retries starts
   * now, on every replica.
   */
  async #reissue(session: Session, token: string): Promise<Refreshed | 'changed'> {
    const updated = await this.#store.replace(session, {
      ...session.status,
      rotatedAt: rfc3339(this.#clock.now()),
    });
    if (updated === undefined) return 'changed';
    this.#unconfirmed.delete(hashToken(token));
    return { session: updated, refreshToken: this.#tokens.successor(token) };
  }
}
