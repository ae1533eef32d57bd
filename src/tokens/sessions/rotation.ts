/**
 * Refresh tokens: each is used once, for its successor, which a retry within the grace period gets too. Using one again after that ends
 * the session (RFC 9700 section 4.14.2).
 */
import { BoundedCache } from '../../runtime/bounded-cache.ts';
import { rfc3339, type Clock, parseMilliseconds } from '../../runtime/time.ts';
import { hashToken, sameHash, type RefreshTokens } from '../refresh-tokens.ts';
import type { Lifetimes } from './lifetimes.ts';
import type { SessionStore } from './session-store.ts';
import type { Session } from './session.ts';

/** So long a refresh that the cluster did not answer is remembered: it may have been written all the same, once the cluster was back. */
const unansweredLife = 600_000;

/** A refresh token that may be used now, and its session. */
export interface FoundRefreshToken {
  readonly session: Session;
  /** Returns its successor; 'changed' if another request changed the session since it was found. */
  use(): Promise<Refreshed | 'changed'>;
}

export interface Refreshed {
  readonly session: Session;
  readonly refreshToken: string;
}

export class Rotation {
  readonly #store: SessionStore;
  readonly #lives: Lifetimes;
  readonly #tokens: RefreshTokens;
  readonly #clock: Clock;
  /** Hashes of refresh tokens whose rotation got no answer here, and when. */
  readonly #unanswered: BoundedCache<number>;

  constructor(options: { store: SessionStore; lives: Lifetimes; tokens: RefreshTokens; clock: Clock }) {
    this.#store = options.store;
    this.#lives = options.lives;
    this.#tokens = options.tokens;
    this.#clock = options.clock;
    this.#unanswered = new BoundedCache({
      name: 'unanswered_refreshes',
      maxEntries: 10_000,
      maxBytes: 4 * 1024 * 1024,
      ttl: unansweredLife,
      clock: () => this.#clock.now(),
    });
  }

  /**
   * Finds the session of a refresh token (RFC 6749 section 6) of this client. Spends nothing, but a token that was used before ends its
   * session. `isRetry`: another request changed the session.
   */
  async find(
    token: string,
    clientID: string,
    isRetry: boolean,
  ): Promise<FoundRefreshToken | 'unknown' | 'reused' | 'ended'> {
    const sid = this.#tokens.sessionOf(token);
    if (sid === undefined) return 'unknown';
    const known = this.#store.known(sid);
    // The watch may lag behind another replica: what it brought is good for a rotation only, which the cluster confirms or refuses.
    if (!isRetry && known?.spec.clientID === clientID && this.#stateOf(known, token) === 'rotate')
      return { session: known, use: () => this.#rotate(known, token) };
    const session = await (known !== undefined || isRetry ? this.#store.readAfresh(sid) : this.#store.read(sid));
    if (session?.spec.clientID !== clientID) return 'unknown';
    const state = this.#stateOf(session, token);
    if (state === 'reused') await this.#store.end(session);
    if (state === 'reused' || state === 'ended') return state;
    const uses = {
      rotate: () => this.#rotate(session, token),
      repeat: async () => ({ session, refreshToken: this.#tokens.successor(token) }),
      unanswered: () => this.#answer(session, token),
    };
    return { session, use: uses[state] };
  }

  /**
   * The session that a refresh token of ours belongs to, and whether the token would be taken now, by a read of the cluster: the watch
   * may lag behind another replica. Nothing changes by asking.
   */
  async presented(token: string): Promise<{ readonly session: Session; readonly isCurrent: boolean } | undefined> {
    const sid = this.#tokens.sessionOf(token);
    const session = sid === undefined ? undefined : await this.#store.readAfresh(sid);
    return session && { session, isCurrent: !['reused', 'ended'].includes(this.#stateOf(session, token)) };
  }

  /** State of a token that was presented. 'unanswered': it was rotated, and no client ever got its successor. */
  #stateOf(session: Session, token: string): 'rotate' | 'repeat' | 'unanswered' | 'reused' | 'ended' {
    if (!this.#lives.isActive(session)) return 'ended';
    const { currentHash, previousHash, rotatedAt } = session.status;
    const presented = hashToken(token);
    if (sameHash(presented, currentHash)) return 'rotate';
    if (!sameHash(presented, previousHash)) return 'reused';
    const now = this.#clock.now();
    if (now - parseMilliseconds(rotatedAt ?? '') <= this.#lives.settings.refreshGrace) return 'repeat';
    return now - (this.#unanswered.get(presented) ?? -Infinity) <= unansweredLife ? 'unanswered' : 'reused';
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
      this.#unanswered.set(previousHash, this.#clock.now());
      throw error;
    }
  }

  /** Gives the successor that could not be given when it was made; the grace begins with that, on every replica. */
  async #answer(session: Session, token: string): Promise<Refreshed | 'changed'> {
    const updated = await this.#store.replace(session, {
      ...session.status,
      rotatedAt: rfc3339(this.#clock.now()),
    });
    if (updated === undefined) return 'changed';
    this.#unanswered.delete(hashToken(token));
    return { session: updated, refreshToken: this.#tokens.successor(token) };
  }
}
