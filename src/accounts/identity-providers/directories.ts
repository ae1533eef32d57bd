/** The identity providers that judge passwords, behind what bounds the use of them. */
import { secretOf, secretPathOf, type IdentityProvider } from '../../config/identity-providers.ts';
import type { LiveConfiguration } from '../../config/live.ts';
import { pathOf } from '../../config/parse.ts';
import { serviceUnavailable } from '../../errors.ts';
import type { Logger } from '../../logger.ts';
import { Slots } from '../../slots.ts';
import { hostOf } from '../host-of.ts';
import { longestPassword } from '../passwords.ts';
import type { SecretRefs } from '../secret-refs.ts';
import { resultOf } from './ldap-connection.ts';
import { askDirectory, BindRefused, type Question } from './ldap.ts';
import { personOf, PersonRefused, type Identity, type Person } from './person.ts';

/** Connections to one provider. */
const connections = { what: 'logins by LDAP', total: 8, queue: { total: 32, perUser: 32, timeout: 30_000 } };

type LDAPProvider = Extract<IdentityProvider, { readonly type: 'LDAP' }>;

export interface Attempt {
  readonly login: string;
  readonly password: string;
  /** The address of the caller. */
  readonly source: string;
  /** Only of these. */
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
   * Asks one after the other until one knows the name, and has that one judge the password; no other one sees it. Undefined for a name
   * or a password that is wrong. Throws 503 when one cannot be asked: then nothing is known of the name.
   */
  async judge({ login, password, source, providers, found }: Attempt): Promise<Person | undefined> {
    if (login === '' || password === '' || Buffer.byteLength(password) > longestPassword) return undefined;
    for (const provider of this.#config.value.authentication.identityProviders) {
      if (provider.type !== 'LDAP' || !providers(provider.name)) continue;
      let isFound = false;
      const said = await this.#askOne(provider, source, {
        login,
        password,
        found: (subject) => {
          isFound = true;
          found({ provider: provider.name, subject });
        },
      });
      if (said !== undefined) return personOf(provider.name, said);
      if (isFound) return undefined;
    }
    return undefined;
  }

  async #askOne(provider: LDAPProvider, source: string, question: Pick<Question, 'login' | 'password' | 'found'>) {
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
    return await slots.run(hostOf(source), async () => {
      try {
        const said = await this.#ask({ ...question, settings: ldap, bindPassword, found });
        this.#warn(provider, undefined);
        return said;
      } catch (error) {
        if (error === mine || error instanceof PersonRefused) throw error;
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
