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
import { normalizedLogin } from '../directory/account-index.ts';
import { addressKeys, hostOf } from '../../runtime/shares.ts';
import { UnderWay } from './under-way.ts';

/** A guess at the password of a user. */
export interface LoginAttempt {
  readonly guesses: 'password';
  /** Name that the user typed. */
  readonly username: string;
  /** Unique name of the account, if `username` is another name of the account. */
  readonly account?: string;
  readonly address: string;
  readonly client: string;
}

/** A guess at a device's user code by a user who is logged in. Such guesses are counted separately from logins. */
export interface UserCodeAttempt extends Omit<LoginAttempt, 'guesses' | 'account'> {
  readonly guesses: 'user code';
}

/**
 * A guess at the secret of a client. Such guesses are never delayed, because strangers could then delay the client
 * itself.
 */
export interface SecretAttempt extends Omit<LoginAttempt, 'guesses' | 'username' | 'account'> {
  readonly guesses: 'secret';
}

/**
 * A guess at the code of a login at an OpenID provider. Such guesses are counted only per address, because the caller
 * chooses all other values.
 */
export interface ProviderCodeAttempt extends Pick<LoginAttempt, 'address'> {
  readonly guesses: 'provider code';
}

export type Attempt = LoginAttempt | UserCodeAttempt | SecretAttempt | ProviderCodeAttempt;

/**
 * Key prefixes by kind of guess, so that callers cannot forge a key of another kind. Replicas of other versions use the
 * same prefixes for passwords and secrets.
 */
const kinds = {
  password: { pair: 'p', user: 'u', address: 'a', client: 'c' },
  secret: { pair: 's', user: '', address: 'b', client: 'd' },
  'user code': { pair: 'f', user: 'g', address: 'h', client: 'i' },
  'provider code': { pair: '', user: '', address: 'j', client: '' },
} as const;
/** Key prefix for failed logins to an account by a name other than its username. */
const accountKind = 'n';

/** Maximum entries of each table. A count takes about 300 bytes, and a window with its parts at most 1 KiB. */
const maxEntries = 16_000;
const maxBytes = 16 * 1024 * 1024;
const firstDelayed = 3;
const maxDelay = 60_000;
/** Failures allowed from an IPv6 /48, as a multiple of `perAddress`. */
const networkFactor = 5;
/** Number of parts into which a window is divided, so that a sliding window needs little memory. */
const parts = 10;
const day = 24 * 3_600_000;
/** Milliseconds for which an address counts as familiar after a user has logged in from it. */
export const familiarFor = 30 * day;

/** Failures that count until the last of them is older than the window. Times are milliseconds since the epoch. */
interface Failures {
  readonly first: number;
  last: number;
  count: number;
}

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
  readonly #mark: (text: string) => string;
  /** Failures of pairs, users and accounts that this replica has counted. */
  readonly #chains: BoundedCache<OwnChain>;
  /** Failures that other replicas have counted. */
  readonly #peers = new Map<string, ReadonlyMap<string, Chain>>();
  /** Times at which users and accounts were unlocked, by key. Other replicas may not have reset their counts yet. */
  readonly #unlocked: BoundedCache<number>;
  /** Parts of the windows of addresses and clients. */
  readonly #windows: BoundedCache<Failures[]>;
  /** Time of the last login of a pair, to within a day. */
  readonly #familiar: BoundedCache<number>;
  /** Keys of attempts under way. The keys are needed several times, and `leave` must use the same keys as `enter`. */
  readonly #keys = new WeakMap<Attempt, Keys>();
  readonly #underWay = new UnderWay();
  #changed: (what: 'failures' | 'familiar') => void = () => undefined;

  /** `mark` turns a pair or a user into the key that other replicas see. */
  constructor(limit: () => LoginLimit, clock: () => number, mark = (text: string): string => text) {
    this.#limit = limit;
    this.#clock = clock;
    this.#mark = mark;
    const options = { maxEntries, maxBytes, ttl: familiarFor, clock };
    this.#chains = new BoundedCache({ ...options, name: 'login_failures', sizeOf: () => 200 });
    this.#windows = new BoundedCache({ ...options, name: 'login_windows', sizeOf: (all) => 80 * all.length });
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
    if (seconds === 0) return;
    limitedAttempts.add({ guesses: attempt.guesses });
    refuse(seconds);
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
    if (seconds > 0) {
      limitedAttempts.add({ guesses: attempt.guesses });
      return refuse(seconds);
    }
    try {
      return await authenticate();
    } finally {
      this.leave(attempt, guesses);
    }
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
    this.#underWay.remove(allOf(this.#keysOf(attempt)), guesses);
  }

  /** Returns the seconds to wait, or the key under which too many attempts are under way. */
  #enter(attempt: Attempt, guesses: number): number | string {
    const now = this.#clock();
    const standings = this.#standingsOf(attempt, now);
    const seconds = secondsUntil(standings, now);
    if (seconds > 0) return seconds;
    const full = standings.find(({ key, left }) => this.#underWay.count(key) >= left);
    if (full !== undefined) return full.key;
    this.#underWay.add(allOf(this.#keysOf(attempt)), guesses);
    return 0;
  }

  /** Returns the standing of an attempt under each limit that applies. */
  #standingsOf(attempt: Attempt, now: number): Standing[] {
    const { maxTries, within, perAddress, perClient } = this.#limit();
    // One network must not use up the limit of a client.
    const perNetwork = Math.max(perAddress, Math.min(perAddress * networkFactor, Math.floor(perClient / 2)));
    const { pair, addresses, client, owners } = this.#keysOf(attempt);
    // Familiar addresses are exempt from some limits. Otherwise enough failures by anyone would lock out everybody, or
    // a chosen user.
    const isFamiliar = pair !== undefined && this.#isFamiliar(pair, now);
    const standings = (isFamiliar ? addresses.slice(0, 1) : addresses).map((key, at) =>
      this.#ofWindow(key, at === 0 ? perAddress : perNetwork, now),
    );
    if (pair !== undefined) {
      const { count, last } = this.#chain(pair, owners, now);
      standings.unshift({ key: pair, left: maxTries - count, until: count < maxTries ? 0 : last + within });
    }
    if (isFamiliar) return standings;
    if (client !== undefined) standings.push(this.#ofWindow(client, perClient, now));
    for (const owner of owners) standings.push(this.#ofOwner(owner, owners, now));
    return standings;
  }

  #ofOwner(key: string, owners: readonly string[], now: number): Standing {
    const { count, last } = this.#chain(key, owners, now);
    if (count < firstDelayed) return { key, left: firstDelayed - count, until: 0 };
    return { key, left: 1, until: last + Math.min(maxDelay, 1_000 * 2 ** (count - firstDelayed)) };
  }

  /**
   * Returns the standing under the limit of a sliding window. `until` is the time from which the window contains fewer
   * than `max` failures.
   */
  #ofWindow(key: string, max: number, now: number): Standing {
    const { within } = this.#limit();
    const failures = this.#read(key, now);
    const count = countOf(failures);
    let left = count;
    let until = 0;
    for (const { last, count: here } of failures) {
      if (left < max) break;
      until = last + within;
      left -= here;
    }
    return { key, left: max - count, until };
  }

  failed(attempt: Attempt): void {
    const { pair, addresses, client, owners } = this.#keysOf(attempt);
    const now = this.#clock();
    for (const key of defined(pair, ...owners)) {
      const { count } = this.#own(key, owners, now);
      this.#remember(key, { ...this.#chains.get(key), owners, count: count + 1, last: now });
    }
    for (const key of defined(...addresses, client)) this.#count(key, this.#limit().within / parts);
    this.#changed('failures');
  }

  /**
   * Resets the failures of the user but not of the address. Otherwise an attacker with one valid account could reset
   * the count of guesses at other accounts.
   */
  succeeded(attempt: Attempt): void {
    const { pair, owners } = this.#keysOf(attempt);
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
      ...names.map((name) => this.#userKey('password', name)),
      ...(['name', 'e-mail'] as const).map((kind) => this.#accountKey(kind, username)),
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

  /** Adds a failure to the current part of a window, which covers `length` milliseconds. */
  #count(key: string, length: number): void {
    const now = this.#clock();
    const failures = this.#read(key, now);
    const current = failures.at(-1);
    if (current !== undefined && now - current.first < length) {
      current.count += 1;
      current.last = now;
    } else failures.push({ first: now, last: now, count: 1 });
    this.#windows.set(key, failures, this.#limit().within);
  }

  /** Returns the parts of a window that still count, oldest first. */
  #read(key: string, now: number): Failures[] {
    return this.#windows.get(key)?.filter(({ last }) => now - last < this.#limit().within) ?? [];
  }

  #isFamiliar(pair: string, now: number): boolean {
    const at = this.#familiar.get(pair);
    return at !== undefined && now - at < familiarFor;
  }

  #keysOf(attempt: Attempt): Keys {
    let keys = this.#keys.get(attempt);
    if (keys === undefined) this.#keys.set(attempt, (keys = this.#newKeysOf(attempt)));
    return keys;
  }

  #newKeysOf(attempt: Attempt): Keys {
    const { guesses } = attempt;
    const kind = kinds[guesses];
    const host = hostOf(attempt.address);
    const addresses = addressKeys(attempt.address).map((key) => `${kind.address}:${key}`);
    if (attempt.guesses === 'provider code') return { pair: undefined, addresses, client: undefined, owners: [] };
    const { client } = attempt;
    const username = attempt.guesses === 'secret' ? undefined : normalizedLogin(attempt.username);
    const account = attempt.guesses === 'password' ? attempt.account : undefined;
    return {
      pair: this.#mark(`${kind.pair}:${JSON.stringify([username ?? client, host])}`),
      addresses,
      client: `${kind.client}:${client}`,
      owners: [
        ...(username === undefined ? [] : [this.#userKey(guesses, username)]),
        ...(username === undefined || account === undefined
          ? []
          : [this.#accountKey(username.includes('@') ? 'e-mail' : 'name', account)]),
      ],
    };
  }

  #userKey(guesses: Attempt['guesses'], username: string): string {
    return this.#mark(`${kinds[guesses].user}:${normalizedLogin(username)}`);
  }

  /**
   * Returns the key under which failures at an account are counted. `kind` determines which names share the count: the
   * e-mail addresses of an account must not reveal its other names.
   */
  #accountKey(kind: 'name' | 'e-mail', account: string): string {
    return this.#mark(`${accountKind}:${JSON.stringify([kind, account])}`);
  }
}

/** Keys under which the failures of an attempt are counted. */
interface Keys {
  readonly pair: string | undefined;
  /** Keys of the host and, for IPv6, of its network. A network is allowed more failures than a host. */
  readonly addresses: readonly string[];
  readonly client: string | undefined;
  /** The user, and the account if the account is counted separately. */
  readonly owners: readonly string[];
}

const defined = (...keys: readonly (string | undefined)[]): string[] => keys.filter((key) => key !== undefined);
const allOf = ({ pair, addresses, client, owners }: Keys): string[] => defined(pair, ...addresses, client, ...owners);

/**
 * Standing of an attempt under the limit of a key. `left` is the number of attempts left. `until` is the time from
 * which an attempt is allowed, in milliseconds since the epoch.
 */
interface Standing {
  readonly key: string;
  readonly left: number;
  readonly until: number;
}

/** Returns the whole seconds until all limits allow an attempt. */
function secondsUntil(standings: readonly Standing[], now: number): number {
  const until = Math.max(...standings.map((one) => one.until));
  return until <= now ? 0 : Math.ceil((until - now) / 1_000);
}

const noFailures: Chain = { count: 0, last: 0 };

const weightOf = ({ count }: Chain): number => (count === 0 ? firstDelayed : count);

const countOf = (failures: readonly Failures[]): number => failures.reduce((sum, { count }) => sum + count, 0);
