/** Creates JSON Web Tokens with any header and claims, with a valid or an invalid signature. */
import { sign, type KeyObject } from 'node:crypto';

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/**
 * Creates a token that is signed with ES256 or RS256, depending on the key. Without a key, the signature is a few
 * arbitrary bytes.
 */
export function craftJWT(header: object, claims: object, key?: KeyObject): string {
  const content = `${part(header)}.${part(claims)}`;
  if (key === undefined) return `${content}.c2lnbmF0dXJl`;
  const signature =
    key.asymmetricKeyType === 'ec'
      ? sign('sha256', Buffer.from(content), { key, dsaEncoding: 'ieee-p1363' })
      : sign('sha256', Buffer.from(content), key);
  return `${content}.${signature.toString('base64url')}`;
}

/** Returns the header and the claims of a token without verifying the token. */
export function readJWT(token: string): { header: Record<string, unknown>; claims: Record<string, unknown> } {
  const [header, claims] = token
    .split('.')
    .slice(0, 2)
    .map((text) => JSON.parse(Buffer.from(text, 'base64url').toString()) as Record<string, unknown>);
  return { header: header ?? {}, claims: claims ?? {} };
}
