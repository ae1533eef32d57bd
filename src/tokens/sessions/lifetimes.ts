/** Lifetimes of sessions (docs/guides/tokens.md). */
import { type Clock, parseMilliseconds } from '../../runtime/time.ts';
import { timesOf, type Session } from './session.ts';

/** Lifetimes in milliseconds. */
export interface SessionLifetimes {
  readonly refreshTokenIdle: number;
  readonly refreshGrace: number;
  readonly sessionMaxAge: number;
  readonly accessTokenMaxAge: number;
}

/** Determines from the current time and configuration whether sessions are still valid. */
export class Lifetimes {
  readonly #settings: () => SessionLifetimes;
  readonly #clock: Clock;

  constructor(settings: () => SessionLifetimes, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
  }

  get settings(): SessionLifetimes {
    return this.#settings();
  }

  isActive(session: Session): boolean {
    const now = this.#clock.now();
    const { expiresAt, lastUse } = timesOf(session);
    const { phase, currentHash } = session.status;
    // Sessions without a refresh token do not become idle.
    const idleFrom = currentHash === undefined ? Infinity : lastUse + this.settings.refreshTokenIdle;
    return phase === 'Active' && expiresAt > now && idleFrom > now;
  }

  /** Returns whether the code of the session can still be redeemed. */
  isPending({ spec, status }: Session): boolean {
    return status.phase === 'Pending' && parseMilliseconds(spec.code?.redeemBefore ?? '') > this.#clock.now();
  }

  isOver(session: Session): boolean {
    return !this.isActive(session) && !this.isPending(session);
  }

  /** Returns the time at which a login and all sessions that it authorized expire, in milliseconds since the epoch. */
  endOf(authenticatedAt: string): number {
    return parseMilliseconds(authenticatedAt) + this.settings.sessionMaxAge;
  }
}
