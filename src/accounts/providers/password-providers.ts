/** Identity providers that check passwords. */
import { randomUUID } from 'node:crypto';
import type { IdentityProvider } from '../../config/identity-providers.ts';
import type { Identity } from '../../tokens/sessions/session.ts';
import type { IdentityProviders } from './identity-providers.ts';
import { personOf, type Person } from './person.ts';
import type { LookUp } from './provider.ts';

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
  readonly #providers: IdentityProviders;

  constructor(providers: IdentityProviders) {
    this.#providers = providers;
  }

  /**
   * Finds the first provider, in order, that knows the name; only that one gets the password. All others search for a random name
   * instead, so a failed login takes the same requests whatever the name. Errors of providers are thrown by `authenticate`.
   */
  async find(login: string, { source, may }: Search): Promise<Candidate> {
    const providers = this.#providers.ofKind('password');
    const order = providers.toSorted((a, b) => Number(may(b.name)) - Number(may(a.name)));
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
  async #lookUpAt(provider: IdentityProvider, login: string, source: string): Promise<LookUp> {
    const slot = await this.#providers.slotAt<'password'>(provider, source);
    try {
      const found = await slot.run((one) => one.lookUp(login));
      return {
        subject: found.subject,
        authenticate: async (password) => {
          const statement = await slot.run(() => found.authenticate(password));
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
