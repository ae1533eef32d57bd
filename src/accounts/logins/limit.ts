/**
 * Login protection (docs/security.md). Counts only failures, in bounded tables:
 * - a hard limit per pair of user and address,
 * - a delay per user that doubles from the third failure on,
 * - wider limits per address and per client within a sliding window.
 *
 * Nonexistent names count like existing names. Users are counted by the typed name: a count shared by an e-mail address
 * and a username would reveal that they belong together. Failed logins with a name other than the username also share
 * one count per account. Logins by username ignore that count. Replicas share the first two counts
 * (shared-failures.ts), and each user's familiar addresses, from which the user has logged in. Failures from other
 * addresses do not delay a login from a familiar address. No login waits for other replicas.
 */
import { BoundedCache } from '../../runtime/bounded-cache.ts';
import { limitedAttempts } from '../../runtime/metrics/definitions.ts';
import type { LoginLimit } from '../../config/schema.ts';
import type { Account } from '../directory/account.ts';
import { allOf, AttemptKeys, defined, type Attempt } from './attempt.ts';
import { UnderWay } from './under-way.ts';
import { Windows, type Standing } from './windows.ts';

/** Maximum entries of each table. A count takes about 300 bytes, and a window with its parts at most 1 KiB. */
const maxEntries = 16_000;
const maxBytes = 16 * 1024 * 1024;
const firstDelayed = 3;
const maxDelay = 60_000;
/** Failures allowed from an IPv6 /48, as a multiple of `perAddress`. */
const networkFactor = 5;
const day = 24 * 3_600_000;
/** Milliseconds for which an address counts as familiar after a user has logged in from it. */
export const familiarFor = 30 * day;

/** Failures of a pair or a user. Each failure extends the time for which earlier failures count. */
export interface Chain {
  readonly count: number;
  /** Time of the last failure, in milliseconds since the epoch. */
  readonly last: number;
  /** Failures up to this time no longer count, on any replica. */
  readonly forgiven?: number;
}

/** A chain counted by this replica, with the keys of its user and account. */
interface OwnChain extends Chain {
  readonly owners: readonly string[];
}

/** A chain under a key made by `mark`, which reveals nothing without the secret of `mark`. */
export interface MarkedChain extends Chain {
  readonly key: string;
}

export class LoginLimiter {
  readonly #limit: () => LoginLimit;
  readonly #clock: () => number;
  readonly #keys: AttemptKeys;
  /** Failures of pairs, users and accounts that this replica has counted. */
  readonly #chains: BoundedCache<OwnChain>;
  /** Failures that other replicas have counted. */
  readonly #peers = new Map<string, ReadonlyMap<string, Chain>>();
  /** Times at which users and accounts were unlocked, by key. Other replicas may not have reset their counts yet. */
  readonly #unlocked: BoundedCache<number>;
  readonly #windows: Windows;
  /** Time of the last login of a pair, to within a day. */
  readonly #familiar: BoundedCache<number>;
  readonly #underWay = new UnderWay();
  #changed: (what: 'failures' | 'familiar') => void = () => undefined;

  /** `mark` turns a pair or a user into the key that other replicas see. */
  constructor(limit: () => LoginLimit, clock: () => number, mark = (text: string): string => text) {
    this.#limit = limit;
    this.#clock = clock;
    this.#keys = new AttemptKeys(mark);
    const options = { maxEntries, maxBytes, ttl: familiarFor, clock };
    this.#chains = new BoundedCache({ ...options, name: 'login_failures', sizeOf: () => 200 });
    this.#windows = new Windows(() => this.#limit().within, options);
    this.#unlocked = new BoundedCache({ ...options, name: 'unlocked_users' });
    this.#familiar = new BoundedCache({ ...options, name: 'familiar_logins' });
  }

  /**
   * Returns the whole seconds to wait before this attempt is allowed; 0 if it is allowed now. Call before verifying a
   * password.
   */
  retryAfter(attempt: Attempt): number {
    const now = this.#clock();
    return secondsUntil(this.#standingsOf(attempt, now), now);
  }

  /** Runs `refuse` with the seconds to wait if this attempt is not allowed now. */
  check(attempt: Attempt, refuse: (seconds: number) => never): void {
    const seconds = this.retryAfter(attempt);
    if (seconds > 0) this.#refuse(attempt, seconds, refuse);
  }

  /** Runs `authenticate` while the attempt is under way (see `enter`), or `refuse` with the seconds to wait. */
  async during<T>(
    attempt: Attempt,
    refuse: (seconds: number) => T,
    authenticate: () => Promise<T>,
    guesses = 1,
  ): Promise<T> {
    const entered = this.enter(attempt, guesses);
    const seconds = typeof entered === 'number' ? entered : await entered;
    if (seconds > 0) return this.#refuse(attempt, seconds, refuse);
    try {
      return await authenticate();
    } finally {
      this.leave(attempt, guesses);
    }
  }

  #refuse<T>({ guesses }: Attempt, seconds: number, refuse: (seconds: number) => T): T {
    limitedAttempts.add({ guesses });
    return refuse(seconds);
  }

  /**
   * Returns the same as `retryAfter`. If the result is 0, the attempt counts as under way until `leave` is called.
   * Attempts under way count as failures, so concurrent attempts cannot exceed the limits. An attempt that exceeds the
   * limits only because of other attempts under way waits for their outcome, because only failures cause a refusal.
   * `guesses` is the number of failures that the attempt may cause.
   */
  enter(attempt: Attempt, guesses = 1): number | Promise<number> {
    const outcome = this.#enter(attempt, guesses);
    if (typeof outcome === 'number') return outcome;
    return new Promise((resolve) => {
      this.#underWay.wait(outcome, () => {
        const again = this.#enter(attempt, guesses);
        if (typeof again !== 'number') return again;
        resolve(again);
        return undefined;
      });
    });
  }

  /** Ends an attempt. Call `failed` or `succeeded` first, unless the attempt had no outcome. */
  leave(attempt: Attempt, guesses = 1): void {
    this.#underWay.remove(allOf(this.#keys.of(attempt)), guesses);
  }

  /** Returns the seconds to wait, or the key under which too many attempts are under way. */
  #enter(attempt: Attempt, guesses: number): number | string {
    const now = this.#clock();
    const standings = this.#standingsOf(attempt, now);
    const seconds = secondsUntil(standings, now);
    if (seconds > 0) return seconds;
    const full = standings.find(({ key, left }) => this.#underWay.count(key) >= left);
    if (full !== undefined) return full.key;
    this.#underWay.add(allOf(this.#keys.of(attempt)), guesses);
    return 0;
  }

  /** Returns the standing of an attempt under each limit that applies. */
  #standingsOf(attempt: Attempt, now: number): Standing[] {
    const { maxTries, within, perAddress, perClient } = this.#limit();
    // One network must not use up the limit of a client.
    const perNetwork = Math.max(perAddress, Math.min(perAddress * networkFactor, Math.floor(perClient / 2)));
    const { pair, addresses, client, owners } = this.#keys.of(attempt);
    // Familiar addresses are exempt from some limits. Otherwise enough failures by anyone would lock out everybody, or
    // a chosen user.
    const isFamiliar = pair !== undefined && this.#isFamiliar(pair, now);
    const standings = (isFamiliar ? addresses.slice(0, 1) : addresses).map((key, at) =>
      this.#windows.standing(key, at === 0 ? perAddress : perNetwork, now),
    );
    if (pair !== undefined) {
      const { count, last } = this.#chain(pair, owners, now);
      standings.unshift({ key: pair, left: maxTries - count, until: count < maxTries ? 0 : last + within });
    }
    if (isFamiliar) return standings;
    if (client !== undefined) standings.push(this.#windows.standing(client, perClient, now));
    for (const owner of owners) standings.push(this.#ofOwner(owner, owners, now));
    return standings;
  }

  #ofOwner(key: string, owners: readonly string[], now: number): Standing {
    const { count, last } = this.#chain(key, owners, now);
    if (count < firstDelayed) return { key, left: firstDelayed - count, until: 0 };
    return { key, left: 1, until: last + Math.min(maxDelay, 1_000 * 2 ** (count - firstDelayed)) };
  }

  failed(attempt: Attempt): void {
    const { pair, addresses, client, owners } = this.#keys.of(attempt);
    const now = this.#clock();
    for (const key of defined(pair, ...owners)) {
      const { count } = this.#own(key, owners, now);
      this.#remember(key, { ...this.#chains.get(key), owners, count: count + 1, last: now });
    }
    for (const key of defined(...addresses, client)) this.#windows.add(key);
    this.#changed('failures');
  }

  /**
   * Resets the failures of the user but not of the address. Otherwise an attacker with one valid account could reset
   * the count of guesses at other accounts.
   */
  succeeded(attempt: Attempt): void {
    const { pair, owners } = this.#keys.of(attempt);
    if (pair === undefined) return;
    const now = this.#clock();
    const before = this.#familiar.get(pair) ?? -Infinity;
    if (now - before >= day) {
      this.#familiar.set(pair, now);
      this.#changed('familiar');
    }
    const forgiven = [pair, ...owners].filter((key) => this.#chain(key, owners, now).count > 0);
    for (const key of forgiven) this.#remember(key, { owners, count: 0, last: 0, forgiven: now });
    if (forgiven.length > 0) this.#changed('failures');
  }

  /**
   * Resets the failures of a user by any name and from any address. Failures of addresses and clients still count.
   * Every replica calls this method when the user is unlocked.
   */
  unlock({ username, email }: Pick<Account, 'username' | 'email'>): void {
    const names = [username, ...(email === undefined ? [] : [email])];
    const all = [
      ...names.map((name) => this.#keys.user('password', name)),
      ...(['name', 'e-mail'] as const).map((kind) => this.#keys.account(kind, username)),
    ];
    for (const key of all) this.#unlocked.set(key, this.#clock(), this.#limit().within);
    const before = this.#chains.entries;
    this.#chains.retain(({ owners }) => !owners.some((owner) => all.includes(owner)));
    if (this.#chains.entries < before) this.#changed('failures');
  }

  /** Calls `listener` when `shared` or `familiar` has changed. */
  onChange(listener: (what: 'failures' | 'familiar') => void): void {
    this.#changed = listener;
  }

  /**
   * Returns at most `max` chains for other replicas, those with the most failures first. A reset chain ranks like a
   * chain with `firstDelayed` failures.
   */
  shared(max: number): MarkedChain[] {
    const now = this.#clock();
    const { within } = this.#limit();
    return [...this.#chains]
      .filter(([, { last, forgiven = 0 }]) => now - Math.max(last, forgiven) < within)
      .map(([key, { count, last, forgiven }]) => ({
        key,
        count,
        last,
        ...(forgiven === undefined ? {} : { forgiven }),
      }))
      .toSorted((a, b) => weightOf(b) - weightOf(a) || b.last - a.last)
      .slice(0, max);
  }

  /**
   * Returns at most `max` familiar pairs with the time of their login in milliseconds since the epoch, latest first.
   */
  familiar(max: number): [key: string, at: number][] {
    const now = this.#clock();
    return [...this.#familiar].filter(([, at]) => now - at < familiarFor).slice(0, max);
  }

  /** Adds familiar pairs that another replica has reported. */
  addFamiliar(familiar: Iterable<readonly [key: string, at: number]>): void {
    const now = this.#clock();
    for (const [key, at] of familiar)
      if (at > (this.#familiar.peek(key) ?? -Infinity)) this.#familiar.set(key, Math.min(at, now));
  }

  /** Replaces the failures that another replica has reported. */
  setPeer(peer: string, chains: readonly MarkedChain[]): void {
    // The clock of a peer may be ahead, which must not lock users out for longer.
    const now = this.#clock();
    const until = (time: number): number => Math.min(time, now);
    this.#peers.set(
      peer,
      new Map(
        chains.map(({ key, count, last, forgiven }) => [
          key,
          { count, last: until(last), ...(forgiven === undefined ? {} : { forgiven: until(forgiven) }) },
        ]),
      ),
    );
  }

  /** Removes the failures of a replica that no longer exists. */
  removePeer(peer: string): void {
    this.#peers.delete(peer);
  }

  /** Returns the failures that still count, from all replicas. */
  #chain(key: string, owners: readonly string[], now: number): Chain {
    const forgiven = this.#forgiven(key, owners);
    const own = this.#own(key, owners, now);
    let { count, last } = own;
    for (const peer of this.#peers.values()) {
      const chain = peer.get(key);
      if (chain === undefined || chain.last <= forgiven || now - chain.last >= this.#limit().within) continue;
      count += chain.count;
      last = Math.max(last, chain.last);
    }
    return { count, last };
  }

  /** Returns the failures that still count, from this replica only. */
  #own(key: string, owners: readonly string[], now: number): Chain {
    const chain = this.#chains.get(key);
    const isExpired =
      chain === undefined || now - chain.last >= this.#limit().within || chain.last < this.#forgiven(key, owners);
    return isExpired ? noFailures : chain;
  }

  /** Returns the latest time up to which a replica has reset the failures. */
  #forgiven(key: string, owners: readonly string[]): number {
    const times = [this.#chains.get(key), ...[...this.#peers.values()].map((peer) => peer.get(key))];
    const unlocked = owners.map((owner) => this.#unlocked.get(owner) ?? 0);
    return Math.max(0, ...unlocked, ...times.map((chain) => chain?.forgiven ?? 0));
  }

  #remember(key: string, chain: OwnChain): void {
    this.#chains.set(key, chain, this.#limit().within);
  }

  #isFamiliar(pair: string, now: number): boolean {
    const at = this.#familiar.get(pair);
    return at !== undefined && now - at < familiarFor;
  }
}

/** Returns the whole seconds until all limits allow an attempt. */
function secondsUntil(standings: readonly Standing[], now: number): number {
  const until = Math.max(...standings.map((one) => one.until));
  return until <= now ? 0 : Math.ceil((until - now) / 1_000);
}

const noFailures: Chain = { count: 0, last: 0 };

const weightOf = ({ count }: Chain): number => (count === 0 ? firstDelayed : count);
