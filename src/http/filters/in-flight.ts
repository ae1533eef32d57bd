import { tooManyRequests } from '../../errors.ts';
import type { Filter } from '../exchange.ts';

const exempt = new Set(['/healthz', '/livez', '/readyz']);

/** At most so many requests at once, watches apart; probes are always answered. */
export function inFlight(most: () => number): Filter {
  let current = 0;
  return ({ path, info, res }) => {
    if (exempt.has(path) || info.verb === 'watch') return;
    if (current >= most()) throw tooManyRequests('too many requests at once, please try again later', 1);
    current += 1;
    res.once('close', () => {
      current -= 1;
    });
  };
}

/** The same for each user, so that one cannot take all places. */
export function perUser(most: () => number): Filter {
  const current = new Map<string, number>();
  return ({ user, info, res }) => {
    if (user === undefined || info.verb === 'watch') return;
    const { username } = user;
    const count = current.get(username) ?? 0;
    if (count >= most()) throw tooManyRequests('too many requests of this user at once, please try again later', 1);
    current.set(username, count + 1);
    res.once('close', () => {
      const left = (current.get(username) ?? 1) - 1;
      if (left === 0) current.delete(username);
      else current.set(username, left);
    });
  };
}
