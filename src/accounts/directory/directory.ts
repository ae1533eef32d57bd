/**
 * Users and clients that are allowed to log in: those of the configuration object with its Secrets, and the User
 * objects of the cluster. Each change of the configuration rebuilds all configured accounts at once, so no request sees
 * a mix of two configurations. There may be many User objects, so a changed User object updates only its own account.
 */
import { isDeepStrictEqual } from 'node:util';
import { parametersOf, type HashParameters } from '../../config/hash-parameters.ts';
import type { LiveConfiguration } from '../../config/live.ts';
import { serviceUnavailable } from '../../runtime/errors.ts';
import type { Clock } from '../../runtime/time.ts';
import { Topic } from '../../runtime/lifecycle.ts';
import { secretsIn, warningsOf } from './configuration-warnings.ts';
import type { Dismissed, Identity, SessionSpec } from '../../tokens/sessions/session.ts';
import type { Passwords } from '../passwords/passwords.ts';
import type { SecretRefs } from '../../cluster/secret-refs.ts';
import type { Users } from './users.ts';
import { configuredUserUID, accountOf, configuredAccounts, type Account } from './account.ts';
import { AccountIndex, emailKey, identityKey, keysOf } from './account-index.ts';
import { Clients } from './clients.ts';
import { dismissedBetween, isOutdated } from './dismissed.ts';

/** Maximum milliseconds to wait until a watch reports what this replica has written. */
const maxWait = 2_000;

/** An e-mail address or identity that several accounts have, although it must identify a single account. */
export interface Shared {
  /** Description of the shared value, for messages. */
  readonly by: string;
  /** Sorted usernames of the other accounts that have the value. */
  readonly others: readonly string[];
}

const unreadable = (): Error => serviceUnavailable('the users cannot be read from the cluster at the moment');

export class Directory {
  readonly clients: Clients;
  /**
   * The name of a User object that may have changed; undefined if the configuration or one of its Secrets has changed.
   */
  readonly changed = new Topic<string | undefined>();
  /** Signals that a credential may no longer be valid. */
  readonly invalidated = new Topic();
  /** Sessions to revoke because their user, password, link, provider or client was deleted or disabled. */
  readonly dismissed = new Topic<readonly Dismissed[]>();
  /** An account whose failed logins must be reset. */
  readonly unlocked = new Topic<Account>();
  readonly #config: LiveConfiguration;
  readonly #secrets: SecretRefs;
  readonly #users: Users;
  readonly #passwords: Passwords;
  #configured = new AccountIndex();
  readonly #objects = new AccountIndex();
  /** Display names of the identity providers, by name. */
  #providers: ReadonlyMap<string, string> = new Map();
  /** Hash parameters of all User objects since the start, including deleted objects. */
  readonly #parameters = new Set<HashParameters>();
  readonly #clock: Clock;

  constructor(options: {
    config: LiveConfiguration;
    secrets: SecretRefs;
    users: Users;
    passwords: Passwords;
    clock: Clock;
  }) {
    this.clients = new Clients(options);
    this.#config = options.config;
    this.#secrets = options.secrets;
    this.#users = options.users;
    this.#passwords = options.passwords;
    this.#clock = options.clock;
    options.secrets.changed.subscribe(() => this.#rebuild());
    options.users.changed.subscribe((username) => this.#update(username));
  }

  /** Resolves when the Secrets of the configuration have been read. */
  async start(signal: AbortSignal): Promise<void> {
    this.#config.subscribe(() => this.#rebuild());
    await this.#secrets.settled(signal);
  }

  #rebuild(): void {
    const { authentication } = this.#config.value;
    this.#secrets.follow(secretsIn(this.#config.value));
    const before = this.#configured;
    const providersBefore = this.#providers;
    const clientsBefore = this.clients.names;
    this.#configured = new AccountIndex(configuredAccounts(authentication, this.#secrets));
    this.#providers = new Map(
      authentication.identityProviders.map(({ name, displayName = name }) => [name, displayName]),
    );
    this.clients.rebuild(authentication);
    for (const account of this.#configured) this.#publishUnlocked(before.get(account.username), account);
    this.#dismiss([
      ...[...before].flatMap((account) => dismissedBetween(account, this.configured(account.username))),
      ...[...this.#configured].flatMap(({ username }) => this.#dismissedBy(before, username)),
      ...[...providersBefore.keys()].filter((name) => !this.#providers.has(name)).map((provider) => ({ provider })),
      ...clientsBefore.filter((name) => this.clients.get(name) === undefined).map((clientID) => ({ clientID })),
    ]);
    this.#prepare();
    this.changed.publish(undefined);
    this.invalidated.publish();
    // Missing values are unknown until the Secrets have been read.
    if (this.#secrets.hasSynced()) this.#config.warn('references', warningsOf(this.#config.value, this.#secrets));
  }

  #update(username: string): void {
    const user = this.#users.get(username);
    const before = this.#objects.get(username);
    const after = user && accountOf(user, this.#users);
    if (!isDeepStrictEqual(before, after)) this.#replace(username, before, after);
    this.changed.publish(username);
  }

  #replace(username: string, before: Account | undefined, after: Account | undefined): void {
    this.#objects.set(username, after);
    this.#publishUnlocked(before, after);
    if (before !== undefined) this.#dismiss(dismissedBetween(before, after));
    const parameters = parametersOf(after?.passwordHash ?? '');
    if (parameters !== undefined && !this.#parameters.has(parameters)) {
      this.#parameters.add(parameters);
      this.#prepare();
    }
    if (before !== undefined) this.invalidated.publish();
  }

  /** Returns the account with this username. Throws 503 while it is unknown whether the cluster has such a User. */
  account(username: string): Account | undefined {
    const configured = this.configured(username);
    if (configured !== undefined) return configured;
    if (!this.#users.isCurrent()) throw unreadable();
    return this.#objects.get(username);
  }

  /** Returns the configured user, which overrides a User object of the same name. */
  configured(username: string): Account | undefined {
    return this.#configured.get(username);
  }

  configuredAccounts(): Iterable<Account> {
    return this.#configured;
  }

  /**
   * Returns the account with this username or e-mail address. Ignores addresses that are not unique. Throws like
   * `account`.
   */
  named(login: string): Account | undefined {
    if (!login.includes('@')) return this.account(login);
    const [found, ...others] = this.withEmail(login);
    return found === undefined || others.length > 0 ? undefined : this.account(found);
  }

  /** Returns the usernames of all accounts with this e-mail address. Throws like `account`. */
  withEmail(email: string): readonly string[] {
    return this.#with(emailKey(email)).map(({ username }) => username);
  }

  /**
   * Returns the account linked to an identity, or 'several' if more than one account is linked to it by mistake. Throws
   * like `account`.
   */
  linked(identity: Identity): Account | 'several' | undefined {
    if (!this.#users.isCurrent()) throw unreadable();
    const [found, ...others] = this.#with(identityKey(identity));
    return others.length === 0 ? found : 'several';
  }

  /**
   * Returns whether the provider of an identity exists and only this account is linked to it. Throws like `account`.
   */
  isLinked(account: Account, identity: Identity): boolean {
    return this.#providers.has(identity.provider) && this.linked(identity) === account;
  }

  /**
   * Returns the display names of the identity providers that may store the account's password. Returns no names if this
   * server stores the password hash.
   */
  passwordProvidersOf({ passwordHash, identities }: Account): readonly string[] {
    if (passwordHash !== undefined) return [];
    return identities.flatMap(({ provider }) => this.#providers.get(provider) ?? []);
  }

  /**
   * Returns the e-mail address and the identities of a user that other accounts have too. Such a shared value
   * identifies nobody. The result covers only the users that have been read so far.
   */
  shared(username: string): readonly Shared[] {
    const inForce = (name: string): Account | undefined => this.configured(name) ?? this.#objects.get(name);
    const { email, identities = [] } = inForce(username) ?? {};
    const all: (readonly [by: string, key: string])[] = [
      ...(email === undefined ? [] : [['the e-mail address', emailKey(email)] as const]),
      ...identities.map((one) => [`the identity ${one.subject} at ${one.provider}`, identityKey(one)] as const),
    ];
    return all.flatMap(([by, key]) => {
      const others = this.#with(key, inForce).flatMap((other) => (other.username === username ? [] : [other.username]));
      return others.length === 0 ? [] : [{ by, others: others.toSorted() }];
    });
  }

  #with(key: string, read = (name: string): Account | undefined => this.account(name)): Account[] {
    const names = new Set([...this.#configured.with(key), ...this.#objects.with(key)]);
    // A configured user overrides a User object of the same name.
    return [...names].flatMap((name) => {
      const account = read(name);
      return account !== undefined && keysOf(account).includes(key) ? [account] : [];
    });
  }

  /** Resolves when this replica can read its own write, or after two seconds. */
  async waitUntil(isVisible: () => boolean): Promise<void> {
    if (isVisible()) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        cancel();
        unsubscribe();
        resolve();
      };
      const unsubscribe = this.changed.subscribe(() => {
        if (isVisible()) end();
      });
      const cancel = this.#clock.after(maxWait, end);
    });
  }

  #dismiss(all: readonly Dismissed[]): void {
    if (all.length > 0) this.dismissed.publish(all);
  }

  /** Returns the sessions to revoke permanently because a new configured user overrides a User object. */
  #dismissedBy(before: AccountIndex, username: string): readonly Dismissed[] {
    const object = before.get(username) === undefined ? this.#objects.get(username) : undefined;
    return object === undefined ? [] : dismissedBetween(object, undefined);
  }

  /** Returns true if a session must be revoked permanently, and false while that is uncertain. */
  isDismissed(spec: SessionSpec): boolean {
    const { subjectKind, userName, userUID, clientID, identity } = spec;
    const { value, problems } = this.#config;
    // Other replicas may already use a newer configuration that this replica has rejected.
    const isNewest = problems.length === 0;
    if (isNewest && this.clients.get(clientID) === undefined) return true;
    // The session belongs to a client or ServiceAccount, or to a device that no user has approved yet.
    if (subjectKind !== undefined || userUID === '') return false;
    if (isNewest && identity !== undefined && !this.#providers.has(identity.provider)) return true;
    const configured = this.configured(userName);
    const account = this.#objects.get(userName);
    // Computing the uid of a configured user takes as long as all other checks of a session.
    const wasConfigured = (): boolean =>
      account?.uid !== userUID && userUID === configuredUserUID(value.authentication.issuer, userName);
    if (configured !== undefined || wasConfigured())
      return isNewest && (configured?.uid !== userUID || !configured.active);
    if (!this.#users.isCurrent()) return false;
    // A newer configuration may have another issuer, whose configured users have other uids.
    if (account?.uid !== userUID) return isNewest;
    return !account.active || isOutdated(spec, account);
  }

  #publishUnlocked(before: Account | undefined, after: Account | undefined): void {
    if (before !== undefined && after?.unlocked !== undefined && before.unlocked !== after.unlocked)
      this.unlocked.publish(after);
  }

  /**
   * Passes the parameters of all stored hashes to `Passwords`, so that a failed login takes as long as the slowest
   * hash.
   */
  #prepare(): void {
    const hashes = [
      ...[...this.#configured].map(({ passwordHash = '' }) => passwordHash),
      ...this.clients.secretHashes,
    ];
    const configured = hashes.flatMap((hash) => parametersOf(hash) ?? []);
    void this.#passwords.prepare([...configured, ...this.#parameters]);
  }
}
