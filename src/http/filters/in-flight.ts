import { hostOf } from '../../accounts/host-of.ts';
import { InProgress } from '../../bounded-cache.ts';
import { tooManyRequests } from '../../errors.ts';
import type { Exchange, Filter } from '../exchange.ts';
import { countInFlight } from '../metrics.ts';
import { probes } from './probes.ts';

/** A watch costs little but its buffer, and kubectl, consoles and controllers hold a handful each. */
const mostWatchesPerUser = 1_000;

type Kind = 'login' | 'read' | 'change';

/** Changes go to etcd and logins to a hash, and both have bodies that come as slowly as their sender likes: reading waits for neither. */
function kindOf({ req: { method }, info }: Exchange): Kind {
  if (info.prefix === 'oauth') return 'login';
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS' ? 'read' : 'change';
}

/** At most so many requests of a kind at once, watches and other streams apart; probes are always answered. */
export function inFlight(most: () => number): Filter {
  const current: Record<Kind, number> = { login: 0, read: 0, change: 0 };
  return (exchange) => {
    const { path, info } = exchange;
    if (probes.has(path) || info.isLongRunning) return;
    const kind = kindOf(exchange);
    const limit = most();
    if (current[kind] >= limit)
      throw tooManyRequests(`${limit} ${kind}s are under way (requests.maxInFlight); please try again later`, 1);
    current[kind] += 1;
    countInFlight(kind, 1);
    exchange.onAnswered(() => {
      current[kind] -= 1;
      countInFlight(kind, -1);
    });
  };
}

/** The same for each user, and for each address that shows no identity, of IPv6 each /64, so that one cannot take all places. */
export function perUser(most: () => number): Filter {
  const setting = 'requests.maxInFlightPerUser';
  const requests = {
    login: new Places('logins', setting),
    read: new Places('reads', setting),
    change: new Places('changes', setting),
  };
  const watches = new Places('watches and streams');
  return (exchange) => {
    const { user, sourceIP, info, path } = exchange;
    if (user === undefined && probes.has(path)) return;
    const whose = user === undefined ? `address ${hostOf(sourceIP)}` : `user ${user.username}`;
    const places = info.isLongRunning ? watches : requests[kindOf(exchange)];
    exchange.onAnswered(places.take(whose, info.isLongRunning ? mostWatchesPerUser : most()));
  };
}

/** Of each user or address. */
export class Places {
  readonly #what: string;
  readonly #setting: string;
  readonly #taken = new InProgress<number>('places_taken');

  /** `setting`: what sets the limit, where anything does. */
  constructor(what: string, setting?: string) {
    this.#what = what;
    this.#setting = setting === undefined ? '' : ` (${setting})`;
  }

  /** Answers what gives the place back. Throws StatusError 429. */
  take(whose: string, most: number): () => void {
    const taken = this.#taken.get(whose) ?? 0;
    if (taken >= most) {
      const kind = whose.split(' ')[0];
      const what = `${most} ${this.#what} of this ${kind} are under way${this.#setting}`;
      throw tooManyRequests(`${what}; please try again later`, 1);
    }
    this.#taken.set(whose, taken + 1);
    return () => {
      const left = (this.#taken.get(whose) ?? 1) - 1;
      if (left === 0) this.#taken.delete(whose);
      else this.#taken.set(whose, left);
    };
  }
}
