/** Validates the data of identity providers and converts it to the `Person` type of this server. */
import { isSubdomain } from '../../config/names.ts';
import type { Identity } from '../../tokens/sessions/session.ts';

export interface Person {
  readonly identity: Identity;
  /** The name from which a username is derived. */
  readonly username: string;
  /** E-mail address: null if there is none, undefined if the provider returns no trustworthy address. */
  readonly email: string | null | undefined;
  readonly displayName: string | undefined;
  /** Groups at the provider, each as `provider:group`. */
  readonly groups: readonly string[];
}

/** Data from a provider, not yet validated. */
export interface Statement {
  readonly subject: string | undefined;
  readonly username: string | undefined;
  readonly email: string | null | undefined;
  readonly displayName: string | undefined;
  readonly groups: readonly string[];
}

/** Error for an authenticated person who is not allowed to log in. The message is for that person. */
export class PersonRefused extends Error {
  override readonly name = 'PersonRefused';
}

/**
 * Maximum number of groups. Groups are stored in the Session, and sent to kube-apiserver with each request of the user.
 */
const maxGroups = 200;
const maxGroupName = 253;
/** Maximum length of `sub` (OpenID Connect Core section 2). */
const maxSubject = 255;
/** Pattern of e-mail addresses, as in the CustomResourceDefinition. */
const emailShape = /^[^@\s\p{Cc}]+@[^@\s\p{Cc}]+$/u;
const maxEmail = 254;
const maxDisplayName = 256;

const isSystem = (text: string): boolean => text.toLowerCase().startsWith('system:');
/**
 * Rejects replacement characters, which stand for invalid UTF-8, and lone surrogates, which are encoded as replacement
 * characters. Otherwise, different values could become equal and identify the wrong person.
 */
const isPlain = (text: string, max: number): boolean =>
  text !== '' && text.length <= max && text.trim() === text && !/[\p{Cc}\p{Cs}\uFFFD]/u.test(text);

const isEmail = (text: string | null | undefined): text is string =>
  typeof text === 'string' && text.length <= maxEmail && emailShape.test(text);

const shortened = (text: string | undefined, max: number): string | undefined => {
  const plain = text
    ?.replaceAll(/\p{Cc}/gu, ' ')
    .trim()
    .slice(0, max);
  return plain === '' ? undefined : plain;
};

/**
 * Returns the person described by a statement. Throws PersonRefused for data that is not allowed for external users.
 */
export function personOf(provider: string, statement: Statement): Person {
  const { subject, username = '', email, displayName, groups } = statement;
  const refuse = (problem: string): never => {
    throw new PersonRefused(`the account data from ${provider} cannot be accepted: ${problem}`);
  };
  if (subject === undefined || !isPlain(subject, maxSubject)) return refuse('the subject is missing or invalid');
  if (isSystem(username) || groups.some(isSystem)) return refuse('a name begins with "system:"');
  const named = [...new Set(groups)].map((group) => `${provider}:${group}`);
  if (!groups.every((group) => isPlain(group, maxGroupName - provider.length - 1)))
    return refuse('a group name is invalid');
  if (named.length > maxGroups) return refuse(`more than ${maxGroups} groups`);
  return {
    identity: { provider, subject },
    username,
    email: isEmail(email) || email === null ? email : undefined,
    displayName: shortened(displayName, maxDisplayName),
    groups: named,
  };
}

/**
 * Maximum number of characters of a provider's username, including combining marks. The expressions below take
 * quadratic time.
 */
const maxName = 1_024;

/**
 * Returns the username for a first login: the part of an e-mail address before the "@", in lower case, without marks,
 * and with "-" instead of characters that usernames cannot have. Returns undefined if nothing is left. If two people
 * get the same username, the second is refused.
 */
export function usernameOf(name: string): string | undefined {
  const [local = ''] = name.split('@', 1);
  if (local.length > maxName) return undefined;
  const username = local
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9.-]+/g, '-')
    .replaceAll(/[-.]*\.[-.]*/g, '.')
    .replaceAll(/^[-.]+|[-.]+$/g, '');
  return isSubdomain(username) ? username : undefined;
}
