import type { HashFunctions } from '../../src/accounts/passwords/passwords.ts';
import { parametersOf, type HashParameters } from '../../src/config/hash-parameters.ts';

interface Options {
  /** Clock that each verification advances by the cost of the verification. */
  readonly clock?: { advance(milliseconds: number): Promise<void> };
  /** Milliseconds that a verification takes, by hash parameters. */
  readonly costs?: Readonly<Record<HashParameters, number>>;
}

/** Hash functions without security and without cost, which record the requested work. */
export class CountingHashes implements HashFunctions {
  /** Hash parameters of each verification. */
  readonly verified: HashParameters[] = [];
  /** Passwords that were tried. */
  readonly tried: string[] = [];
  /** Hash parameters of each new hash. */
  readonly hashed: HashParameters[] = [];
  /** If set, all functions throw this error. */
  failure: Error | undefined;
  readonly #options: Options;
  readonly #passwords = new Map<string, string>();

  constructor(options: Options = {}) {
    this.#options = options;
  }

  /** Returns a syntactically valid hash that matches this password. */
  of(password: string, parameters: HashParameters): string {
    const [name, ...costs] = parameters.split(':');
    const number = String(this.#passwords.size).padStart(8, '0');
    const hash =
      name === 'bcrypt'
        ? `$2b$${(costs[0] ?? '').padStart(2, '0')}$${'a'.repeat(45)}${number}`
        : `$argon2id$v=19$m=${costs[0]},t=${costs[1]},p=${costs[2]}$c29tZXNhbHQ$${'a'.repeat(35)}${number}`;
    this.#passwords.set(hash, password);
    return hash;
  }

  async hash(password: string, parameters: HashParameters): Promise<string> {
    if (this.failure !== undefined) throw this.failure;
    this.hashed.push(parameters);
    return this.of(password, parameters);
  }

  async verify(hash: string, password: string): Promise<boolean> {
    if (this.failure !== undefined) throw this.failure;
    const parameters = parametersOf(hash) ?? 'none';
    this.verified.push(parameters);
    this.tried.push(password);
    await this.#options.clock?.advance(this.#options.costs?.[parameters] ?? 0);
    return this.#passwords.get(hash) === password;
  }
}
