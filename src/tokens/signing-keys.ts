/**
 * The keys that sign tokens: an ES256 key and an RS256 key. During a rotation there are also previous and next keys
 * (key-rotation.ts). All replicas read them from the Secret platform-signing-keys.
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
import { signingAlgorithms } from '../config/schema.ts';
import { KeySecret, type KeyData, type KeySource } from './key-secret.ts';

export type Algorithm = (typeof signingAlgorithms)[number];

/** A key that verifies tokens: current, retired, or published before its first use. */
export interface VerifyingKey {
  /** RFC 7638 thumbprint of the public key. */
  readonly kid: string;
  readonly alg: Algorithm;
  readonly publicKey: KeyObject;
}

export interface SigningKey extends VerifyingKey {
  readonly privateKey: KeyObject;
}

/** A key that no longer signs. */
export interface RetiredKey {
  readonly alg: Algorithm;
  /** The public key in PEM. */
  readonly publicKey: string;
  /** RFC 3339 time when the last of its tokens has expired. */
  readonly until: string;
}

/** A public key in the published JWK Set. */
export interface PublishedKey extends JsonWebKey {
  readonly kid: string;
  readonly alg: Algorithm;
  readonly use: 'sig';
}

const generate = promisify(generateKeyPair);

/** Generates a private key for an algorithm, and returns it as PKCS #8 in PEM. */
export type MakeKey = (alg: Algorithm) => Promise<Buffer>;

/** Generates a private key asynchronously, because the search for an RSA key takes long. */
async function newKey(alg: Algorithm): Promise<Buffer> {
  const { privateKey } =
    alg === 'ES256' ? await generate('ec', { namedCurve: 'P-256' }) : await generate('rsa', { modulusLength: 2048 });
  return Buffer.from(privateKey.export({ type: 'pkcs8', format: 'pem' }));
}

/** Returns the thumbprint of a key: a hash of its required members in lexicographic order (RFC 7638 section 3). */
function thumbprint(jwk: JsonWebKey): string {
  const { crv, e, kty, n, x, y } = jwk;
  const members = kty === 'EC' ? { crv, kty, x, y } : { e, kty, n };
  return createHash('sha256').update(JSON.stringify(members)).digest('base64url');
}

/** Returns whether a key meets the requirements of RFC 7518 section 3.1 for the algorithm. */
function fits(alg: Algorithm, { asymmetricKeyType, asymmetricKeyDetails }: KeyObject): boolean {
  return alg === 'ES256'
    ? asymmetricKeyType === 'ec' && asymmetricKeyDetails?.namedCurve === 'prime256v1'
    : asymmetricKeyType === 'rsa' && (asymmetricKeyDetails?.modulusLength ?? 0) >= 2048;
}

/** Names in the Secret of the current and the next key of each algorithm. */
export const keyNames = signingAlgorithms.map(
  (alg) => ({ alg, current: `${alg}.pem`, next: `next.${alg}.pem` }) as const,
);

/** Throws unless the key fits the algorithm, so that a wrong key is reported at startup and not at the first login. */
function checked(alg: Algorithm, name: string, read: () => KeyObject): KeyObject {
  try {
    const key = read();
    if (!fits(alg, key)) throw new Error('the key is for another algorithm, or too short');
    return key;
  } catch (cause) {
    throw new Error(
      `Secret ${objectNames.signingKeysSecret}: "${name}" is not a valid ${alg} key; delete the Secret to create new keys`,
      { cause },
    );
  }
}

const verifying = (alg: Algorithm, publicKey: KeyObject): VerifyingKey => ({
  kid: thumbprint(publicKey.export({ format: 'jwk' })),
  alg,
  publicKey,
});

function readKey(alg: Algorithm, name: string, pem: Buffer): SigningKey {
  const privateKey = checked(alg, name, () => createPrivateKey(pem.toString('utf8')));
  return { ...verifying(alg, createPublicKey(privateKey)), privateKey };
}

/** Returns the retired keys in the Secret. */
export const retiredOf = (data: KeyData): RetiredKey[] =>
  JSON.parse(data[retiredName]?.toString('utf8') ?? '[]') as RetiredKey[];

const retiredName = 'retired.json';

/** Returns the current keys as retired keys. `until` is RFC 3339. */
export const retire = (data: KeyData, until: string): RetiredKey[] =>
  readKeys(data).current.map(({ alg, publicKey }) => ({
    alg,
    publicKey: String(publicKey.export({ type: 'spki', format: 'pem' })),
    until,
  }));

interface KeySet {
  readonly current: readonly SigningKey[];
  /** Keys that are published but do not sign. */
  readonly others: readonly VerifyingKey[];
}

function readKeys(data: KeyData): KeySet {
  const current = keyNames.map(({ alg, current: name }) => {
    const pem = data[name];
    if (pem === undefined)
      throw new Error(
        `Secret ${objectNames.signingKeysSecret}: "${name}" is missing; delete the Secret to create new keys`,
      );
    return readKey(alg, name, pem);
  });
  const next = keyNames.flatMap(({ alg, next: name }) => {
    const pem = data[name];
    return pem === undefined ? [] : [verifying(alg, readKey(alg, name, pem).publicKey)];
  });
  const retired = retiredOf(data).map(({ alg, publicKey }) =>
    verifying(
      alg,
      checked(alg, retiredName, () => createPublicKey(publicKey)),
    ),
  );
  return { current, others: [...next, ...retired] };
}

export class SigningKeys {
  readonly #secret: KeySecret;
  #byKid: ReadonlyMap<string, VerifyingKey> = new Map();
  #byAlgorithm: ReadonlyMap<Algorithm, SigningKey> = new Map();
  #published: readonly PublishedKey[] = [];
  #generation = 0;
  readonly #makeKey: MakeKey;

  constructor({ makeKey = newKey, ...source }: KeySource & { readonly makeKey?: MakeKey }) {
    this.#makeKey = makeKey;
    this.#secret = new KeySecret({
      ...source,
      name: objectNames.signingKeysSecret,
      make: () => this.make('current'),
      use: (data) => this.#use(readKeys(data)),
    });
  }

  /** Reads or creates the Secret, then watches it. Throws if its data is invalid. */
  async start(): Promise<void> {
    await this.#secret.start();
  }

  stop(): void {
    this.#secret.stop();
  }

  /** Number that changes whenever a key is removed. A change invalidates cached verifications. */
  get generation(): number {
    return this.#generation;
  }

  current(alg: Algorithm): SigningKey {
    const key = this.#byAlgorithm.get(alg);
    if (key === undefined) throw new Error(`no ${alg} signing key`);
    return key;
  }

  /** Returns the public keys of all algorithms as JSON Web Keys (RFC 7517 section 4). */
  published(): readonly PublishedKey[] {
    return this.#published;
  }

  find(kid: string): VerifyingKey | undefined {
    return this.#byKid.get(kid);
  }

  /** Generates private keys, by their names in the Secret. */
  async make(which: 'current' | 'next'): Promise<KeyData> {
    const made = keyNames.map(async (names) => [names[which], await this.#makeKey(names.alg)] as const);
    return Object.fromEntries(await Promise.all(made));
  }

  /** Changes the Secret (see KeySecret). */
  change(change: Parameters<KeySecret['change']>[0]): Promise<void> {
    return this.#secret.change(change);
  }

  #use({ current, others }: KeySet): void {
    const all = new Map([...current, ...others].map((key) => [key.kid, key]));
    const isKeyRemoved = [...this.#byKid.keys()].some((kid) => !all.has(kid));
    this.#byKid = all;
    this.#byAlgorithm = new Map(current.map((key) => [key.alg, key]));
    this.#published = [...all.values()].map(({ kid, alg, publicKey }) => ({
      ...publicKey.export({ format: 'jwk' }),
      kid,
      alg,
      use: 'sig',
    }));
    if (isKeyRemoved) this.#generation += 1;
  }
}
