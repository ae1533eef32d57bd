/**
 * Hashes and verifies passwords. Native threads do the work, so the event loop never waits. Only a few threads run at a
 * time, so a flood of logins cannot starve reads. New hashes are argon2id with the parameters that OWASP recommends (19
 * MiB, 2 passes, 1 lane); bcrypt is verified too.
 */
import { hash as argon2Hash, verify as argon2Verify } from '@node-rs/argon2';
import bcrypt from 'bcrypt';
import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { parametersOf, type HashParameters } from '../../config/hash-parameters.ts';
import { hashDurations } from '../../runtime/metrics/definitions.ts';
import { systemClock, type Clock } from '../../runtime/time.ts';
import { Slots } from '../../runtime/slots.ts';
import { maxConcurrentHashes } from './threads.ts';
import { addressKeys } from '../../runtime/shares.ts';

export const preferred: HashParameters = 'argon2id:19456:2:1';

/** Maximum bytes of a password. Longer input is an attack on the hash function. */
export const maxPasswordBytes = 1024;

/** Returns whether a password of this length can be correct. */
export const isPossible = (password: string): boolean =>
  password !== '' && Buffer.byteLength(password) <= maxPasswordBytes;

/** Creates and compares hashes. Tests replace these functions to count the work. */
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
    // PHP and htpasswd use the prefix $2y$ for the format that OpenBSD marks with $2b$. The library supports only $2b$.
    if (hash.startsWith('$2')) return await bcrypt.compare(password, hash.replace('$2y$', '$2b$'));
    return await argon2Verify(hash, password);
  },
};

/** Returns random bytes as base64 without padding. */
const randomBase64 = (bytes: number): string => randomBytes(bytes).toString('base64').replace(/=+$/, '');

/**
 * Returns a well-formed hash with these parameters that no password has. Its digest is random, so that creating the
 * decoy computes no hash.
 */
function decoyOf(parameters: HashParameters): string {
  const [name, ...costs] = parameters.split(':');
  if (name === 'bcrypt')
    return `$2b$${costs[0]?.padStart(2, '0')}$${randomBase64(40).replaceAll('+', '.').slice(0, 53)}`;
  const [memory, passes, lanes] = costs;
  return `$argon2id$v=19$m=${memory},t=${passes},p=${lanes}$${randomBase64(16)}$${randomBase64(32)}`;
}

const workOf = (parameters: HashParameters): number =>
  parameters
    .split(':')
    .slice(1, 3)
    .map(Number)
    .reduce((a, b) => a * b);

/** Returns whether a new hash would be stronger. */
export function isWeaker(parameters: HashParameters | undefined): boolean {
  if (parameters === undefined) return false;
  if (parameters.startsWith('bcrypt')) return true;
  return workOf(parameters) < workOf(preferred);
}

export class Passwords {
  readonly #functions: HashFunctions;
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly #slots = new Slots({
    what: 'password checks',
    total: maxConcurrentHashes(availableParallelism(), process.env),
    queue: { total: 256, perUser: 64, timeout: 60_000 },
  });
  /** Running mean of the duration of a verification in milliseconds, by hash parameters. */
  readonly #costs = new Map<HashParameters, number>();
  #inUse: readonly HashParameters[] = [preferred];

  constructor(functions: HashFunctions = nativeHashFunctions, clock: Pick<Clock, 'monotonic' | 'after'> = systemClock) {
    this.#functions = functions;
    this.#clock = clock;
  }

  /** Number of verifications and hashes that wait for a thread. */
  get waiting(): number {
    return this.#slots.waiting;
  }

  /** Returns a new hash with the preferred parameters. `source` is the user whose password is hashed. */
  async hash(password: string, source = ''): Promise<string> {
    return await this.#slots.run(source, () => this.#functions.hash(password, preferred));
  }

  /**
   * Sets the hash parameters in use, so that a failure never takes less time than a hash with the slowest parameters.
   * Measures each of several sets of parameters once, on a decoy; a single set needs no comparison. Parameters whose
   * measurement fails are measured at their first use. Never rejects.
   */
  async prepare(inUse: Iterable<HashParameters>): Promise<void> {
    const all = [...new Set(inUse)];
    this.#inUse = all.length === 0 ? [preferred] : all;
    if (this.#inUse.length === 1) return;
    for (const parameters of this.#inUse)
      if (!this.#costs.has(parameters)) await this.#verifyDecoy(parameters, '').catch(() => undefined);
  }

  /**
   * Performs exactly one verification. If there is no hash (no such user), verifies a decoy with the slowest
   * parameters. Failures take at least as long as the slowest hash in use. For users who are not `active`, the
   * verification always fails, after the same time. `source` is the caller's address, by which callers share the
   * threads (Slots). Throws 429 if too many verifications wait for a thread.
   */
  async verify(
    hash: string | undefined,
    password: string,
    { active = true, source = '' }: { readonly active?: boolean | undefined; readonly source?: string } = {},
  ): Promise<boolean> {
    const fits = Buffer.byteLength(password) <= maxPasswordBytes;
    const tried = fits ? password : '';
    return await this.#slots.run(addressKeys(source), async () => {
      const started = this.#clock.monotonic();
      const slowest = this.#slowest();
      const known = hash === undefined ? undefined : parametersOf(hash);
      const right =
        hash === undefined || known === undefined
          ? (await this.#verifyDecoy(slowest, tried), false)
          : await this.#measured(known, hash, tried);
      if (right && fits && active) return true;
      const missing = (this.#costs.get(slowest) ?? 0) - (this.#clock.monotonic() - started);
      if (known !== undefined && known !== slowest && missing > 0)
        await new Promise<void>((resolve) => this.#clock.after(missing, resolve));
      return false;
    });
  }

  #slowest(): HashParameters {
    const cost = (parameters: HashParameters): number => this.#costs.get(parameters) ?? 0;
    return this.#inUse.reduce((a, b) => (cost(a) >= cost(b) ? a : b));
  }

  async #measured(parameters: HashParameters, hash: string, password: string): Promise<boolean> {
    const started = this.#clock.monotonic();
    const right = await this.#functions.verify(hash, password);
    const duration = this.#clock.monotonic() - started;
    hashDurations.observe({}, duration / 1_000);
    const before = this.#costs.get(parameters);
    this.#costs.set(parameters, before === undefined ? duration : before * 0.9 + duration * 0.1);
    return right;
  }

  async #verifyDecoy(parameters: HashParameters, password: string): Promise<void> {
    await this.#measured(parameters, decoyOf(parameters), password);
  }
}
