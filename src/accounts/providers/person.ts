/** People as identity providers know them, in our terms. */
import { isSubdomain } from '../../config/names.ts';
import type { Identity } from '../../tokens/sessions/session.ts';

export interface Person {
  readonly identity: Identity;
  /** What a username is made of. */
  readonly username: string;
  /** Null: there is none; undefined: the provider says nothing of it that is believed. */
  readonly email: string | null | undefined;
  readonly displayName: string | undefined;
  /** Each as `provider:group`. */
  readonly groups: readonly string[];
}

/** What a provider says, none of it believed yet. */
export interface Statement {
  readonly subject: string | undefined;
  readonly username: string | undefined;
  readonly email: string | null | undefined;
  readonly displayName: string | undefined;
  readonly groups: readonly string[];
}

/** Somebody has shown who they are, and may not log in all the same. The message is for them. */
export class PersonRefused extends Error {
  override readonly name = 'PersonRefused';
}

/** They stand in the Session, and cross to kube-apiserver with each request that is made as its user. */
const maxGroups = 200;
const longestName = 253;
/** OpenID Connect Core section 2 has as many for `sub`. */
const longestSubject = 255;
/** As the CustomResourceDefinition has it. */
const emailShape = /^[^@\s\p{Cc}]+@[^@\s\p{Cc}]+$/u;
const longestEmail = 254;
const longestDisplayName = 256;

const isSystem = (text: string): boolean => text.toLowerCase().startsWith('system:');
/** A replacement character stands for bytes that are not UTF-8, and a lone surrogate becomes one: two people could have the same. */
const isPlain = (text: string, longest: number): boolean =>
  text !== '' && text.length <= longest && text.trim() === text && !/[\p{Cc}\p{Cs}\uFFFD]/u.test(text);

const isEmail = (text: string | null | undefined): text is string =>
  typeof text === 'string' && text.length <= longestEmail && emailShape.test(text);

const shortened = (text: string | undefined, longest: number): string | undefined => {
  const plain = text
    ?.replaceAll(/\p{Cc}/gu, ' ')
    .trim()
    .slice(0, longest);
  return plain === '' ? undefined : plain;
};

/** Throws PersonRefused for names that nobody from elsewhere may have. */
export function personOf(provider: string, said: Statement): Person {
  const { subject, username = '', email, displayName, groups } = said;
  const refuse = (what: string): never => {
    throw new PersonRefused(`${provider} says of you what is not taken here: ${what}`);
  };
  if (subject === undefined || !isPlain(subject, longestSubject))
    return refuse('no identity, or none that can be kept');
  if (isSystem(username) || groups.some(isSystem)) return refuse('a name that begins with "system:"');
  const named = [...new Set(groups)].map((group) => `${provider}:${group}`);
  if (!groups.every((group) => isPlain(group, longestName - provider.length - 1)))
    return refuse('a group without a name that can be kept');
  if (named.length > maxGroups) return refuse(`more than ${maxGroups} groups`);
  return {
    identity: { provider, subject },
    username,
    email: isEmail(email) || email === null ? email : undefined,
    displayName: shortened(displayName, longestDisplayName),
    groups: named,
  };
}

/** Characters that a provider's name may have, marks included: the expressions below take quadratic time. */
const maxName = 1_024;

/**
 * Returns the username for a first login: the part of an e-mail address before the "@", in lower case, without marks, and with "-" in
 * place of characters that usernames do not have. Undefined if no username is left. Two people may get the same one: the second is
 * refused.
 */
export function usernameOf(said: string): string | undefined {
  const [local = ''] = said.split('@', 1);
  if (local.length > maxName) return undefined;
  const name = local
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9.-]+/g, '-')
    .replaceAll(/[-.]*\.[-.]*/g, '.')
    .replaceAll(/^[-.]+|[-.]+$/g, '');
  return isSubdomain(name) ? name : undefined;
}
