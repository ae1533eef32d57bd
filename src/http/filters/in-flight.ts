import { hostOf } from '../../accounts/host-of.ts';
import { tooManyRequests } from '../../errors.ts';
import type { Filter } from '../exchange.ts';
import { probes } from './probes.ts';

/** A watch costs little but its buffer, and kubectl, consoles and controllers hold a handful each. */
const mostWatchesPerUser = 1_000;

/**
 * At most so many requests at once, watches apart; probes are always answered. Logins, whose bodies come from anybody, have as many
 * places of their own: whoever fills them does not keep others from reading.
 */
export function inFlight(most: () => number): Filter {
  const current = { oauth: 0, other: 0 };
  return (exchange) => {
    const { path, info } = exchange;
    if (probes.has(path) || info.isLongRunning) return;
    const kind = info.prefix === 'oauth' ? 'oauth' : 'other';
    if (current[kind] >= most()) throw tooManyRequests('too many requests at once, please try again later', 1);
    current[kind] += 1;
    exchange.onEnd(() => {
      current[kind] -= 1;
    });
  };
}

/** The same for each user, and for each address that logs in, of IPv6 each /64, so that one cannot take all places. */
export function perUser(most: () => number): Filter {
  const requests = new Places('requests');
  const watches = new Places('watches');
  return (exchange) => {
    const { user, sourceIP, info } = exchange;
    if (user === undefined && info.prefix !== 'oauth') return;
    const whose = user === undefined ? `address ${hostOf(sourceIP)}` : `user ${user.username}`;
    const places = info.isLongRunning ? watches : requests;
    exchange.onEnd(places.take(whose, info.isLongRunning ? mostWatchesPerUser : most()));
  };
}

class Places {
  readonly #what: string;
  readonly #taken = new Map<string, number>();

  constructor(what: string) {
    this.#what = what;
  }

  /** Answers what gives the place back. Throws StatusError 429. */
  take(whose: string, most: number): () => void {
    const taken = this.#taken.get(whose) ?? 0;
    if (taken >= most)
      throw tooManyRequests(`too many ${this.#what} of this ${whose.split(' ')[0]} at once, please try again later`, 1);
    this.#taken.set(whose, taken + 1);
    return () => {
      const left = (this.#taken.get(whose) ?? 1) - 1;
      if (left === 0) this.#taken.delete(whose);
      else this.#taken.set(whose, left);
    };
  }
}
