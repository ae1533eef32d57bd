/**
 * The keys that sign tokens, in the Secret platform-signing-keys so that every replica has the same: one ES256 and one RS256.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  type JsonWebKey,
  type KeyObject,
} from 'node:crypto';
import { promisify } from 'node:util';
import { objectNames } from '../config/names.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Clock } from '../kube/clock.ts';
import type { Logger } from '../logger.ts';
import { KeySecret, type KeyData } from './key-secret.ts';

export type Algorithm = 'ES256' | 'RS256';

export interface SigningKey {
  /** RFC 7638 thumbprint of the public key. */
  readonly kid: string;
  readonly alg: Algorithm;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

/** A public key with what clients need to know of it. */
export interface PublishedKey extends JsonWebKey {
  readonly kid: string;
  readonly alg: Algorithm;
  readonly use: 'sig';
}

const generate = promisify(generateKeyPair);

async function newKey(alg: Algorithm): Promise<Buffer> {
  const { privateKey } =
    alg === 'ES256' ? await generate('ec', { namedCurve: 'P-256' }) : await generate('rsa', { modulusLength: 2048 });
  return Buffer.from(privateKey.export({ type: 'pkcs8', format: 'pem' }));
}

/** RFC 7638 section 3: the required members of the key in lexicographic order. */
function thumbprint(jwk: JsonWebKey): string {
  const { crv, e, kty, n, x, y } = jwk;
  const members = kty === 'EC' ? { crv, kty, x, y } : { e, kty, n };
  return createHash('sha256').update(JSON.stringify(members)).digest('base64url');
}

/** What RFC 7518 section 3.1 asks of a key for each algorithm. */
function fits(alg: Algorithm, { asymmetricKeyType, asymmetricKeyDetails }: KeyObject): boolean {
  return alg === 'ES256'
    ? asymmetricKeyType === 'ec' && asymmetricKeyDetails?.namedCurve === 'prime256v1'
    : asymmetricKeyType === 'rsa' && (asymmetricKeyDetails?.modulusLength ?? 0) >= 2048;
}

/** Throws for what is no private key for this algorithm: found at the start, not at the first login. */
function readKey(alg: Algorithm, pem: string): SigningKey {
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(pem);
    if (!fits(alg, privateKey)) throw new Error(`it is for another algorithm, or too short`);
  } catch (cause) {
    throw new Error(
      `${alg}.pem in Secret ${objectNames.signingKeysSecret} is no key for ${alg}; delete the Secret and a new one is made`,
      { cause },
    );
  }
  const publicKey = createPublicKey(privateKey);
  return { kid: thumbprint(publicKey.export({ format: 'jwk' })), alg, privateKey, publicKey };
}

const algorithms = ['ES256', 'RS256'] as const;

const readKeys = (data: KeyData): SigningKey[] =>
  algorithms.map((alg) => {
    const pem = data[`${alg}.pem`];
    if (pem === undefined)
      throw new Error(
        `Secret ${objectNames.signingKeysSecret} has no key ${alg}.pem; delete the Secret and a new one is made`,
      );
    return readKey(alg, pem.toString('utf8'));
  });

export class SigningKeys {
  readonly #secret: KeySecret;
  #byKid: ReadonlyMap<string, SigningKey> = new Map();
  #byAlgorithm: ReadonlyMap<Algorithm, SigningKey> = new Map();
  #published: readonly PublishedKey[] = [];
  #generation = 0;

  private constructor(client: KubeClient, namespace: string) {
    this.#secret = new KeySecret({
      client,
      namespace,
      name: objectNames.signingKeysSecret,
      make: async () => ({ 'ES256.pem': await newKey('ES256'), 'RS256.pem': await newKey('RS256') }),
      use: (data) => this.#use(readKeys(data)),
    });
  }

  /** Reads the keys from the Secret, or makes them. Throws if the Secret holds something else. */
  static async load(client: KubeClient, namespace: string): Promise<SigningKeys> {
    const keys = new SigningKeys(client, namespace);
    await keys.#secret.load();
    return keys;
  }

  /** From now on the keys are those that are in the cluster. */
  follow(log: Logger, clock?: Clock): void {
    this.#secret.follow(log, clock);
  }

  stop(): void {
    this.#secret.stop();
  }

  /** Another number whenever the keys are others: what was verified before says nothing then. */
  get generation(): number {
    return this.#generation;
  }

  current(alg: Algorithm): SigningKey {
    const key = this.#byAlgorithm.get(alg);
    if (key === undefined) throw new Error(`there is no ${alg} key`);
    return key;
  }

  /** The public keys as JSON Web Keys (RFC 7517 section 4), those of every algorithm. */
  published(): readonly PublishedKey[] {
    return this.#published;
  }

  find(kid: string): SigningKey | undefined {
    return this.#byKid.get(kid);
  }

  #use(keys: readonly SigningKey[]): void {
    if (keys.every(({ kid }) => this.#byKid.has(kid))) return;
    this.#byKid = new Map(keys.map((key) => [key.kid, key]));
    this.#published = keys.map(({ kid, alg, publicKey }) => ({
      ...publicKey.export({ format: 'jwk' }),
      kid,
      alg,
      use: 'sig',
    }));
    this.#byAlgorithm = new Map(keys.map((key) => [key.alg, key]));
    this.#generation += 1;
  }
}
