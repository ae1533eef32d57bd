/** OAuth clients: configured clients with the Secrets that they refer to, and built-in clients. */
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
  resources: [],
  idTokenSignedResponseAlg: 'RS256',
};

/**
 * Client for logins to the server's own pages. This client gets no tokens. No configured client can replace this
 * client.
 */
export const pagesClient: ConfiguredClient = { ...publicClient, name: 'platform-pages', grantTypes: [], scopes: [] };

/** Built-in clients, which need no configuration. A configured client replaces the built-in client of the same name. */
export const builtInClients = (issuer: string): readonly ConfiguredClient[] => [
  // The credential plugin for kubectl, a native program that listens on loopback (RFC 8252 section 7.3).
  { ...publicClient, name: 'platform-cli', redirectURIs: ['http://127.0.0.1/callback', 'http://[::1]/callback'] },
  // The API explorer needs no consent, because it is part of this server.
  { ...publicClient, name: 'platform-docs', redirectURIs: [`${issuer}/docs/callback`], consent: false },
];

export interface Client {
  readonly name: string;
  readonly grantTypes: readonly string[];
  /** True if the client has no secret. */
  readonly isPublic: boolean;
  readonly redirectURIs: readonly string[];
  readonly postLogoutRedirectURIs: readonly string[];
  /** True if users must consent before the client gets tokens. */
  readonly consent: boolean;
  /** True if the client is allowed to introspect tokens of other clients. */
  readonly introspection: boolean;
  /** True if the client's name is public, and usually also its secret. Authentication as this client proves nothing. */
  readonly isWellKnown: boolean;
  /** True if the client's secret is the published default. */
  readonly hasKnownSecret: boolean;
  readonly scopes: readonly string[];
  /** Resource servers, other than this server, for which the client is allowed to get tokens (RFC 8707). */
  readonly resources: readonly string[];
  readonly idTokenSignedResponseAlg: ConfiguredClient['idTokenSignedResponseAlg'];
  /** The subject of tokens that the client gets for itself. */
  readonly subject: Subject;
  /** Compares the secret in constant time. Hashed secrets match only after a recent `verify`. */
  knows(secret: string): boolean;
  /**
   * Verifies the secret against the client's hash. Returns false if the client has no hash, or its Secret is missing.
   * `source` is the caller's address.
   */
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

  /** Updates the clients after the configuration or one of its Secrets has changed. */
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
   * Returns the client of that name if one of `secrets` is correct. The duration of a failure reveals nothing: every
   * secret is tried, and the work is the same for all clients. `source` is the caller's address. Throws like
   * `Passwords.verify`.
   */
  async authenticate(name: string, secrets: readonly string[], source: string): Promise<Client | undefined> {
    const client = this.get(name);
    if (client !== undefined && secrets.some((secret) => client.knows(secret))) return client;
    if (client?.hasKnownSecret === true) return undefined;
    const tried = secrets.map((secret) => client?.verify(secret, source) ?? this.#fail(secret, source));
    return (await Promise.all(tried)).includes(true) ? client : undefined;
  }

  /** Does the same work as for a wrong secret if any client has a hashed secret. */
  async #fail(secret: string, source: string): Promise<false> {
    if (this.#secretHashes.length > 0) await this.#passwords.verify(undefined, secret, { source });
    return false;
  }

  #client(configured: ConfiguredClient, issuer: string): Client {
    // No configured user can have this username, because it contains colons.
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
      resources: configured.resources,
      idTokenSignedResponseAlg: configured.idTokenSignedResponseAlg,
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
