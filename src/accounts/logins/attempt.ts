/** Guesses that are limited, and the keys under which their failures are counted. */
import { addressKeys, hostOf } from '../../runtime/shares.ts';
import { normalizedLogin } from '../directory/account-index.ts';

/** A guess at the password of a user. */
export interface LoginAttempt {
  readonly guesses: 'password';
  /** Name that the user typed. */
  readonly username: string;
  /** Unique name of the account, if `username` is another name of the account. */
  readonly account?: string;
  readonly address: string;
  readonly client: string;
}

/** A guess at a device's user code by a user who is logged in. Such guesses are counted separately from logins. */
export interface UserCodeAttempt extends Omit<LoginAttempt, 'guesses' | 'account'> {
  readonly guesses: 'user code';
}

/**
 * A guess at the secret of a client. Such guesses are never delayed, because strangers could then delay the client
 * itself.
 */
export interface SecretAttempt extends Omit<LoginAttempt, 'guesses' | 'username' | 'account'> {
  readonly guesses: 'secret';
}

/**
 * A guess at the code of a login at an OpenID provider. Such guesses are counted only per address, because the caller
 * chooses all other values.
 */
export interface ProviderCodeAttempt extends Pick<LoginAttempt, 'address'> {
  readonly guesses: 'provider code';
}

export type Attempt = LoginAttempt | UserCodeAttempt | SecretAttempt | ProviderCodeAttempt;

/**
 * Key prefixes by kind of guess, so that callers cannot forge a key of another kind. Replicas of other versions use the
 * same prefixes for passwords and secrets.
 */
const kinds = {
  password: { pair: 'p', user: 'u', address: 'a', client: 'c' },
  secret: { pair: 's', user: '', address: 'b', client: 'd' },
  'user code': { pair: 'f', user: 'g', address: 'h', client: 'i' },
  'provider code': { pair: '', user: '', address: 'j', client: '' },
} as const;
/** Key prefix for failed logins to an account by a name other than its username. */
const accountKind = 'n';

/** Keys under which the failures of an attempt are counted. */
interface Keys {
  readonly pair: string | undefined;
  /** Keys of the host and, for IPv6, of its network. A network is allowed more failures than a host. */
  readonly addresses: readonly string[];
  readonly client: string | undefined;
  /** The user, and the account if the account is counted separately. */
  readonly owners: readonly string[];
}

export const defined = (...keys: readonly (string | undefined)[]): string[] => keys.filter((key) => key !== undefined);
export const allOf = ({ pair, addresses, client, owners }: Keys): string[] =>
  defined(pair, ...addresses, client, ...owners);

export class AttemptKeys {
  readonly #mark: (text: string) => string;
  /** Keys of attempts under way. They are needed several times, and the end of an attempt needs the keys of its start. */
  readonly #known = new WeakMap<Attempt, Keys>();

  /** `mark` turns a pair or a user into the key that other replicas see. */
  constructor(mark: (text: string) => string) {
    this.#mark = mark;
  }

  /** Returns the keys of an attempt. Calls with the same object return the same keys. */
  of(attempt: Attempt): Keys {
    let keys = this.#known.get(attempt);
    if (keys === undefined) this.#known.set(attempt, (keys = this.#create(attempt)));
    return keys;
  }

  #create(attempt: Attempt): Keys {
    const { guesses } = attempt;
    const kind = kinds[guesses];
    const host = hostOf(attempt.address);
    const addresses = addressKeys(attempt.address).map((key) => `${kind.address}:${key}`);
    if (attempt.guesses === 'provider code') return { pair: undefined, addresses, client: undefined, owners: [] };
    const { client } = attempt;
    const username = attempt.guesses === 'secret' ? undefined : normalizedLogin(attempt.username);
    const account = attempt.guesses === 'password' ? attempt.account : undefined;
    return {
      pair: this.#mark(`${kind.pair}:${JSON.stringify([username ?? client, host])}`),
      addresses,
      client: `${kind.client}:${client}`,
      owners: [
        ...(username === undefined ? [] : [this.user(guesses, username)]),
        ...(username === undefined || account === undefined
          ? []
          : [this.account(username.includes('@') ? 'e-mail' : 'name', account)]),
      ],
    };
  }

  /** Returns the key under which failures at a user are counted. */
  user(guesses: Attempt['guesses'], username: string): string {
    return this.#mark(`${kinds[guesses].user}:${normalizedLogin(username)}`);
  }

  /**
   * Returns the key under which failures at an account are counted. `kind` determines which names share the count: the
   * e-mail addresses of an account must not reveal its other names.
   */
  account(kind: 'name' | 'e-mail', account: string): string {
    return this.#mark(`${accountKind}:${JSON.stringify([kind, account])}`);
  }
}
