/** The identity providers that judge passwords, behind what bounds the use of them. */
import { secretOf, secretPathOf, type IdentityProvider } from '../../config/identity-providers.ts';
import type { LiveConfiguration } from '../../config/live.ts';
import { pathOf } from '../../config/parse.ts';
import { serviceUnavailable } from '../../errors.ts';
import type { Logger } from '../../logger.ts';
import { longestPassword } from '../passwords.ts';
import { TaskQueue } from '../queue.ts';
import type { SecretRefs } from '../secret-refs.ts';
import { resultOf } from './ldap-connection.ts';
import { askDirectory, BindRefused, type Question } from './ldap.ts';
import { personOf, PersonRefused, type Identity, type Person } from './person.ts';

/** Connections to one provider at once, and how many wait for one. */
const mostAtOnce = 8;
const mostWaiting = 32;

type LDAPProvider = Extract<IdentityProvider, { readonly type: 'LDAP' }>;

export interface Attempt {
  readonly login: string;
  readonly password: string;
  /** Only of these. */
  readonly providers: (name: string) => boolean;
  /** Told who it would be, before the password is tried; what it throws ends the attempt. */
  readonly found: (identity: Identity) => void;
}

const refusal = (): Error => serviceUnavailable('too many logins at once; try again');

export class Directories {
  readonly #config: LiveConfiguration;
  readonly #secrets: Pick<SecretRefs, 'read'>;
  readonly #log: Logger;
  readonly #ask: typeof askDirectory;
  readonly #queues = new Map<string, TaskQueue>();

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
  async judge({ login, password, providers, found }: Attempt): Promise<Person | undefined> {
    if (login === '' || password === '' || Buffer.byteLength(password) > longestPassword) return undefined;
    for (const provider of this.#config.value.authentication.identityProviders) {
      if (provider.type !== 'LDAP' || !providers(provider.name)) continue;
      let isFound = false;
      const said = await this.#askOne(provider, {
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

  async #askOne(provider: LDAPProvider, question: Pick<Question, 'login' | 'password' | 'found'>) {
    const { name, ldap } = provider;
    const queue = this.#queues.get(name) ?? new TaskQueue(mostAtOnce, mostWaiting);
    this.#queues.set(name, queue);
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
    return await queue.run(async () => {
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
    }, refusal);
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
