/**
 * The people and clients that may log in: the configuration object with the Secrets it refers to, and the User objects of the
 * cluster. What is configured is rebuilt whole at each change, so that a request sees one state of it; of the User objects, of which
 * there may be many, only the one that changed.
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

/** For what was written here to come back by a watch. */
const longestWait = 2_000;

/** What more than one account has by which only one can be meant. */
export interface Shared {
  /** For people. */
  readonly by: string;
  /** Usernames, in order. */
  readonly others: readonly string[];
}

const unreadable = (): Error => serviceUnavailable('the users cannot be read from the cluster now');

export class Directory {
  readonly clients: Clients;
  /** The name of a User object that may have changed, undefined where the configuration or one of its Secrets did. */
  readonly changed = new Topic<string | undefined>();
  /** A credential that was good until now may no longer be. */
  readonly invalidated = new Topic();
  /** The sessions to revoke: their user, password, link, provider or client was deleted or disabled. */
  readonly dismissed = new Topic<Dismissed>();
  /** An account whose failed logins are to be forgotten. */
  readonly unlocked = new Topic<Account>();
  readonly #config: LiveConfiguration;
  readonly #secrets: SecretRefs;
  readonly #users: Users;
  readonly #passwords: Passwords;
  #configured = new AccountIndex();
  readonly #objects = new AccountIndex();
  /** What people call the identity providers, by name. */
  #providers: ReadonlyMap<string, string> = new Map();
  /** Of the User objects, also of those that are gone. */
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
    // Of a Secret that is not read yet nobody knows.
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

  /** Throws 503 while it cannot be told whether the cluster has such a User. */
  account(username: string): Account | undefined {
    const configured = this.configured(username);
    if (configured !== undefined) return configured;
    if (!this.#users.isCurrent()) throw unreadable();
    return this.#objects.get(username);
  }

  /** A configured user; a User object of that name is not in force. */
  configured(username: string): Account | undefined {
    return this.#configured.get(username);
  }

  /** All of them. */
  configuredAccounts(): Iterable<Account> {
    return this.#configured;
  }

  /** Whom someone who logs in calls by name or e-mail address. One that is not unique is nobody's. Throws as `account`. */
  named(login: string): Account | undefined {
    if (!login.includes('@')) return this.account(login);
    const [found, ...others] = this.withEmail(login);
    return found === undefined || others.length > 0 ? undefined : this.account(found);
  }

  /** The usernames of all who have an e-mail address. Throws as `account`. */
  withEmail(email: string): readonly string[] {
    return this.#with(emailKey(email)).map(({ username }) => username);
  }

  /** Who is linked to an identity; 'several' are so by mistake. Throws as `account`. */
  linked(identity: Identity): Account | 'several' | undefined {
    if (!this.#users.isCurrent()) throw unreadable();
    const [found, ...others] = this.#with(identityKey(identity));
    return others.length === 0 ? found : 'several';
  }

  /** Whether a login by an identity still counts: its provider is there, and no other account has it. Throws as `account`. */
  isLinked(account: Account, identity: Identity): boolean {
    return this.#providers.has(identity.provider) && this.linked(identity) === account;
  }

  /** Where somebody who has no password here has one: at these identity providers, as people call them. */
  passwordKeepers({ passwordHash, identities }: Account): readonly string[] {
    if (passwordHash !== undefined) return [];
    return identities.flatMap(({ provider }) => this.#providers.get(provider) ?? []);
  }

  /** What an account is looked for by in vain, as others have it too; as far as the users were read by now. */
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
    // A User object that is not in force has no say.
    return [...names].flatMap((name) => {
      const account = read(name);
      return account !== undefined && keysOf(account).includes(key) ? [account] : [];
    });
  }

  /** Resolves when `shows` holds of what was just written, and after seconds in any case. */
  async seen(shows: () => boolean): Promise<void> {
    if (shows()) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        cancel();
        unsubscribe();
        resolve();
      };
      const unsubscribe = this.changed.subscribe(() => {
        if (shows()) end();
      });
      const cancel = this.#clock.after(longestWait, end);
    });
  }

  #dismiss(all: readonly Dismissed[]): void {
    for (const one of all) this.dismissed.publish(one);
  }

  /** Who has become a configured user takes the place of a User object. */
  #dismissedBy(before: AccountIndex, username: string): readonly Dismissed[] {
    const object = before.get(username) === undefined ? this.#objects.get(username) : undefined;
    return object === undefined ? [] : dismissedBetween(object, undefined);
  }

  /** Whether a session is dismissed for certain: false too while it cannot be told. */
  isDismissed(spec: SessionSpec): boolean {
    const { subjectKind, userName, userUID, clientID, identity } = spec;
    const { value, problems } = this.#config;
    // With a newer configuration that is refused here, others may work already.
    const isNewest = problems.length === 0;
    if (isNewest && this.clients.get(clientID) === undefined) return true;
    // Of no user, or of nobody yet.
    if (subjectKind !== undefined || userUID === '') return false;
    if (isNewest && identity !== undefined && !this.#providers.has(identity.provider)) return true;
    const configured = this.configured(userName);
    if (configured !== undefined || userUID === configuredUserUID(value.authentication.issuer, userName))
      return isNewest && (configured?.uid !== userUID || !configured.active);
    if (!this.#users.isCurrent()) return false;
    const account = this.#objects.get(userName);
    // Of an issuer that is not known here yet there are other configured users.
    if (account?.uid !== userUID) return isNewest;
    return !account.active || isOutdated(spec, account);
  }

  #publishUnlocked(before: Account | undefined, after: Account | undefined): void {
    if (before !== undefined && after?.unlocked !== undefined && before.unlocked !== after.unlocked)
      this.unlocked.publish(after);
  }

  /** Has whoever fails to log in do the work for the hashes that there are. */
  #prepare(): void {
    const hashes = [
      ...[...this.#configured].map(({ passwordHash = '' }) => passwordHash),
      ...this.clients.secretHashes,
    ];
    const configured = hashes.flatMap((hash) => parametersOf(hash) ?? []);
    void this.#passwords.prepare([...configured, ...this.#parameters]);
  }
}
