/**
 * The people and clients that may log in: the configuration object with the Secrets it refers to, and the User objects of the
 * cluster. What is configured is rebuilt whole at each change, so that a request sees one state of it; of the User objects, of which
 * there may be many, only the one that changed.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { parametersOf, type HashParameters } from '../config/hash-parameters.ts';
import { secretOf } from '../config/identity-providers.ts';
import type { LiveConfiguration } from '../config/live.ts';
import {
  wellKnownClient,
  wellKnownSecret,
  type ConfiguredClient,
  type PlatformConfiguration,
} from '../config/schema.ts';
import { serviceUnavailable } from '../errors.ts';
import { systemClock, type Clock } from '../kube/clock.ts';
import { builtInClients, pagesClient } from './built-in-clients.ts';
import { warningsOf } from './configuration-warnings.ts';
import type { Identity } from './identity-providers/person.ts';
import { KnownSecrets } from './known-secrets.ts';
import type { Passwords } from './passwords.ts';
import type { SecretKeyRef, SecretRefs } from './secret-refs.ts';
import type { SessionSpec } from './sessions.ts';
import type { Subject } from './subjects.ts';
import { passwordSecretOf, type User, type Users } from './users.ts';
import { configuredUserUID } from './uuid.ts';

export interface Account {
  readonly username: string;
  readonly uid: string;
  /** Also while the password must be changed, when nobody acts with them (see `loggedIn`). */
  readonly groups: readonly string[];
  readonly displayName: string | undefined;
  readonly email: string | undefined;
  readonly active: boolean;
  readonly passwordChangeRequired: boolean;
  /** Undefined while the Secret that holds it is missing: then nobody can log in as this user. */
  readonly passwordHash: string | undefined;
  /** Where the hash is, or will be; undefined for one that stands in the configuration itself. */
  readonly passwordRef: SecretKeyRef | undefined;
  /** Changes with the password: sessions that began with another one are over. */
  readonly credentialID: string;
  /** Another text when failed logins from before shall not count any more. */
  readonly unlocked: string | undefined;
  /** By which of them, at identity providers, somebody may log in as this user. */
  readonly identities: readonly Identity[];
}

export interface Client {
  readonly name: string;
  readonly grantTypes: readonly string[];
  /** Has no secret. */
  readonly isPublic: boolean;
  readonly redirectURIs: readonly string[];
  readonly postLogoutRedirectURIs: readonly string[];
  /** People are asked before it gets tokens. */
  readonly consent: boolean;
  /** May learn of the tokens of other clients too. */
  readonly introspection: boolean;
  /** Everybody knows it, and mostly its secret too: it proves nothing. */
  readonly isWellKnown: boolean;
  /** Its secret is the one that everybody knows. */
  readonly hasKnownSecret: boolean;
  readonly scopes: readonly string[];
  /** Itself, where it acts for nobody else. */
  readonly subject: Subject;
  /** Whether it is the secret, as far as that can be told without a hash: constant-time. */
  knows(secret: string): boolean;
  /** The same of one that it does not know. False where there is none, and while the Secret that holds it is missing. `source`: the address that asks. */
  verify(secret: string, source: string): Promise<boolean>;
}

/** Of whom, or of which client, all that was begun shall end for good. */
export type Dismissed = { readonly userUID: string } | { readonly clientID: string };

/** For what was written here to come back by a watch. */
const longestWait = 2_000;

/** By what else than the username accounts are looked for: the e-mail address, and each identity. */
const emailKey = (email: string): string => `e:${email.toLowerCase()}`;
const identityKey = ({ provider, subject }: Identity): string => `i:${provider}:${subject}`;
const keysOf = ({ email, identities }: Account): string[] => [
  ...(email === undefined ? [] : [emailKey(email)]),
  ...identities.map(identityKey),
];

const none: ReadonlySet<string> = new Set();

/** Accounts by username, and usernames by what else they are looked for. */
class Accounts {
  readonly #all = new Map<string, Account>();
  readonly #names = new Map<string, Set<string>>();

  constructor(accounts: Iterable<Account> = []) {
    for (const account of accounts) this.set(account.username, account);
  }

  get(username: string): Account | undefined {
    return this.#all.get(username);
  }

  set(username: string, account: Account | undefined): void {
    const before = this.#all.get(username);
    for (const key of before === undefined ? [] : keysOf(before)) {
      const names = this.#names.get(key);
      names?.delete(username);
      if (names?.size === 0) this.#names.delete(key);
    }
    if (account === undefined) {
      this.#all.delete(username);
      return;
    }
    this.#all.set(username, account);
    for (const key of keysOf(account)) this.#names.set(key, (this.#names.get(key) ?? new Set()).add(username));
  }

  with(key: string): ReadonlySet<string> {
    return this.#names.get(key) ?? none;
  }

  [Symbol.iterator](): IterableIterator<Account> {
    return this.#all.values();
  }
}

/** What more than one account has by which only one can be meant. */
export interface Shared {
  /** For people. */
  readonly by: string;
  /** Usernames, in order. */
  readonly others: readonly string[];
}

interface State {
  readonly accounts: Accounts;
  readonly clients: ReadonlyMap<string, Client>;
  /** Of the secrets of clients. */
  readonly secretHashes: readonly string[];
  /** The names of the identity providers. */
  readonly providers: ReadonlySet<string>;
}

/**
 * Beside a hash that was made of the same password as one before: the fingerprint of this hash, and the credentialID that goes on. It
 * says nothing of any other hash.
 */
export const rehashedKey = (key: string): string => `${key}.rehashed`;
/** Beside a hash that its user has chosen: when. */
export const changedKey = (key: string): string => `${key}.changed`;
/** Beside a hash: when its user was last unlocked. */
export const unlockedKey = (key: string): string => `${key}.unlocked`;

const unreadable = (): Error => serviceUnavailable('the users cannot be read from the cluster now');

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();

export const credentialIDOf = (hash: string): string => sha256(hash).toString('hex').slice(0, 32);

export class Directory {
  readonly #config: LiveConfiguration;
  readonly #secrets: SecretRefs;
  readonly #users: Users;
  readonly #passwords: Passwords;
  #state: State = { accounts: new Accounts(), clients: new Map(), secretHashes: [], providers: new Set() };
  readonly #objects = new Accounts();
  readonly #known = new KnownSecrets();
  /** Of the User objects, also of those that are gone. */
  readonly #parameters = new Set<HashParameters>();
  readonly #clock: Clock;
  /** Told after each change. */
  readonly #listeners = new Set<() => void>();
  readonly #dismissals = new Set<(who: Dismissed) => void>();
  readonly #unlocked: (username: string) => void;

  constructor(options: {
    config: LiveConfiguration;
    secrets: SecretRefs;
    users: Users;
    passwords: Passwords;
    /** Told whose failed logins shall be forgotten. */
    unlocked: (username: string) => void;
    clock?: Clock;
  }) {
    this.#config = options.config;
    this.#secrets = options.secrets;
    this.#users = options.users;
    this.#passwords = options.passwords;
    this.#unlocked = options.unlocked;
    this.#clock = options.clock ?? systemClock;
  }

  /** To be called after the configuration or one of its Secrets changed. */
  rebuild(): void {
    const { authentication } = this.#config.value;
    const refs = [
      ...authentication.users.map((user) => user.passwordRef),
      ...authentication.clients.map((one) => one.secretRef),
      ...authentication.identityProviders.map(secretOf),
    ];
    this.#secrets.follow(new Set(refs.flatMap((ref) => (ref === undefined ? [] : [ref.name]))));
    const before = this.#state;
    this.#state = {
      accounts: new Accounts(accountsOf(authentication, this.#secrets)),
      clients: new Map(
        [...builtInClients(authentication.issuer), ...authentication.clients, pagesClient].map((one) => [
          one.name,
          this.#client(one, authentication.issuer),
        ]),
      ),
      secretHashes: authentication.clients.flatMap(({ secretHash }) => secretHash ?? []),
      providers: new Set(authentication.identityProviders.map(({ name }) => name)),
    };
    for (const account of this.#state.accounts) this.#tellUnlocked(before.accounts.get(account.username), account);
    for (const account of before.accounts)
      if (account.active && this.#state.accounts.get(account.username)?.active !== true)
        this.#dismiss({ userUID: account.uid });
    for (const clientID of before.clients.keys()) if (!this.#state.clients.has(clientID)) this.#dismiss({ clientID });
    this.#prepare();
    this.#tell();
    // Of a Secret that is not read yet nobody knows.
    if (this.#secrets.hasSynced()) this.#config.warn('references', warningsOf(this.#config.value, this.#secrets));
  }

  /** To be called after a User object or its password changed. True if what was begun before may have to end. */
  update(username: string): boolean {
    const user = this.#users.get(username);
    const before = this.#objects.get(username);
    const after = user && accountOf(user, this.#users);
    if (isDeepStrictEqual(before, after)) {
      this.#tell();
      return false;
    }
    this.#objects.set(username, after);
    this.#tellUnlocked(before, after);
    if (before?.active === true && after?.active === false) this.#dismiss({ userUID: before.uid });
    const parameters = parametersOf(after?.passwordHash ?? '');
    if (parameters !== undefined && !this.#parameters.has(parameters)) {
      this.#parameters.add(parameters);
      this.#prepare();
    }
    this.#tell();
    return before !== undefined;
  }

  /** Throws 503 while it cannot be told whether the cluster has such a User. */
  account(username: string): Account | undefined {
    const configured = this.#state.accounts.get(username);
    if (configured !== undefined) return configured;
    if (!this.#users.isCurrent()) throw unreadable();
    return this.#objects.get(username);
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
    return this.#state.providers.has(identity.provider) && this.linked(identity) === account;
  }

  /** What an account is looked for by in vain, as others have it too; as far as the users were read by now. */
  shared(username: string): readonly Shared[] {
    const inForce = (name: string): Account | undefined => this.#state.accounts.get(name) ?? this.#objects.get(name);
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
    const names = new Set([...this.#state.accounts.with(key), ...this.#objects.with(key)]);
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
        this.#listeners.delete(look);
        resolve();
      };
      const look = (): void => {
        if (shows()) end();
      };
      const cancel = this.#clock.after(longestWait, end);
      this.#listeners.add(look);
    });
  }

  /** Told of a user who was disabled, or removed from the configuration, and of a client that was removed from it. */
  onDismissal(tell: (who: Dismissed) => void): void {
    this.#dismissals.add(tell);
  }

  /** Whether this is so for certain: false too while it cannot be told. A User that is gone has a uid that never comes back. */
  isDismissed({ subjectKind, userName, userUID, clientID }: SessionSpec): boolean {
    const { value, problems } = this.#config;
    // With a newer configuration that is refused here, others may work already.
    const isNewest = problems.length === 0;
    if (isNewest && !this.#state.clients.has(clientID)) return true;
    if (subjectKind !== undefined) return false;
    const configured = this.#state.accounts.get(userName);
    if (userUID === configuredUserUID(value.authentication.issuer, userName))
      return isNewest && configured?.active !== true;
    const account = this.#objects.get(userName);
    return this.#users.isCurrent() && account?.uid === userUID && !account.active;
  }

  /** A configured user; a User object of that name is not in force. */
  configured(username: string): Account | undefined {
    return this.#state.accounts.get(username);
  }

  /** All of them. */
  configuredAccounts(): Iterable<Account> {
    return this.#state.accounts;
  }

  client(name: string): Client | undefined {
    return this.#state.clients.get(name);
  }

  /**
   * The client of that name if one of these is its secret. Who is refused learns nothing from the time: each is tried, and it is the same
   * work for all clients. `source`: the address that asks. Throws as `Passwords.verify`.
   */
  async authenticateClient(name: string, secrets: readonly string[], source: string): Promise<Client | undefined> {
    const client = this.client(name);
    if (client !== undefined && secrets.some((secret) => client.knows(secret))) return client;
    if (client?.hasKnownSecret === true) return undefined;
    const tried = secrets.map((secret) => client?.verify(secret, source) ?? this.#failClient(secret, source));
    return (await Promise.all(tried)).includes(true) ? client : undefined;
  }

  /** What a wrong secret of a client whose secret is hashed costs, if there is one. */
  async #failClient(secret: string, source: string): Promise<false> {
    if (this.#state.secretHashes.length > 0) await this.#passwords.verify(undefined, secret, { source });
    return false;
  }

  #dismiss(who: Dismissed): void {
    for (const tell of this.#dismissals) tell(who);
  }

  #tellUnlocked(before: Account | undefined, after: Account | undefined): void {
    if (before !== undefined && after?.unlocked !== undefined && before.unlocked !== after.unlocked)
      this.#unlocked(after.username);
  }

  #tell(): void {
    for (const look of this.#listeners) look();
  }

  #prepare(): void {
    const hashes = [
      ...[...this.#state.accounts].map(({ passwordHash = '' }) => passwordHash),
      ...this.#state.secretHashes,
    ];
    const configured = hashes.flatMap((hash) => parametersOf(hash) ?? []);
    void this.#passwords.prepare([...configured, ...this.#parameters]);
  }

  #client(configured: ConfiguredClient, issuer: string): Client {
    // No configured user has such a name.
    const { name, secretHash } = configured;
    const username = `platform:client:${name}`;
    const expected = configured.secret ?? (configured.secretRef && this.#secrets.read(configured.secretRef));
    return {
      name,
      grantTypes: configured.grantTypes,
      isPublic: configured.public,
      redirectURIs: configured.redirectURIs,
      postLogoutRedirectURIs: configured.postLogoutRedirectURIs,
      consent: configured.consent,
      introspection: configured.introspection,
      isWellKnown: name === wellKnownClient,
      hasKnownSecret: name === wellKnownClient && expected === wellKnownSecret,
      scopes: configured.scopes,
      subject: {
        username,
        uid: configuredUserUID(issuer, username),
        groups: configured.groups,
        displayName: undefined,
        email: undefined,
      },
      knows: (secret) => {
        if (secretHash !== undefined) return this.#known.has(name, secretHash, secret);
        return timingSafeEqual(sha256(secret), sha256(expected ?? '')) && (expected ?? '') !== '';
      },
      verify: async (secret, source) => {
        if (secretHash === undefined) return await this.#failClient(secret, source);
        const right = await this.#passwords.verify(secretHash, secret, { source });
        if (right) this.#known.add(name, secretHash, secret);
        return right;
      },
    };
  }
}

/** A hash that this server does not verify is none. `rehashed`: what stands beside it, see `rehashedKey`. */
function credentialOf(
  stored: string | undefined,
  rehashed: string | undefined,
): Pick<Account, 'passwordHash' | 'credentialID'> {
  if (stored === undefined || parametersOf(stored) === undefined) return { passwordHash: undefined, credentialID: '' };
  const own = credentialIDOf(stored);
  const [of, before] = rehashed?.split(' ') ?? [];
  return { passwordHash: stored, credentialID: of === own && before !== undefined ? before : own };
}

const accountsOf = ({ issuer, users }: PlatformConfiguration['authentication'], secrets: SecretRefs): Account[] =>
  users.map((user) => {
    const beside = (key: (key: string) => string): string | undefined =>
      user.passwordRef && secrets.read({ ...user.passwordRef, key: key(user.passwordRef.key) });
    const passwordChangeRequired = user.passwordChangeRequired && beside(changedKey) === undefined;
    return {
      username: user.username,
      uid: configuredUserUID(issuer, user.username),
      groups: user.groups,
      displayName: user.displayName,
      email: user.email,
      active: user.state === 'Active',
      passwordChangeRequired,
      passwordRef: user.passwordRef,
      unlocked: beside(unlockedKey),
      identities: [],
      ...credentialOf(user.passwordHash ?? (user.passwordRef && secrets.read(user.passwordRef)), beside(rehashedKey)),
    };
  });

/** The CustomResourceDefinition refuses them already; one that somebody changed might not. */
export const hasSystemName = ({ metadata, spec }: User): boolean =>
  [metadata.name, ...(spec?.groups ?? [])].some((name) => name.startsWith('system:'));

function accountOf(user: User, users: Users): Account {
  const { metadata, spec = {} } = user;
  const { name: username, uid = '' } = metadata;
  const { displayName, email, groups = [], state = 'Active', passwordChangeRequired = false, identities = [] } = spec;
  return {
    username,
    uid,
    groups,
    displayName,
    email,
    active: state === 'Active' && metadata.deletionTimestamp === undefined && !hasSystemName(user),
    passwordChangeRequired,
    passwordRef: passwordSecretOf(uid),
    unlocked: users.passwordValue(uid, unlockedKey),
    identities,
    ...credentialOf(users.passwordValue(uid), users.passwordValue(uid, rehashedKey)),
  };
}
