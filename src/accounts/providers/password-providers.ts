/** The identity providers that judge passwords, behind what bounds the use of them. */
import { randomUUID } from 'node:crypto';
import { secretOf, secretPathOf, type IdentityProvider } from '../../config/identity-providers.ts';
import type { LiveConfiguration } from '../../config/live.ts';
import { pathOf } from '../../config/parse.ts';
import { serviceUnavailable, StatusError } from '../../runtime/errors.ts';
import type { Logger } from '../../runtime/logger.ts';
import { Slots } from '../../runtime/slots.ts';
import { addressKeys } from '../../runtime/client-address.ts';
import { longestPassword } from '../passwords/passwords.ts';
import type { SecretRefs } from '../../cluster/secret-refs.ts';
import { resultOf } from './ldap-connection.ts';
import { askDirectory, BindRefused, type LDAPLoginRequest } from './ldap.ts';
import { personOf, type Person } from './person.ts';
import type { Identity } from '../../tokens/sessions/session.ts';

/** Connections to one provider. */
const connections = { what: 'logins by LDAP', total: 8, queue: { total: 32, perUser: 8, timeout: 30_000 } };

type LDAPProvider = Extract<IdentityProvider, { readonly type: 'LDAP' }>;

/** A login as nobody, with a password of nobody. */
const decoy = (): Pick<LDAPLoginRequest, 'login' | 'password' | 'found'> => ({
  login: randomUUID(),
  password: randomUUID(),
  found: () => undefined,
});

interface LDAPLogin {
  readonly login: string;
  readonly password: string;
  /** The address of the caller. */
  readonly source: string;
  /** Whether a provider may get the password. */
  readonly providers: (name: string) => boolean;
  /** Told who it would be, before the password is tried; what it throws ends the attempt. */
  readonly found: (identity: Identity) => void;
}

export class Directories {
  readonly #config: LiveConfiguration;
  readonly #secrets: Pick<SecretRefs, 'read'>;
  readonly #log: Logger;
  readonly #ask: typeof askDirectory;
  readonly #slots = new Map<string, Slots>();

  constructor(options: {
    config: LiveConfiguration;
    secrets: Pick<SecretRefs, 'read'>;
    log: Logger;
    ask?: typeof askDirectory;
  }) {
    this.#config = options.config;
    this.#secrets = options.secrets;
    this.#log = options.log;
    this.#ask = options.ask ?? askDirectory;
  }

  /**
   * Returns the person whose password an LDAP provider accepts. `providers` are tried in order, and only the first that knows the name
   * gets the password. All others search for a random name instead, so a failed login takes the same requests whatever the name.
   * Undefined for a wrong name or password. Throws 503 if a provider is unavailable, and 429 if too many logins wait for one.
   */
  async judge({ login, password, source, providers, found }: LDAPLogin): Promise<Person | undefined> {
    if (login === '' || password === '' || Buffer.byteLength(password) > longestPassword) return undefined;
    const all = this.#config.value.authentication.identityProviders.filter((one) => one.type === 'LDAP');
    const errors = new Map<LDAPProvider, StatusError>();
    /** No provider so far knows the name, or may know it. */
    let isOpen = true;
    for (const provider of all.toSorted((a, b) => Number(providers(b.name)) - Number(providers(a.name)))) {
      const { name } = provider;
      const isCandidate = isOpen && providers(name);
      const question = {
        login,
        password,
        found: (subject: string) => {
          isOpen = false;
          found({ provider: name, subject });
        },
      };
      try {
        const said = await this.#askOne(provider, source, isCandidate ? question : decoy());
        if (isCandidate && said !== undefined) return personOf(name, said);
      } catch (error) {
        if (!(error instanceof StatusError)) throw error;
        errors.set(provider, error);
        // Candidates come first: after a provider that is none there is no other.
        isOpen = false;
      }
    }
    // The order of the configuration, which tells nothing of the name.
    for (const provider of all) {
      const error = errors.get(provider);
      if (error !== undefined) throw error;
    }
    return undefined;
  }

  async #askOne(
    provider: LDAPProvider,
    source: string,
    question: Pick<LDAPLoginRequest, 'login' | 'password' | 'found'>,
  ) {
    const { name, ldap } = provider;
    const slots = this.#slots.get(name) ?? new Slots(connections);
    this.#slots.set(name, slots);
    let mine: unknown;
    const found = (subject: string): void => {
      try {
        question.found(subject);
      } catch (error) {
        mine = error;
        throw error;
      }
    };
    const ref = secretOf(provider);
    const bindPassword = ref && this.#secrets.read(ref);
    return await slots.run(addressKeys(source), async () => {
      try {
        const said = await this.#ask({ ...question, settings: ldap, bindPassword, found });
        this.#warn(provider, undefined);
        return said;
      } catch (error) {
        if (error === mine) throw error;
        if (error instanceof BindRefused) this.#warn(provider, error);
        const result = resultOf(error);
        this.#log.warn('an identity provider could not be asked', { provider: name, result, error });
        throw serviceUnavailable(`the identity provider "${name}" cannot be asked now; try again`);
      }
    });
  }

  /** Until it lets us in again. */
  #warn(provider: LDAPProvider, refused: BindRefused | undefined): void {
    const { authentication } = this.#config.value;
    const index = authentication.identityProviders.indexOf(provider);
    // It is of a configuration before.
    if (index < 0) return;
    const path = pathOf(['authentication', 'identityProviders', index, ...secretPathOf(provider)], { authentication });
    this.#config.warn(
      `identity provider ${provider.name}`,
      refused === undefined ? [] : [{ path, message: refused.message }],
    );
  }
}
