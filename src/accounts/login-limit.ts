/**
 * Login protection (API.md 2): counts failures only, in bounded tables of this replica.
 * A hard limit per (user, address), a delay per user that doubles from the third failure on, wider limits per address and per
 * client within a sliding window. Names that do not exist count like those that do.
 */
import { isIPv6 } from 'node:net';
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
/** A window is counted in so many parts, so that it slides with little memory. */
const parts = 10;
/** How long a user's own address is remembered as such. */
const familiarFor = 30 * 24 * 3_600_000;

/** Failures that count until the last of them is a window old. Times in milliseconds since the epoch. */
interface Failures {
  readonly first: number;
  last: number;
  count: number;
}

export class LoginLimiter {
  readonly #limit: () => LoginLimit;
  readonly #clock: () => number;
  /** Of a pair and of a user: one chain, which each failure prolongs. Of an address and of a client: the parts of a window. */
  readonly #table = new LRUCache<string, Failures[]>({ max: tableSize });
  /** When a pair last logged in. */
  readonly #familiar = new LRUCache<string, number>({ max: tableSize });

  constructor(limit: () => LoginLimit, clock: () => number = Date.now) {
    this.#limit = limit;
    this.#clock = clock;
  }

  /** Whole seconds to wait before this attempt may be judged; 0 if it may now. Asked before the password is looked at. */
  retryAfter(attempt: LoginAttempt): number {
    const { maxTries, within, perAddress, perClient } = this.#limit();
    const now = this.#clock();
    const { pair, user, address, client } = keysOf(attempt);
    /** When there are fewer failures than `most` again. */
    const fewerThan = (key: string, most: number): number => {
      const failures = this.#read(key, now);
      let left = countOf(failures);
      let until = 0;
      for (const { last, count } of failures) {
        if (left < most) break;
        until = last + within;
        left -= count;
      }
      return until;
    };
    const [delayed] = this.#read(user, now);
    const until = Math.max(
      fewerThan(pair, maxTries),
      fewerThan(address, perAddress),
      // Else whoever fails often enough locks everybody out.
      this.#isFamiliar(pair, now) ? 0 : fewerThan(client, perClient),
      delayed === undefined || delayed.count < firstDelayed
        ? 0
        : delayed.last + Math.min(longestDelay, 1_000 * 2 ** (delayed.count - firstDelayed)),
    );
    return until <= now ? 0 : Math.ceil((until - now) / 1_000);
  }

  failed(attempt: LoginAttempt): void {
    const { pair, user, address, client } = keysOf(attempt);
    for (const key of [pair, user]) this.#count(key, Infinity);
    for (const key of [address, client]) this.#count(key, this.#limit().within / parts);
  }

  /** A success forgives the user, not the address: one good account must not cover for guesses at others. */
  succeeded(attempt: LoginAttempt): void {
    const { pair, user } = keysOf(attempt);
    this.#table.delete(pair);
    this.#table.delete(user);
    this.#familiar.set(pair, this.#clock());
  }

  /** Forgets the failures of a user, from wherever they came; those of addresses and clients stay. */
  unlock(username: string): void {
    const { pair, user } = keysOf({ username, address: '', client: '' });
    const ofUser = pair.slice(0, -'""]'.length);
    this.#table.delete(user);
    for (const key of this.#table.keys()) if (key.startsWith(ofUser)) this.#table.delete(key);
  }

  /** One more failure, together with those that began less than `length` ago. */
  #count(key: string, length: number): void {
    const now = this.#clock();
    const failures = this.#read(key, now);
    const current = failures.at(-1);
    if (current !== undefined && now - current.first < length) {
      current.count += 1;
      current.last = now;
    } else failures.push({ first: now, last: now, count: 1 });
    this.#table.set(key, failures);
  }

  /** Those that still count, the oldest first. */
  #read(key: string, now: number): Failures[] {
    return this.#table.get(key)?.filter(({ last }) => now - last < this.#limit().within) ?? [];
  }

  #isFamiliar(pair: string, now: number): boolean {
    const at = this.#familiar.get(pair);
    return at !== undefined && now - at < familiarFor;
  }
}

const countOf = (failures: readonly Failures[]): number => failures.reduce((sum, { count }) => sum + count, 0);

function keysOf({ username, address, client }: LoginAttempt): Record<'pair' | 'user' | 'address' | 'client', string> {
  const host = hostOf(address);
  return {
    pair: `p:${JSON.stringify([username, host])}`,
    user: `u:${username}`,
    address: `a:${host}`,
    client: `c:${client}`,
  };
}

/** Of IPv6 the /64, in which one host may take any address; another address as it is. */
function hostOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = '', tail] = address.replace(/%.*$/, '').split('::');
  const groups = head.split(':').filter((group) => group !== '');
  const after = tail?.split(':').filter((group) => group !== '') ?? [];
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - after.length);
  return [...groups, ...Array.from({ length: zeros }, () => '0'), ...after]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}
