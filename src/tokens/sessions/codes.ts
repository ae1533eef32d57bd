/** Authorization codes and device codes: a session in phase Pending starts when its code is used, once. */
import { rfc3339, type Clock } from '../../runtime/time.ts';
import { hashToken, newSessionID, sameHash, type RefreshTokens } from '../refresh-tokens.ts';
import type { SessionCreation } from './creation.ts';
import type { Lifetimes } from './lifetimes.ts';
import type { SessionStore } from './session-store.ts';
import type { Session, SessionCode, SessionSpec } from './session.ts';

/** Whoever has one wait does not say when. */
export type PendingSession = Omit<SessionSpec, 'createdAt' | 'expiresAt' | 'code'> & {
  readonly code: Omit<SessionCode, 'hash' | 'redeemBefore'>;
};

/** 'waiting': for somebody who lets the device in; 'refused': by that person. */
export type Unredeemed = 'unknown' | 'ended' | 'reused' | 'waiting' | 'refused';

/** The session of a code that was not used before. */
export interface FoundCode {
  readonly session: Session;
  /**
   * Starts the session, with a refresh token if it is refreshable. 'ended': the code has expired or was revoked, or the login that it
   * was given for is over; 'changed': another request changed the session since it was found.
   */
  use(isRefreshable: boolean): Promise<Redeemed | 'ended' | 'changed'>;
}

export interface Redeemed {
  readonly session: Session;
  /** Undefined if the session is not refreshable. */
  readonly refreshToken?: string;
}

export class Codes {
  readonly #store: SessionStore;
  readonly #lives: Lifetimes;
  readonly #beginnings: SessionCreation;
  readonly #tokens: RefreshTokens;
  readonly #clock: Clock;

  constructor(options: {
    store: SessionStore;
    lives: Lifetimes;
    beginnings: SessionCreation;
    tokens: RefreshTokens;
    clock: Clock;
  }) {
    this.#store = options.store;
    this.#lives = options.lives;
    this.#beginnings = options.beginnings;
    this.#tokens = options.tokens;
    this.#clock = options.clock;
  }

  /**
   * The code that begins a session, within `life` milliseconds. `refreshable`: the session lives as long as one with a refresh token.
   * `name`: of the session.
   */
  async create(
    { code, ...spec }: PendingSession,
    life: number,
    refreshable: boolean,
    name = newSessionID(),
  ): Promise<string> {
    const token = this.#tokens.first(name);
    const now = this.#clock.now();
    const { sessionMaxAge, accessTokenMaxAge } = this.#lives.settings;
    const until = Math.min(
      now + (refreshable ? sessionMaxAge : accessTokenMaxAge),
      code.authenticatedAt === undefined ? Infinity : this.#lives.endOf(code.authenticatedAt),
    );
    const waiting = { ...code, hash: hashToken(token), redeemBefore: rfc3339(now + life) };
    await this.#beginnings.begin(name, { ...spec, code: waiting }, until, { phase: 'Pending' });
    return token;
  }

  /** The session that a code with our seal names; undefined for any other text. */
  sessionOf(code: string): string | undefined {
    return this.#tokens.sessionOf(code);
  }

  /**
   * Finds the session of a code of this client. Spends nothing, but an authorization code that was used before ends its session (RFC 6749
   * section 4.1.2). `isRetry`: another request changed the session.
   */
  async find(code: string, clientID: string, isRetry: boolean): Promise<FoundCode | Unredeemed> {
    const sid = this.#tokens.sessionOf(code);
    if (sid === undefined) return 'unknown';
    if (!isRetry && this.#isKnownToWait(sid, clientID)) return 'waiting';
    const session = await this.#store.readAfresh(sid);
    if (session === undefined) return 'ended';
    if (!sameHash(hashToken(code), session.spec.code?.hash)) return 'unknown';
    const { phase } = session.status;
    if (phase === 'Active') {
      if (session.spec.code?.redirectURI !== undefined) await this.#store.end(session);
      return 'reused';
    }
    if (session.spec.clientID !== clientID) return 'unknown';
    if (session.spec.userName !== '')
      return {
        session,
        use: (isRefreshable) => this.#use(session, isRefreshable ? this.#tokens.first(sid) : undefined),
      };
    if (this.#lives.isPending(session)) return 'waiting';
    return phase === 'Revoked' ? 'refused' : 'ended';
  }

  /** Whether the watch has brought a device that waits: it polls often, and that is recent enough. */
  #isKnownToWait(sid: string, clientID: string): boolean {
    const known = this.#store.isSilent() ? undefined : this.#store.known(sid);
    return known?.spec.clientID === clientID && known.spec.userName === '' && this.#lives.isPending(known);
  }

  /** Whether the login that a code was given for still lives, by a read of the cluster: it may have ended at the same instant. */
  async #hasLogin({ spec: { code } }: Session): Promise<boolean> {
    if (code?.login === undefined) return true;
    const login = await this.#store.readAfresh(code.login);
    return login !== undefined && this.#lives.isActive(login);
  }

  async #use(session: Session, refreshToken: string | undefined): Promise<Redeemed | 'ended' | 'changed'> {
    if (!this.#lives.isPending(session) || !(await this.#hasLogin(session))) return 'ended';
    const started = await this.#store.replace(session, {
      phase: 'Active',
      ...(refreshToken === undefined ? {} : { currentHash: hashToken(refreshToken) }),
      lastUsedAt: rfc3339(this.#clock.now()),
    });
    if (started === undefined) return 'changed';
    await this.#beginnings.makeRoomFor(started);
    return { session: started, ...(refreshToken === undefined ? {} : { refreshToken }) };
  }
}
