import type { UpstreamIdentity } from '../cluster/client/impersonation.ts';

/** The caller, as Kubernetes describes a user (authentication.k8s.io/v1 UserInfo). */
export interface UserInfo {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
  /**
   * Proof of the identity: a token of this server, kube-apiserver, or the reviewed right to impersonate the user. A
   * token never proves a `system:` name, and only tokens of this server belong to accounts.
   */
  readonly via: 'token' | 'token-review' | 'request-header' | 'impersonation';
  /** The session of a token of this server. Streams end when the session is revoked. */
  readonly sessionID?: string;
}

const authenticated = 'system:authenticated';
const unauthenticated = 'system:unauthenticated';
const anonymous = 'system:anonymous';

const serviceAccount = /^system:serviceaccount:([^:]+):[^:]+$/;

/**
 * Returns the name of the holder under which a user's slots and memory are counted. All ServiceAccounts of a namespace
 * share one holder, because anyone who is allowed to create ServiceAccounts there can have any number of usernames.
 */
export function holderOf(user: Pick<UserInfo, 'username'> | undefined): string {
  const username = user?.username ?? '';
  const namespace = serviceAccount.exec(username)?.[1];
  return namespace === undefined ? `user ${username}` : `namespace ${namespace}`;
}

/**
 * Returns the user with the group that Kubernetes adds to every user except anonymous and unauthenticated ones
 * (AuthenticatedGroupAdder of k8s.io/apiserver).
 */
export const withAuthenticated = (user: UserInfo): UserInfo =>
  user.username === anonymous || user.groups.includes(authenticated) || user.groups.includes(unauthenticated)
    ? user
    : { ...user, groups: [...user.groups, authenticated] };

/**
 * Returns the namespace and name of a ServiceAccount; undefined for other users and for names that no ServiceAccount
 * can have (SplitUsername of k8s.io/apiserver).
 */
export function serviceAccountOf(username: string): { readonly namespace: string; readonly name: string } | undefined {
  const [, namespace = '', name = ''] = /^system:serviceaccount:([^:]*):([^:]*)$/.exec(username) ?? [];
  const isValid = label.test(namespace) && namespace.length <= 63 && subdomain.test(name) && name.length <= 253;
  return isValid ? { namespace, name } : undefined;
}

/** Matches DNS labels (RFC 1123). */
const label = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/;
/** Matches DNS subdomains (RFC 1123). */
const subdomain = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;

/**
 * Returns the impersonated user with the groups that kube-apiserver adds (pkg/endpoints/filters/impersonation of
 * k8s.io/apiserver).
 */
export function withImpliedGroups(user: UserInfo): UserInfo {
  const { username, groups } = user;
  if (username === anonymous)
    return groups.includes(unauthenticated) ? user : { ...user, groups: [...groups, unauthenticated] };
  const namespace = groups.length === 0 ? serviceAccountOf(username)?.namespace : undefined;
  if (namespace === undefined) return withAuthenticated(user);
  return withAuthenticated({
    ...user,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`],
  });
}

/** Returns the user to impersonate at kube-apiserver. A token of this server never proves a `system:` name. */
export const upstreamIdentityOf = (user: UserInfo): UpstreamIdentity => ({ ...user, proved: user.via !== 'token' });
