/**
 * Password rules of NIST SP 800-63B section 3.1.1.2: a minimum length and a list of common passwords, but no
 * composition rules. The list, which contains passwords found in breaches, comes from @zxcvbn-ts/language-common (MIT).
 */
import type { Account } from '../directory/account.ts';
import { maxPasswordBytes } from './passwords.ts';

/** Minimum number of characters. */
export const minPasswordLength = 8;

let common: Promise<ReadonlySet<string>> | undefined;

/** Reads the common passwords at the first change of a password, because few replicas ever need them in memory. */
async function readCommon(): Promise<ReadonlySet<string>> {
  // In the bundled server, a CommonJS module has only a default export.
  const { default: words } = await import('@zxcvbn-ts/language-common');
  return new Set(words.dictionary['passwords-common']);
}

/**
 * Returns the rule that a new password breaks; undefined if it breaks no rule. `current` is the current password, if
 * known.
 */
export async function problemWith(
  password: string,
  { username, email, displayName }: Pick<Account, 'username' | 'email' | 'displayName'>,
  current?: string,
): Promise<string | undefined> {
  if (password === current) return 'must not be the current password';
  if (Array.from(password).length < minPasswordLength) return `must have at least ${minPasswordLength} characters`;
  if (Buffer.byteLength(password) > maxPasswordBytes)
    return `must not have more than ${maxPasswordBytes} bytes in UTF-8`;
  const plain = password.toLowerCase();
  if ([username, email, displayName].some((name) => name?.toLowerCase() === plain))
    return 'must not be the username, e-mail address or display name of the user';
  common ??= readCommon();
  return (await common).has(plain) ? 'must not be one of the most common passwords' : undefined;
}
