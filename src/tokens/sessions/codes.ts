/** Authorization codes and device codes: sessions in phase Pending, each of which begins when its code is redeemed, once. */
import { rfc3339, type Clock } from '../../runtime/time.ts';
import { hashToken, newSessionID, sameHash, type RefreshTokens } from '../refresh-tokens.ts';
import type { Beginnings } from './creation.ts';
import type { Lives } from './lifetimes.ts';
import { contended, type SessionStore } from './session-store.ts';
import type { Session, SessionCode, SessionSpec } from './session.ts';

/** Whoever has one wait does not say when. */
export type PendingSession = Omit<SessionSpec, 'createdAt' | 'expiresAt' | 'code'> & {
  readonly code: Omit<SessionCode, 'hash' | 'redeemBefore'>;
};

/** 'waiting': for somebody who lets the device in; 'refused': by that person. */
export type Unredeemed = 'unknown' | 'ended' | 'reused' | 'waiting' | 'refused';

export interface Redeemed {
  readonly session: Session;
  /** None where nobody may refresh. */
  readonly refreshToken?: string;
}

export class Codes {
  readonly #store: SessionStore;
  readonly #lives: Lives;
  readonly #beginnings: Beginnings;
  readonly #tokens: RefreshTokens;
  readonly #clock: Clock;

  constructor(options: {
    store: SessionStore;
    lives: Lives;
    beginnings: Beginnings;
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
   * A code begins its session once, on whichever replica. If one that went by a browser comes again, what it began ends (RFC 6749 section
   * 4.1.2). `accept` judges the session before.
   */
  async redeem(
    code: string,
    accept: (session: Session) => boolean,
    refreshable: boolean,
  ): Promise<Redeemed | Unredeemed> {
    const sid = this.#tokens.sessionOf(code);
    if (sid === undefined) return 'unknown';
    if (this.#isKnownToWait(sid, accept)) return 'waiting';
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const session = await this.#store.readAfresh(sid);
      if (session === undefined) return 'ended';
      if (!sameHash(hashToken(code), session.spec.code?.hash)) return 'unknown';
      const { phase } = session.status;
      if (phase === 'Active') {
        if (session.spec.code?.redirectURI === undefined || (await this.#store.end(session)) !== undefined)
          return 'reused';
        continue;
      }
      if (!accept(session)) return 'unknown';
      const isNobodys = session.spec.userName === '';
      if (!this.#lives.isPending(session)) return phase === 'Revoked' && isNobodys ? 'refused' : 'ended';
      if (isNobodys) return 'waiting';
      if (!(await this.#hasLogin(session))) return 'ended';
      const begun = await this.#begin(session, refreshable ? this.#tokens.first(sid) : undefined);
      if (begun !== undefined) return begun;
    }
    throw contended();
  }

  /** A device asks again and again: what the watch brought is new enough for that. */
  #isKnownToWait(sid: string, accept: (session: Session) => boolean): boolean {
    const known = this.#store.isSilent() ? undefined : this.#store.known(sid);
    return known !== undefined && this.#lives.isPending(known) && known.spec.userName === '' && accept(known);
  }

  /** Whether the login that a code was given for still lives, by a read of the cluster: it may have ended at the same instant. */
  async #hasLogin({ spec: { code } }: Session): Promise<boolean> {
    if (code?.login === undefined) return true;
    const login = await this.#store.readAfresh(code.login);
    return login !== undefined && this.#lives.isActive(login);
  }

  async #begin(session: Session, refreshToken: string | undefined): Promise<Redeemed | undefined> {
    const begun = await this.#store.replace(session, {
      phase: 'Active',
      ...(refreshToken === undefined ? {} : { currentHash: hashToken(refreshToken) }),
      lastUsedAt: rfc3339(this.#clock.now()),
    });
    if (begun === undefined) return undefined;
    await this.#beginnings.makeRoomFor(begun);
    return { session: begun, ...(refreshToken === undefined ? {} : { refreshToken }) };
  }
}
