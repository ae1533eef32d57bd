import type { UpstreamIdentity } from '../cluster/client/impersonation.ts';

/** The caller, as Kubernetes describes a user (authentication.k8s.io/v1 UserInfo). */
export interface UserInfo {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
  /**
   * What proved the identity: our own token, or kube-apiserver. Only kube-apiserver may prove `system:` names, and only our own tokens have
   * accounts.
   */
  readonly via: 'token' | 'token-review' | 'request-header';
  /** The session of one of our own tokens: streams end with it. */
  readonly sessionID?: string;
}

const authenticated = 'system:authenticated';
const unauthenticated = 'system:unauthenticated';
const anonymous = 'system:anonymous';

const serviceAccount = /^system:serviceaccount:([^:]+):[^:]+$/;

/**
 * Returns the holder of a share of scarce slots or memory. Anyone who may create ServiceAccounts in a namespace can have any number of
 * usernames, so all ServiceAccounts of a namespace are one holder.
 */
export function holderOf(user: Pick<UserInfo, 'username'> | undefined): string {
  const username = user?.username ?? '';
  const namespace = serviceAccount.exec(username)?.[1];
  return namespace === undefined ? `user ${username}` : `namespace ${namespace}`;
}

/**
 * Returns the user with the group that Kubernetes adds before it authorizes anyone, except the anonymous and the unauthenticated
 * (AuthenticatedGroupAdder of k8s.io/apiserver).
 */
export const withAuthenticated = (user: UserInfo): UserInfo =>
  user.username === anonymous || user.groups.includes(authenticated) || user.groups.includes(unauthenticated)
    ? user
    : { ...user, groups: [...user.groups, authenticated] };

/** Returns the user to impersonate at kube-apiserver. `system:` names are allowed only if kube-apiserver has proved the identity itself. */
export const upstreamIdentityOf = (user: UserInfo): UpstreamIdentity => ({ ...user, proved: user.via !== 'token' });
