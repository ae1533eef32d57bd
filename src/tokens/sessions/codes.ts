/**
 * Authorization codes and device codes. A session in phase Pending starts when its code is used. Each code can be used
 * once.
 */
import { reuses } from '../../runtime/metrics/definitions.ts';
import { rfc3339, type Clock } from '../../runtime/time.ts';
import { hashToken, newSessionID, sameHash, type RefreshTokens } from '../refresh-tokens.ts';
import type { SessionCreation } from './creation.ts';
import type { Lifetimes } from './lifetimes.ts';
import type { SessionStore } from './session-store.ts';
import type { Session, SessionCode, SessionSpec } from './session.ts';

/** A session to start with a code. The store sets the times and the hash. */
export type PendingSession = Omit<SessionSpec, 'createdAt' | 'expiresAt' | 'code'> & {
  readonly code: Omit<SessionCode, 'hash' | 'redeemBefore'>;
};

/**
 * Reason why a code was not redeemed. 'waiting': the user has not yet approved or denied the device; 'refused': the
 * user denied it.
 */
export type Unredeemed = 'unknown' | 'ended' | 'reused' | 'waiting' | 'refused';

/** A code that has not been used yet, and its session. */
export interface FoundCode {
  readonly session: Session;
  /**
   * Starts the session, with a refresh token if `isRefreshable` is true. 'ended': the code has expired or was revoked,
   * or the login that authorized it is no longer active. 'changed': another request changed the session since it was
   * found.
   */
  use(isRefreshable: boolean): Promise<Redeemed | 'ended' | 'changed'>;
}

export interface Redeemed {
  readonly session: Session;
  /** Refresh token; undefined if the session is not refreshable. */
  readonly refreshToken?: string;
}

export class Codes {
  readonly #store: SessionStore;
  readonly #lifetimes: Lifetimes;
  readonly #creation: SessionCreation;
  readonly #tokens: RefreshTokens;
  readonly #clock: Clock;

  constructor(options: {
    store: SessionStore;
    lifetimes: Lifetimes;
    creation: SessionCreation;
    tokens: RefreshTokens;
    clock: Clock;
  }) {
    this.#store = options.store;
    this.#lifetimes = options.lifetimes;
    this.#creation = options.creation;
    this.#tokens = options.tokens;
    this.#clock = options.clock;
  }

  /**
   * Returns a code that starts a session within `life` milliseconds. If `refreshable` is true, the session has the
   * lifetime of a session with a refresh token. `name` is the name of the session.
   */
  async create(
    { code, ...spec }: PendingSession,
    life: number,
    refreshable: boolean,
    name = newSessionID(),
  ): Promise<string> {
    const token = this.#tokens.first(name);
    const now = this.#clock.now();
    const { sessionMaxAge, accessTokenMaxAge } = this.#lifetimes.settings;
    const until = Math.min(
      now + (refreshable ? sessionMaxAge : accessTokenMaxAge),
      code.authenticatedAt === undefined ? Infinity : this.#lifetimes.endOf(code.authenticatedAt),
    );
    const pending = { ...code, hash: hashToken(token), redeemBefore: rfc3339(now + life) };
    await this.#creation.create(name, { ...spec, code: pending }, until, { phase: 'Pending' });
    return token;
  }

  /** Returns the name of the session to which a code belongs; undefined if the code has no valid HMAC. */
  sessionOf(code: string): string | undefined {
    return this.#tokens.sessionOf(code);
  }

  /**
   * Finds the session of a code of this client. Does not redeem the code, but a reused authorization code revokes its
   * session (RFC 6749 section 4.1.2). `isRetry` is true if another request changed the session.
   */
  async find(code: string, clientID: string, isRetry: boolean): Promise<FoundCode | Unredeemed> {
    const sid = this.#tokens.sessionOf(code);
    if (sid === undefined) return 'unknown';
    if (!isRetry && this.#isKnownToWait(sid, clientID)) return 'waiting';
    const session = await this.#store.readLatest(sid);
    if (session === undefined) return 'ended';
    if (!sameHash(hashToken(code), session.spec.code?.hash)) return 'unknown';
    const { phase } = session.status;
    if (phase === 'Active') {
      if (session.spec.code?.redirectURI !== undefined) {
        await this.#store.revoke(session);
        reuses.add({ token: 'code' });
      }
      return 'reused';
    }
    if (session.spec.clientID !== clientID) return 'unknown';
    if (session.spec.userName !== '')
      return {
        session,
        use: (isRefreshable) => this.#use(session, isRefreshable ? this.#tokens.first(sid) : undefined),
      };
    if (this.#lifetimes.isPending(session)) return 'waiting';
    return phase === 'Revoked' ? 'refused' : 'ended';
  }

  /**
   * Returns whether the device waits for approval, according to the cache. Devices poll often, and the cache is recent
   * enough for them.
   */
  #isKnownToWait(sid: string, clientID: string): boolean {
    const known = this.#store.isStale() ? undefined : this.#store.known(sid);
    return known?.spec.clientID === clientID && known.spec.userName === '' && this.#lifetimes.isPending(known);
  }

  /**
   * Returns whether the login that authorized a code is still active. Reads from the cluster, because the login may
   * have been revoked just now.
   */
  async #isLoginActive({ spec: { code } }: Session): Promise<boolean> {
    if (code?.login === undefined) return true;
    const login = await this.#store.readLatest(code.login);
    return login !== undefined && this.#lifetimes.isActive(login);
  }

  async #use(session: Session, refreshToken: string | undefined): Promise<Redeemed | 'ended' | 'changed'> {
    if (!this.#lifetimes.isPending(session) || !(await this.#isLoginActive(session))) return 'ended';
    const started = await this.#store.replace(session, {
      phase: 'Active',
      ...(refreshToken === undefined ? {} : { currentHash: hashToken(refreshToken) }),
      lastUsedAt: rfc3339(this.#clock.now()),
    });
    if (started === undefined) return 'changed';
    await this.#creation.deleteExcess(started);
    return { session: started, ...(refreshToken === undefined ? {} : { refreshToken }) };
  }
}
