/** Hand-made JSON Web Tokens with any header and claims, validly signed or not. */
import { sign, type KeyObject } from 'node:crypto';

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Signs with ES256 or RS256 according to the key; without a key the signature is a few arbitrary bytes. */
export function craftJWT(header: object, claims: object, key?: KeyObject): string {
  const content = `${part(header)}.${part(claims)}`;
  if (key === undefined) return `${content}.c2lnbmF0dXJl`;
  const signature =
    key.asymmetricKeyType === 'ec'
      ? sign('sha256', Buffer.from(content), { key, dsaEncoding: 'ieee-p1363' })
      : sign('sha256', Buffer.from(content), key);
  return `${content}.${signature.toString('base64url')}`;
}

/** Returns header and claims of a token without verification. */
export function readJWT(token: string): { header: Record<string, unknown>; claims: Record<string, unknown> } {
  const [header, claims] = token
    .split('.')
    .slice(0, 2)
    .map((text) => JSON.parse(Buffer.from(text, 'base64url').toString()) as Record<string, unknown>);
  return { header: header ?? {}, claims: claims ?? {} };
}
