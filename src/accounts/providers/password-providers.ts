/** Identity providers that check passwords. */
import { randomUUID } from 'node:crypto';
import type { IdentityProvider } from '../../config/identity-providers.ts';
import type { Identity } from '../../tokens/sessions/session.ts';
import type { IdentityProviders } from './identity-providers.ts';
import { personOf, type Person } from './person.ts';
import type { LookUp } from './provider.ts';

/** Result of looking up a name at all providers. Holds a connection until `close`. */
export interface Candidate {
  /**
   * Identity at the provider; undefined if the name is unknown to every provider that is allowed to get the password.
   */
  readonly identity: Identity | undefined;
  /**
   * Returns undefined for a wrong password. Throws 503 if a provider is unavailable, and 429 if too many logins wait
   * for a provider.
   */
  authenticate(password: string): Promise<Person | undefined>;
  close(): void;
}

interface Search {
  /** The address of the caller. */
  readonly source: string;
  /** Returns whether a provider is allowed to get the password. */
  readonly isAllowed: (provider: string) => boolean;
}

/** Sends the same requests as a login with a wrong password. */
async function failLogin(found: LookUp): Promise<void> {
  try {
    await found.authenticate(randomUUID());
  } finally {
    found.close();
  }
}

export class PasswordProviders {
  readonly #providers: IdentityProviders;

  constructor(providers: IdentityProviders) {
    this.#providers = providers;
  }

  /**
   * Finds the first configured provider that has the name. Only that provider gets the password. The other providers
   * search for a random name instead, so every failed login sends the same requests. `authenticate` throws the errors
   * of providers.
   */
  async find(login: string, { source, isAllowed }: Search): Promise<Candidate> {
    const providers = this.#providers.ofKind('password');
    const order = providers.toSorted((a, b) => Number(isAllowed(b.name)) - Number(isAllowed(a.name)));
    const failures = new Map<IdentityProvider, unknown>();
    const recorded = async <T>(provider: IdentityProvider, requests: Promise<T>): Promise<T | undefined> => {
      try {
        return await requests;
      } catch (error) {
        failures.set(provider, error);
        return undefined;
      }
    };
    const decoy = (provider: IdentityProvider): Promise<void> =>
      recorded(provider, this.#lookUpAt(provider, randomUUID(), source).then(failLogin));
    const fail = (): undefined => {
      // Providers are checked in the configured order, so that the error does not depend on the name.
      const failed = providers.find((provider) => failures.has(provider));
      if (failed !== undefined) throw failures.get(failed);
    };
    for (const [index, provider] of order.entries()) {
      const { name } = provider;
      // After a failure no provider gets the password, because the unavailable provider may have the name.
      const getsLogin = failures.size === 0 && isAllowed(name);
      const found = await recorded(provider, this.#lookUpAt(provider, getsLogin ? login : randomUUID(), source));
      if (found === undefined) continue;
      if (!getsLogin || found.subject === undefined) {
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

  /** Looks up a name at a provider. The result holds a slot of the provider until `close`. */
  async #lookUpAt(provider: IdentityProvider, login: string, source: string): Promise<LookUp> {
    const slot = await this.#providers.slotAt<'password'>(provider, source);
    try {
      const found = await slot.run((one) => one.lookUp(login));
      this.#providers.responded(provider);
      return {
        subject: found.subject,
        authenticate: async (password) => {
          const statement = await slot.run(() => found.authenticate(password));
          this.#providers.responded(provider);
          this.#providers.warn(provider, undefined);
          return statement;
        },
        close: () => {
          found.close();
          slot.free();
        },
      };
    } catch (error) {
      slot.free();
      throw error;
    }
  }
}
