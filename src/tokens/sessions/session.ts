/** The Session object in the cluster. The name of a Session is never reused. */
import type { KubeObject } from '../../cluster/client/kube-object.ts';
import { parseMilliseconds } from '../../runtime/time.ts';

/** A user at an identity provider. */
export interface Identity {
  readonly provider: string;
  /** Identifier that the provider never assigns to another user. */
  readonly subject: string;
}

/** The code that starts a session in phase Pending. */
export interface SessionCode {
  /** Hash of the code, which can be redeemed once. */
  readonly hash: string;
  /** RFC 3339 time when the code expires. */
  readonly redeemBefore: string;
  /** Authorization code only: values that its redemption must match (RFC 6749 section 4.1.3, RFC 7636 section 4.6). */
  readonly redirectURI?: string;
  readonly challenge?: string;
  /** Nonce of the request (OpenID Connect Core section 3.1.2.1). */
  readonly nonce?: string;
  /** Device code only: address of the device. */
  readonly sourceIP?: string;
  /** RFC 3339 time when the user last authenticated. */
  readonly authenticatedAt?: string;
  /** Session of the browser login that authorized the code. The code is valid only while that session is active. */
  readonly login?: string;
}

export interface SessionSpec {
  /** Kind of the subject; undefined for a user. */
  readonly subjectKind?: 'Client' | 'ServiceAccount';
  /** Username. Both username and UID are empty while a device waits for approval. */
  readonly userName: string;
  readonly userUID: string;
  readonly clientID: string;
  readonly scope?: string;
  /** Identifies the local password with which the user logged in. */
  readonly credentialID?: string;
  /** Identity with which the user logged in at an identity provider. */
  readonly identity?: Identity;
  /** Groups that the identity provider reported at the login, or kube-apiserver for a ServiceAccount. */
  readonly groups?: readonly string[];
  /** Address and user agent with which the user logged in. */
  readonly sourceIP?: string;
  readonly userAgent?: string;
  /** Present if the session starts with a code. */
  readonly code?: SessionCode;
  /** RFC 3339 time. */
  readonly createdAt: string;
  readonly expiresAt: string;
}

export interface Session extends KubeObject {
  readonly spec: SessionSpec;
  readonly status: {
    readonly phase: 'Pending' | 'Active' | 'Revoked';
    readonly currentHash?: string;
    readonly previousHash?: string;
    readonly rotatedAt?: string;
    readonly lastUsedAt?: string;
    /** Browser login only: consents of the user, each as `client scope scope`. */
    readonly consents?: readonly string[];
  };
}

/** The user of a session, and the login that started it. */
export type SessionOwner = Pick<
  SessionSpec,
  'userName' | 'userUID' | 'credentialID' | 'identity' | 'groups' | 'sourceIP' | 'userAgent'
>;

/** Returns the owner for sessions that this session authorizes. */
export const sessionOwnerOf = ({
  userName,
  userUID,
  credentialID,
  identity,
  groups,
  sourceIP,
  userAgent,
}: SessionSpec): SessionOwner => ({
  userName,
  userUID,
  ...(credentialID === undefined ? {} : { credentialID }),
  ...(identity === undefined ? {} : { identity }),
  ...(groups === undefined ? {} : { groups }),
  ...(sourceIP === undefined ? {} : { sourceIP }),
  ...(userAgent === undefined ? {} : { userAgent }),
});

interface Times {
  readonly expiresAt: number;
  readonly lastUse: number;
}

/** Returns the times of a session in milliseconds since the epoch. */
export const timesOf = ({ spec, status }: Session): Times => ({
  expiresAt: parseMilliseconds(spec.expiresAt),
  lastUse: parseMilliseconds(status.lastUsedAt ?? spec.createdAt),
});

/** Selects the sessions of a removed user, client, password or link. A session must match all of these properties. */
export interface Dismissed {
  readonly userUID?: string;
  readonly clientID?: string;
  /** Identifies the local password of the login. */
  readonly credentialID?: string;
  /** Identity provider of the login, and the user there. */
  readonly provider?: string;
  readonly subject?: string;
}

function isDismissedBy({ userUID, clientID, credentialID, identity }: SessionSpec, dismissed: Dismissed): boolean {
  const has = { userUID, clientID, credentialID, provider: identity?.provider, subject: identity?.subject };
  return (Object.keys(dismissed) as (keyof Dismissed)[]).every((key) => dismissed[key] === has[key]);
}

/** Returns a function that reports whether a session is dismissed. Its time does not depend on the number of clients. */
export function dismissedBy(all: readonly Dismissed[]): (spec: SessionSpec) => boolean {
  const groups = Map.groupBy(all, ({ userUID, clientID, provider }) => userUID ?? clientID ?? provider);
  return (spec) =>
    [spec.userUID, spec.clientID, spec.identity?.provider].some(
      (key) => groups.get(key)?.some((one) => isDismissedBy(spec, one)) === true,
    );
}
