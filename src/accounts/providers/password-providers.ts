/** Identity providers that check passwords, behind what limits the use of them. */
import { randomUUID } from 'node:crypto';
import { secretOf, secretPathOf, type IdentityProvider } from '../../config/identity-providers.ts';
import type { LiveConfiguration } from '../../config/live.ts';
import { pathOf } from '../../config/parse.ts';
import { serviceUnavailable } from '../../runtime/errors.ts';
import type { Logger } from '../../runtime/logger.ts';
import { Slots } from '../../runtime/slots.ts';
import { addressKeys } from '../../runtime/client-address.ts';
import type { SecretRefs } from '../../cluster/secret-refs.ts';
import { resultOf } from './ldap-connection.ts';
import { BindRefused, lookUp } from './ldap.ts';
import { personOf, type Person, type Statement } from './person.ts';
import type { Identity } from '../../tokens/sessions/session.ts';

/** Connections to one provider. */
const connections = { what: 'logins by LDAP', total: 8, queue: { total: 32, perUser: 8, timeout: 30_000 } };

type LDAPProvider = Extract<IdentityProvider, { readonly type: 'LDAP' }>;

/** A name that was looked up at one provider. Holds a connection until `close`. */
export interface LookUp {
  /** Undefined if the provider does not know the name. */
  readonly subject: string | undefined;
  /** Undefined for a wrong password. Takes the same requests if the provider does not know the name. */
  authenticate(password: string): Promise<Statement | undefined>;
  /** May be called more than once. */
  close(): void;
}

/** The result of looking a name up at all providers. Holds a connection until `close`. */
export interface Candidate {
  /** Undefined if no provider that may get the password knows the name. */
  readonly identity: Identity | undefined;
  /** Undefined for a wrong password. Throws 503 if a provider is unavailable, and 429 if too many logins wait for one. */
  authenticate(password: string): Promise<Person | undefined>;
  close(): void;
}

interface Search {
  /** The address of the caller. */
  readonly source: string;
  /** Whether a provider may get the password. */
  readonly may: (provider: string) => boolean;
}

/** Takes the requests of a login that fails. */
async function failLogin(found: LookUp): Promise<void> {
  try {
    await found.authenticate(randomUUID());
  } finally {
    found.close();
  }
}

export class PasswordProviders {
  readonly #config: LiveConfiguration;
  readonly #secrets: Pick<SecretRefs, 'read'>;
  readonly #log: Logger;
  readonly #lookUp: typeof lookUp;
  readonly #slots = new Map<string, Slots>();

  constructor(options: {
    config: LiveConfiguration;
    secrets: Pick<SecretRefs, 'read'>;
    log: Logger;
    lookUp?: typeof lookUp;
  }) {
    this.#config = options.config;
    this.#secrets = options.secrets;
    this.#log = options.log;
    this.#lookUp = options.lookUp ?? lookUp;
  }

  /**
   * Finds the first provider, in order, that knows the name; only that one gets the password. All others search for a random name
   * instead, so a failed login takes the same requests whatever the name. Errors of providers are thrown by `authenticate`.
   */
  async find(login: string, { source, may }: Search): Promise<Candidate> {
    const providers = this.#config.value.authentication.identityProviders.filter((one) => one.type === 'LDAP');
    const order = providers.toSorted((a, b) => Number(may(b.name)) - Number(may(a.name)));
    const failures = new Map<LDAPProvider, unknown>();
    const recorded = async <T>(provider: LDAPProvider, requests: Promise<T>): Promise<T | undefined> => {
      try {
        return await requests;
      } catch (error) {
        failures.set(provider, error);
        return undefined;
      }
    };
    const decoy = (provider: LDAPProvider): Promise<void> =>
      recorded(provider, this.#lookUpAt(provider, randomUUID(), source).then(failLogin));
    const fail = (): undefined => {
      // The order of the configuration is the same for every name.
      const failed = providers.find((provider) => failures.has(provider));
      if (failed !== undefined) throw failures.get(failed);
    };
    for (const [index, provider] of order.entries()) {
      const { name } = provider;
      // A provider that is unavailable may be the one that knows the name.
      const isAllowed = failures.size === 0 && may(name);
      const found = await recorded(provider, this.#lookUpAt(provider, isAllowed ? login : randomUUID(), source));
      if (found === undefined) continue;
      if (!isAllowed || found.subject === undefined) {
        await recorded(provider, failLogin(found));
        continue;
      }
      return {
        identity: { provider: name, subject: found.subject },
        authenticate: async (password) => {
          const statement = await recorded(provider, found.authenticate(password));
          found.close();
          if (statement !== undefined) return personOf(name, statement);
          for (const other of order.slice(index + 1)) await decoy(other);
          return fail();
        },
        close: () => found.close(),
      };
    }
    return { identity: undefined, authenticate: async () => fail(), close: () => undefined };
  }

  /** Takes a slot until `close`. */
  async #lookUpAt(provider: LDAPProvider, login: string, source: string): Promise<LookUp> {
    const { name, ldap: settings } = provider;
    const slots = this.#slots.get(name) ?? new Slots(connections);
    this.#slots.set(name, slots);
    const free = await slots.wait(addressKeys(source));
    const orUnavailable = async <T>(requests: Promise<T>): Promise<T> => {
      try {
        return await requests;
      } catch (error) {
        free();
        if (error instanceof BindRefused) this.#warn(provider, error);
        const result = resultOf(error);
        this.#log.warn('identity provider unavailable', { provider: name, result, error });
        throw serviceUnavailable(`the identity provider "${name}" is unavailable; try again`);
      }
    };
    const ref = secretOf(provider);
    const bindPassword = ref && this.#secrets.read(ref);
    const found = await orUnavailable(this.#lookUp({ settings, bindPassword }, login));
    return {
      subject: found.subject,
      authenticate: async (password) => {
        const statement = await orUnavailable(found.authenticate(password));
        this.#warn(provider, undefined);
        return statement;
      },
      close: () => {
        found.close();
        free();
      },
    };
  }

  /** Shows the warning at the configuration until a login reaches the provider again. */
  #warn(provider: LDAPProvider, refused: BindRefused | undefined): void {
    const { authentication } = this.#config.value;
    const index = authentication.identityProviders.indexOf(provider);
    // The configuration has changed since.
    if (index < 0) return;
    const path = pathOf(['authentication', 'identityProviders', index, ...secretPathOf(provider)], { authentication });
    this.#config.warn(
      `identity provider ${provider.name}`,
      refused === undefined ? [] : [{ path, message: refused.message }],
    );
  }
}
