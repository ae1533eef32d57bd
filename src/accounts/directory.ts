/**
 * The people and clients that may log in: the configuration object with the Secrets it refers to. Rebuilt whole at each change,
 * so that a request sees one state of it.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { parametersOf } from '../config/hash-parameters.ts';
import type { LiveConfiguration } from '../config/live.ts';
import type { ConfiguredClient, PlatformConfiguration } from '../config/schema.ts';
import type { Passwords } from './passwords.ts';
import type { SecretRefs } from './secret-refs.ts';
import { configuredUserUID } from './uuid.ts';

export interface Account {
  readonly username: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly displayName: string | undefined;
  readonly email: string | undefined;
  readonly active: boolean;
  /** Undefined while the Secret that holds it is missing: then nobody can log in as this user. */
  readonly passwordHash: string | undefined;
  /** Changes with the password: sessions that began with another one are over. */
  readonly credentialID: string;
}

export interface Client {
  readonly name: string;
  readonly grantTypes: readonly string[];
  /** Constant-time where the secret is in the clear. False while the Secret that holds it is missing. */
  verify(secret: string): Promise<boolean>;
}

interface State {
  readonly accounts: ReadonlyMap<string, Account>;
  readonly clients: ReadonlyMap<string, Client>;
}

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();

export const credentialIDOf = (hash: string): string => sha256(hash).toString('hex').slice(0, 32);

export class Directory {
  readonly #config: LiveConfiguration;
  readonly #secrets: SecretRefs;
  readonly #passwords: Passwords;
  #state: State = { accounts: new Map(), clients: new Map() };

  constructor(options: { config: LiveConfiguration; secrets: SecretRefs; passwords: Passwords }) {
    this.#config = options.config;
    this.#secrets = options.secrets;
    this.#passwords = options.passwords;
  }

  /** To be called after the configuration or one of its Secrets changed. */
  rebuild(): void {
    const { authentication } = this.#config.value;
    const refs = [
      ...authentication.users.map((user) => user.passwordRef),
      ...authentication.clients.map((one) => one.secretRef),
    ];
    this.#secrets.follow(new Set(refs.flatMap((ref) => (ref === undefined ? [] : [ref.name]))));
    const accounts = accountsOf(authentication, this.#secrets);
    this.#state = {
      accounts: new Map(accounts.map((account) => [account.username, account])),
      clients: new Map(authentication.clients.map((one) => [one.name, this.#client(one)])),
    };
    void this.#passwords.prepare(accounts.flatMap((account) => parametersOf(account.passwordHash ?? '') ?? []));
  }

  account(username: string): Account | undefined {
    return this.#state.accounts.get(username);
  }

  client(name: string): Client | undefined {
    return this.#state.clients.get(name);
  }

  #client(configured: ConfiguredClient): Client {
    const expected = configured.secret ?? (configured.secretRef && this.#secrets.read(configured.secretRef));
    return {
      name: configured.name,
      grantTypes: configured.grantTypes,
      verify: async (secret) => {
        if (configured.secretHash !== undefined) return await this.#passwords.verify(configured.secretHash, secret);
        return timingSafeEqual(sha256(secret), sha256(expected ?? '')) && expected !== undefined;
      },
    };
  }
}

const accountsOf = ({ issuer, users }: PlatformConfiguration['authentication'], secrets: SecretRefs): Account[] =>
  users.map((user) => {
    const stored = user.passwordHash ?? (user.passwordRef && secrets.read(user.passwordRef));
    const passwordHash = stored !== undefined && parametersOf(stored) !== undefined ? stored : undefined;
    return {
      username: user.username,
      uid: configuredUserUID(issuer, user.username),
      groups: user.groups,
      displayName: user.displayName,
      email: user.email,
      active: user.state === 'Active',
      passwordHash,
      credentialID: passwordHash === undefined ? '' : credentialIDOf(passwordHash),
    };
  });
