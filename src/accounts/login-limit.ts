/**
 * Login protection (API.md 2): counts failures only, in bounded tables of this replica.
 * A hard limit per (user, address), a delay per user that doubles from the third failure on, wider limits per address and per
 * client. Names that do not exist count like those that do.
 */
import { LRUCache } from 'lru-cache';
import type { LoginLimit } from '../config/schema.ts';

export interface LoginAttempt {
  readonly username: string;
  readonly address: string;
  readonly client: string;
}

const tableSize = 20_000;
const firstDelayed = 3;
const longestDelay = 60_000;

interface Failures {
  count: number;
  /** Milliseconds since the epoch. */
  last: number;
}

export class LoginLimiter {
  readonly #limit: () => LoginLimit;
  readonly #clock: () => number;
  readonly #table = new LRUCache<string, Failures>({ max: tableSize });

  constructor(limit: () => LoginLimit, clock: () => number = Date.now) {
    this.#limit = limit;
    this.#clock = clock;
  }

  /** Whole seconds to wait before this attempt may be judged; 0 if it may now. Asked before the password is looked at. */
  retryAfter(attempt: LoginAttempt): number {
    const { maxTries, within, perAddress, perClient } = this.#limit();
    const now = this.#clock();
    let until = 0;
    const hard = (key: string, most: number): void => {
      const failures = this.#read(key, now);
      if (failures !== undefined && failures.count >= most) until = Math.max(until, failures.last + within);
    };
    hard(pairKey(attempt), maxTries);
    hard(`a:${attempt.address}`, perAddress);
    hard(`c:${attempt.client}`, perClient);
    const user = this.#read(`u:${attempt.username}`, now);
    if (user !== undefined && user.count >= firstDelayed)
      until = Math.max(until, user.last + Math.min(longestDelay, 1_000 * 2 ** (user.count - firstDelayed)));
    return until <= now ? 0 : Math.ceil((until - now) / 1_000);
  }

  failed(attempt: LoginAttempt): void {
    const now = this.#clock();
    for (const key of [pairKey(attempt), `a:${attempt.address}`, `c:${attempt.client}`, `u:${attempt.username}`])
      this.#table.set(key, { count: (this.#read(key, now)?.count ?? 0) + 1, last: now });
  }

  /** A success forgives the user, not the address: one good account must not cover for guesses at others. */
  succeeded(attempt: LoginAttempt): void {
    this.#table.delete(pairKey(attempt));
    this.#table.delete(`u:${attempt.username}`);
  }

  #read(key: string, now: number): Failures | undefined {
    const failures = this.#table.get(key);
    return failures === undefined || now - failures.last >= this.#limit().within ? undefined : failures;
  }
}

const pairKey = ({ username, address }: LoginAttempt): string => `p:${JSON.stringify([username, address])}`;
