import { createHash } from 'node:crypto';

/** RFC 9562 section 6.6: the namespace of URLs. */
const urlNamespace = '6ba7b811-9dad-11d1-80b4-00c04fd430c8';

/** RFC 9562 section 5.5: the name-based UUID, version 5, of `name` in the namespace `namespace` (itself a UUID). */
export function uuidV5(namespace: string, name: string): string {
  const digest = createHash('sha1')
    .update(Buffer.from(namespace.replaceAll('-', ''), 'hex'))
    .update(name)
    .digest();
  digest[6] = ((digest[6] ?? 0) & 0x0f) | 0x50;
  digest[8] = ((digest[8] ?? 0) & 0x3f) | 0x80;
  const hex = digest.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
}

/** The uid of a configured user: the same on every replica and after every restart (API.md 2). */
export const configuredUserUID = (issuer: string, username: string): string =>
  uuidV5(uuidV5(urlNamespace, issuer), username);
