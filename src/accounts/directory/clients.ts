/** The OAuth clients: those of the configuration with the Secrets it refers to, and those that are built in. */
import { createHash, timingSafeEqual } from 'node:crypto';
import {
  wellKnownClient,
  wellKnownSecret,
  type ConfiguredClient,
  type PlatformConfiguration,
  clientScopes,
  publicGrantTypes,
} from '../../config/schema.ts';
import { KnownSecrets } from './credentials.ts';
import type { Passwords } from '../passwords/passwords.ts';
import type { SecretRefs } from '../../cluster/secret-refs.ts';
import type { Subject } from '../../tokens/subject.ts';
import { configuredUserUID } from './account.ts';

const publicClient: ConfiguredClient = {
  name: '',
  public: true,
  grantTypes: publicGrantTypes,
  scopes: [...clientScopes],
  groups: [],
  redirectURIs: [],
  postLogoutRedirectURIs: [],
  consent: true,
  introspection: false,
};

/** Through which people log in to our own pages. It gets no tokens, and none that is configured takes its place. */
export const pagesClient: ConfiguredClient = { ...publicClient, name: 'platform-pages', grantTypes: [], scopes: [] };

/** Clients that there are without configuration; one that is configured under the name of such takes its place. */
export const builtInClients = (issuer: string): readonly ConfiguredClient[] => [
  // The credential plugin of kubectl; RFC 8252 section 7.3.
  { ...publicClient, name: 'platform-cli', redirectURIs: ['http://127.0.0.1/callback', 'http://[::1]/callback'] },
  // The page that shows the descriptions, which is ours.
  { ...publicClient, name: 'platform-docs', redirectURIs: [`${issuer}/docs/callback`], consent: false },
];

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

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();

export class Clients {
  readonly #secrets: SecretRefs;
  readonly #passwords: Passwords;
  readonly #known = new KnownSecrets();
  #all: ReadonlyMap<string, Client> = new Map();
  #secretHashes: readonly string[] = [];

  constructor(options: { secrets: SecretRefs; passwords: Passwords }) {
    this.#secrets = options.secrets;
    this.#passwords = options.passwords;
  }

  /** To be called after the configuration or one of its Secrets changed. */
  rebuild({ issuer, clients }: PlatformConfiguration['authentication']): void {
    const all = [...builtInClients(issuer), ...clients, pagesClient];
    this.#all = new Map(all.map((one) => [one.name, this.#client(one, issuer)]));
    this.#secretHashes = clients.flatMap(({ secretHash }) => secretHash ?? []);
  }

  get(name: string): Client | undefined {
    return this.#all.get(name);
  }

  get names(): readonly string[] {
    return [...this.#all.keys()];
  }

  get secretHashes(): readonly string[] {
    return this.#secretHashes;
  }

  /**
   * The client of that name if one of these is its secret. Who is refused learns nothing from the time: each is tried, and it is the same
   * work for all clients. `source`: the address that asks. Throws as `Passwords.verify`.
   */
  async authenticate(name: string, secrets: readonly string[], source: string): Promise<Client | undefined> {
    const client = this.get(name);
    if (client !== undefined && secrets.some((secret) => client.knows(secret))) return client;
    if (client?.hasKnownSecret === true) return undefined;
    const tried = secrets.map((secret) => client?.verify(secret, source) ?? this.#fail(secret, source));
    return (await Promise.all(tried)).includes(true) ? client : undefined;
  }

  /** What a wrong secret of a client whose secret is hashed costs, if there is one. */
  async #fail(secret: string, source: string): Promise<false> {
    if (this.#secretHashes.length > 0) await this.#passwords.verify(undefined, secret, { source });
    return false;
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
        if (secretHash === undefined) return await this.#fail(secret, source);
        const right = await this.#passwords.verify(secretHash, secret, { source });
        if (right) this.#known.add(name, secretHash, secret);
        return right;
      },
    };
  }
}
