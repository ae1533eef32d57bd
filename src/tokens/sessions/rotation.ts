/**
 * Refresh tokens: each is good once and for a successor, which a retry within the grace gets too; one that was used before ends its
 * session (RFC 9700 section 4.14.2, API.md 2).
 */
import { BoundedCache } from '../../runtime/bounded-cache.ts';
import { rfc3339, type Clock, parseMilliseconds } from '../../runtime/time.ts';
import { hashToken, sameHash, type RefreshTokens } from '../refresh-tokens.ts';
import type { Lives } from './lifetimes.ts';
import { contended, type SessionStore } from './session-store.ts';
import type { Session } from './session.ts';

/** So long a refresh that the cluster did not answer is remembered: it may have been written all the same, once the cluster was back. */
const unansweredLife = 600_000;

export type Refreshed = { readonly session: Session; readonly refreshToken: string } | 'unknown' | 'reused' | 'ended';

export class Rotation {
  readonly #store: SessionStore;
  readonly #lives: Lives;
  readonly #tokens: RefreshTokens;
  readonly #clock: Clock;
  /** Hashes of refresh tokens whose rotation got no answer here, and when. */
  readonly #unanswered: BoundedCache<number>;

  constructor(options: { store: SessionStore; lives: Lives; tokens: RefreshTokens; clock: Clock }) {
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

  /** RFC 6749 section 6. `accept` judges the session before it rotates. */
  async refresh(token: string, accept: (session: Session) => boolean): Promise<Refreshed> {
    const sid = this.#tokens.sessionOf(token);
    if (sid === undefined) return 'unknown';
    const known = this.#store.known(sid);
    // The watch may lag behind another replica: on what it brought only a rotation is tried, which the cluster confirms or refuses.
    if (known !== undefined && accept(known) && this.#judge(known, token) === 'rotate') {
      const rotated = await this.#rotate(known, token);
      if (rotated !== undefined) return rotated;
    }
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const isRetry = known !== undefined || attempt > 0;
      const session = await (isRetry ? this.#store.readAfresh(sid) : this.#store.read(sid));
      if (session === undefined || !accept(session)) return 'unknown';
      const verdict = this.#judge(session, token);
      if (verdict === 'repeat') return { session, refreshToken: this.#tokens.successor(token) };
      if (verdict === 'ended') return verdict;
      if (verdict === 'reused') {
        if ((await this.#store.end(session)) !== undefined) return 'reused';
      } else {
        const refreshed = await (verdict === 'rotate' ? this.#rotate(session, token) : this.#answer(session, token));
        if (refreshed !== undefined) return refreshed;
      }
    }
    throw contended();
  }

  /**
   * The session that a refresh token of ours belongs to, and whether the token would be taken now, by a read of the cluster: the watch
   * may lag behind another replica. Nothing changes by asking.
   */
  async presented(token: string): Promise<{ readonly session: Session; readonly isCurrent: boolean } | undefined> {
    const sid = this.#tokens.sessionOf(token);
    const session = sid === undefined ? undefined : await this.#store.readAfresh(sid);
    return session && { session, isCurrent: !['reused', 'ended'].includes(this.#judge(session, token)) };
  }

  /** What a token that was presented means for its session. 'unanswered': it was rotated, and nobody was ever given its successor. */
  #judge(session: Session, token: string): 'rotate' | 'repeat' | 'unanswered' | 'reused' | 'ended' {
    if (!this.#lives.isActive(session)) return 'ended';
    const { currentHash, previousHash, rotatedAt } = session.status;
    const presented = hashToken(token);
    if (sameHash(presented, currentHash)) return 'rotate';
    if (!sameHash(presented, previousHash)) return 'reused';
    const now = this.#clock.now();
    if (now - parseMilliseconds(rotatedAt ?? '') <= this.#lives.settings.refreshGrace) return 'repeat';
    return now - (this.#unanswered.get(presented) ?? -Infinity) <= unansweredLife ? 'unanswered' : 'reused';
  }

  async #rotate(session: Session, token: string): Promise<Refreshed | undefined> {
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
      return updated && { session: updated, refreshToken };
    } catch (error) {
      this.#unanswered.set(previousHash, this.#clock.now());
      throw error;
    }
  }

  /** Gives the successor that could not be given when it was made; the grace begins with that, on every replica. */
  async #answer(session: Session, token: string): Promise<Refreshed | undefined> {
    const updated = await this.#store.replace(session, {
      ...session.status,
      rotatedAt: rfc3339(this.#clock.now()),
    });
    if (updated === undefined) return undefined;
    this.#unanswered.delete(hashToken(token));
    return { session: updated, refreshToken: this.#tokens.successor(token) };
  }
}
