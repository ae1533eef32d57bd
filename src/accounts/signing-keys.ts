/**
 * The keys that sign tokens, in the Secret platform-signing-keys so that every replica has the same: one ES256 and one RS256.
 * Made by the first server that finds none.
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
import { ensure } from '../kube/ensure.ts';
import type { Secret } from './secret-refs.ts';

export type Algorithm = 'ES256' | 'RS256';

export interface SigningKey {
  /** RFC 7638 thumbprint of the public key. */
  readonly kid: string;
  readonly alg: Algorithm;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

const generate = promisify(generateKeyPair);

async function newKey(alg: Algorithm): Promise<string> {
  const { privateKey } =
    alg === 'ES256' ? await generate('ec', { namedCurve: 'P-256' }) : await generate('rsa', { modulusLength: 2048 });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
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

export class SigningKeys {
  readonly #byKid: ReadonlyMap<string, SigningKey>;
  readonly #current: ReadonlyMap<Algorithm, SigningKey>;

  constructor(keys: readonly SigningKey[]) {
    this.#byKid = new Map(keys.map((key) => [key.kid, key]));
    this.#current = new Map(keys.map((key) => [key.alg, key]));
  }

  /** Reads the keys from the Secret, or makes them. Throws if the Secret holds something else. */
  static async load(client: KubeClient, namespace: string): Promise<SigningKeys> {
    const secret = await ensure<Secret & { type?: string; stringData?: Record<string, string> }>(
      client,
      `/api/v1/namespaces/${namespace}/secrets`,
      objectNames.signingKeysSecret,
      async () => ({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: objectNames.signingKeysSecret, namespace },
        type: 'Opaque',
        stringData: { 'ES256.pem': await newKey('ES256'), 'RS256.pem': await newKey('RS256') },
      }),
    );
    return new SigningKeys(
      (['ES256', 'RS256'] as const).map((alg) => {
        const pem = secret.data?.[`${alg}.pem`];
        if (pem === undefined)
          throw new Error(
            `Secret ${objectNames.signingKeysSecret} has no key ${alg}.pem; delete the Secret and a new one is made`,
          );
        return readKey(alg, Buffer.from(pem, 'base64').toString('utf8'));
      }),
    );
  }

  current(alg: Algorithm): SigningKey {
    const key = this.#current.get(alg);
    if (key === undefined) throw new Error(`there is no ${alg} key`);
    return key;
  }

  find(kid: string): SigningKey | undefined {
    return this.#byKid.get(kid);
  }
}
