/** Creates and verifies JSON Web Tokens with node:crypto, independently of the library of the server. */
import { createHash, createPublicKey, sign, verify, type JsonWebKey, type KeyObject } from 'node:crypto';
import { get, releasePath, type KubeObject } from './kube.ts';

export interface Decoded {
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
}

const parse = (part: string | undefined): Record<string, unknown> =>
  JSON.parse(Buffer.from(part ?? '', 'base64url').toString('utf8')) as Record<string, unknown>;

export const decodeToken = (token: string): Decoded => ({
  header: parse(token.split('.')[0]),
  claims: parse(token.split('.')[1]),
});

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

export type Algorithm = 'ES256' | 'RS256';

/** Returns the private signing key in PEM from the Secret that all replicas share. */
export async function signingKey(algorithm: Algorithm): Promise<string> {
  const secret = await get<KubeObject & { data: Record<string, string> }>(
    `${releasePath}/secrets/platform-signing-keys`,
  );
  return Buffer.from(secret.data[`${algorithm}.pem`] ?? '', 'base64').toString('utf8');
}

export async function publicKey(algorithm: Algorithm): Promise<KeyObject> {
  return createPublicKey(await signingKey(algorithm));
}

/** Verifies a signature (RFC 7515 section 5.2). */
export function verifies(token: string, key: KeyObject): boolean {
  const [header, claims, signature] = token.split('.');
  return verify(
    'sha256',
    Buffer.from(`${header}.${claims}`),
    { key, dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature ?? '', 'base64url'),
  );
}

/** Returns a token with any content, signed with this key. */
export function forge(header: object, claims: object, key: string): string {
  const signed = `${encode(header)}.${encode(claims)}`;
  return `${signed}.${sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
}

/** Returns a token with any signature. Default: no signature. */
export const assemble = (header: object, claims: object, signature = ''): string =>
  `${encode(header)}.${encode(claims)}.${signature}`;

/** Returns the key ID (RFC 7638). */
export function thumbprint(key: KeyObject): string {
  const { crv, e, kty, n, x, y }: JsonWebKey = key.export({ format: 'jwk' });
  const members = kty === 'EC' ? { crv, kty, x, y } : { e, kty, n };
  return createHash('sha256').update(JSON.stringify(members)).digest('base64url');
}
