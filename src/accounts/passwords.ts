/**
 * Passwords are hashed in native threads, so the event loop never waits, and few at a time, so that a flood of logins cannot
 * starve reads. argon2id with the parameters OWASP names (19 MiB, 2 passes, 1 lane) is written; bcrypt is verified too.
 */
import { hash as argon2Hash, verify as argon2Verify } from '@node-rs/argon2';
import bcrypt from 'bcrypt';
import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { parametersOf, type HashParameters } from '../config/hash-parameters.ts';
import { OAuthError } from '../errors.ts';
import { TaskQueue } from './queue.ts';

export const preferred: HashParameters = 'argon2id:19456:2:1';

/** More than a thousand bytes are no password but an attack on the hash. */
export const longestPassword = 1024;

/** How a hash is made and compared; replaced in tests to count the work. */
export interface HashFunctions {
  hash(password: string, parameters: HashParameters): Promise<string>;
  verify(hash: string, password: string): Promise<boolean>;
}

export const nativeHashFunctions: HashFunctions = {
  async hash(password, parameters) {
    const [name, ...costs] = parameters.split(':');
    const [first = 0, second = 0, third = 0] = costs.map(Number);
    if (name === 'bcrypt') return await bcrypt.hash(password, first);
    return await argon2Hash(password, { memoryCost: first, timeCost: second, parallelism: third });
  },
  async verify(hash, password) {
    return hash.startsWith('$2') ? await bcrypt.compare(password, hash) : await argon2Verify(hash, password);
  },
};

const refusal = (): OAuthError =>
  new OAuthError('temporarily_unavailable', 'too many logins at once; try again', { headers: { 'Retry-After': '1' } });

export class Passwords {
  readonly #functions: HashFunctions;
  readonly #queue = new TaskQueue(Math.max(1, availableParallelism() - 1), 64);
  readonly #decoys = new Map<HashParameters, Promise<string>>();
  /** Milliseconds that one verification takes, by its parameters: a running mean. */
  readonly #costs = new Map<HashParameters, number>();
  #slowest: HashParameters = preferred;

  constructor(functions: HashFunctions = nativeHashFunctions) {
    this.#functions = functions;
  }

  /** A new hash of the preferred kind. */
  async hash(password: string): Promise<string> {
    return await this.#queue.run(() => this.#functions.hash(password, preferred), refusal);
  }

  /**
   * Tells which parameters are in use, so that a failure never takes less than the slowest of them.
   * Each is measured once, on a decoy.
   */
  async prepare(inUse: Iterable<HashParameters>): Promise<void> {
    const all = new Set(inUse);
    if (all.size === 0) all.add(preferred);
    for (const parameters of all)
      if (!this.#costs.has(parameters)) await this.#measured(parameters, await this.#decoy(parameters), '');
    this.#slowest = [...all].reduce((a, b) => ((this.#costs.get(a) ?? 0) >= (this.#costs.get(b) ?? 0) ? a : b));
  }

  /**
   * Exactly one verification whatever `hash` is: of a decoy with the slowest parameters where there is no hash (no such user).
   * A false answer comes no sooner than the slowest hash in use takes. Throws OAuthError 503 when too many wait.
   */
  async verify(hash: string | undefined, password: string): Promise<boolean> {
    return await this.#queue.run(async () => {
      const known = hash === undefined ? undefined : parametersOf(hash);
      const started = performance.now();
      const right =
        hash === undefined || known === undefined
          ? (await this.#measured(this.#slowest, await this.#decoy(this.#slowest), password), false)
          : await this.#measured(known, hash, password);
      if (!right) {
        const missing = (this.#costs.get(this.#slowest) ?? 0) - (performance.now() - started);
        if (known !== undefined && known !== this.#slowest && missing > 0) await sleep(missing);
      }
      return right;
    }, refusal);
  }

  async #measured(parameters: HashParameters, hash: string, password: string): Promise<boolean> {
    const started = performance.now();
    const right = await this.#functions.verify(hash, password);
    const took = performance.now() - started;
    const before = this.#costs.get(parameters);
    this.#costs.set(parameters, before === undefined ? took : before * 0.9 + took * 0.1);
    return right;
  }

  #decoy(parameters: HashParameters): Promise<string> {
    let decoy = this.#decoys.get(parameters);
    if (decoy === undefined) {
      decoy = this.#functions.hash(randomBytes(16).toString('base64'), parameters);
      this.#decoys.set(parameters, decoy);
    }
    return decoy;
  }
}
