/**
 * What may be a password: NIST SP 800-63B section 3.1.1.2, length and a list of common ones, no rules about kinds of characters. The
 * list is that of @zxcvbn-ts/language-common (MIT), of passwords found in breaches.
 */
import type { Account } from '../directory/account.ts';
import { longestPassword } from './passwords.ts';

/** Characters. */
export const shortestPassword = 8;

let common: Promise<ReadonlySet<string>> | undefined;

/** Read at the first change of a password: few replicas ever need its memory. */
async function readCommon(): Promise<ReadonlySet<string>> {
  const { dictionary } = await import('@zxcvbn-ts/language-common');
  return new Set(dictionary['passwords-common']);
}

/** Why this must not become the password of a user; undefined if it may. `current`: the one before, where it is known. */
export async function problemWith(
  password: string,
  { username, email, displayName }: Pick<Account, 'username' | 'email' | 'displayName'>,
  current?: string,
): Promise<string | undefined> {
  if (password === current) return 'must not be the current one';
  if (Array.from(password).length < shortestPassword) return `must have at least ${shortestPassword} characters`;
  if (Buffer.byteLength(password) > longestPassword) return `must not have more than ${longestPassword} bytes in UTF-8`;
  const plain = password.toLowerCase();
  if ([username, email, displayName].some((name) => name?.toLowerCase() === plain))
    return 'must not be a name of the user';
  common ??= readCommon();
  return (await common).has(plain) ? 'must not be one of the most common passwords' : undefined;
}
