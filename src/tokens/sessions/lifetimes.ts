/** Lifetimes of sessions (docs/tokens.md). */
import { type Clock, parseMilliseconds } from '../../runtime/time.ts';
import { timesOf, type Session } from './session.ts';

/** In milliseconds. */
export interface SessionLives {
  readonly refreshTokenIdle: number;
  readonly refreshGrace: number;
  readonly sessionMaxAge: number;
  readonly accessTokenMaxAge: number;
}

/** Whether a session lives now, by what the configuration says now. */
export class Lifetimes {
  readonly #settings: () => SessionLives;
  readonly #clock: Clock;

  constructor(settings: () => SessionLives, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
  }

  get settings(): SessionLives {
    return this.#settings();
  }

  isActive(session: Session): boolean {
    const now = this.#clock.now();
    const { expiresAt, lastUse } = timesOf(session);
    const { phase, currentHash } = session.status;
    // What nobody can refresh is not idle.
    const idleFrom = currentHash === undefined ? Infinity : lastUse + this.settings.refreshTokenIdle;
    return phase === 'Active' && expiresAt > now && idleFrom > now;
  }

  /** Whether its code may still be redeemed. */
  isPending({ spec, status }: Session): boolean {
    return status.phase === 'Pending' && parseMilliseconds(spec.code?.redeemBefore ?? '') > this.#clock.now();
  }

  isOver(session: Session): boolean {
    return !this.isActive(session) && !this.isPending(session);
  }

  /** When all ends that began with a login, in milliseconds since the epoch: what is let in by it does not outlive it. */
  endOf(authenticatedAt: string): number {
    return parseMilliseconds(authenticatedAt) + this.settings.sessionMaxAge;
  }
}
