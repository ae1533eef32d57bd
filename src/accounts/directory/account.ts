/**
 * Accounts that are allowed to log in: configured users, and User objects with the Secrets that hold their passwords.
 */
import type { PlatformConfiguration } from '../../config/schema.ts';
import type { Identity } from '../../tokens/sessions/session.ts';
import type { SecretKeyRef, SecretRefs } from '../../cluster/secret-refs.ts';
import { cacheLast } from '../../runtime/cache-last.ts';
import type { User, Users } from './users.ts';
import { changedKey, credentialOf, rehashedKey, unlockedKey, type Credential } from './credentials.ts';
import { createHash } from 'node:crypto';

/** The UUID namespace for URLs (RFC 9562 section 6.6). */
export const urlNamespace = '6ba7b811-9dad-11d1-80b4-00c04fd430c8';

/** Returns the name-based UUID, version 5 (RFC 9562 section 5.5). `namespace` is a UUID. */
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

/** Returns the namespace of the uids of configured users. A server rarely changes its issuer. */
const namespaceOf = cacheLast((issuer: string) => uuidV5(urlNamespace, issuer));

/** Returns the uid of a configured user. The uid is the same on every replica and after every restart. */
export const configuredUserUID = (issuer: string, username: string): string => uuidV5(namespaceOf(issuer), username);

/** Shared by all accounts, of which there may be 100,000. */
const none: readonly never[] = [];

export interface Account extends Credential {
  readonly username: string;
  readonly uid: string;
  /** Groups of the user. Sessions have no groups while the password must be changed (see `loggedIn`). */
  readonly groups: readonly string[];
  readonly displayName: string | undefined;
  readonly email: string | undefined;
  readonly active: boolean;
  readonly passwordChangeRequired: boolean;
  /**
   * Secret and key in which the hash is or will be stored; 'owned' for the Secret that the User owns. Undefined if the
   * configuration contains the hash itself.
   */
  readonly passwordRef: SecretKeyRef | 'owned' | undefined;
  /** Value that changes whenever the failed logins of the user are reset. */
  readonly unlocked: string | undefined;
  /** Identities at identity providers that are allowed to log in as this user. */
  readonly identities: readonly Identity[];
}

export const configuredAccounts = (
  { issuer, users }: PlatformConfiguration['authentication'],
  secrets: SecretRefs,
): Account[] =>
  users.map((user) => {
    const read = (keyFor: (key: string) => string): string | undefined =>
      user.passwordRef && secrets.read({ ...user.passwordRef, key: keyFor(user.passwordRef.key) });
    const passwordChangeRequired = user.passwordChangeRequired && read(changedKey) === undefined;
    return {
      username: user.username,
      uid: configuredUserUID(issuer, user.username),
      groups: user.groups,
      displayName: user.displayName,
      email: user.email,
      active: user.state === 'Active',
      passwordChangeRequired,
      passwordRef: user.passwordRef,
      unlocked: read(unlockedKey),
      identities: none,
      ...credentialOf(user.passwordHash ?? (user.passwordRef && secrets.read(user.passwordRef)), read(rehashedKey)),
    };
  });

/**
 * Returns whether the name or a group of a User starts with `system:`. The CustomResourceDefinition rejects such names
 * too, unless an administrator has removed that rule.
 */
export const hasSystemName = ({ metadata, spec }: User): boolean =>
  [metadata.name, ...(spec?.groups ?? [])].some((name) => name.startsWith('system:'));

export function accountOf(user: User, users: Users): Account {
  const { metadata, spec = {} } = user;
  const { name: username, uid = '' } = metadata;
  const { displayName, email, groups = none, state = 'Active', passwordChangeRequired = false } = spec;
  return {
    username,
    uid,
    groups,
    displayName,
    email,
    active: state === 'Active' && metadata.deletionTimestamp === undefined && !hasSystemName(user),
    passwordChangeRequired,
    passwordRef: 'owned',
    unlocked: users.passwordValue(uid, unlockedKey),
    identities: spec.identities ?? none,
    ...credentialOf(users.passwordValue(uid), users.passwordValue(uid, rehashedKey)),
  };
}
