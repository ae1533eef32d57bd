/**
 * Who is calling, as Kubernetes describes a user (authentication.k8s.io/v1 UserInfo).
 * `via` says which authenticator proved it, for the log and for audit.
 */
export interface UserInfo {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
  readonly via: 'token' | 'token-review' | 'request-header';
  /** The session of one of our own tokens: streams end with it. */
  readonly sessionID?: string;
}

const authenticated = 'system:authenticated';

/** The user with the group that every identity has (Kubernetes adds it before it judges, so it is added before any access review). */
export const withAuthenticated = (user: UserInfo): UserInfo =>
  user.groups.includes(authenticated) ? user : { ...user, groups: [...user.groups, authenticated] };
