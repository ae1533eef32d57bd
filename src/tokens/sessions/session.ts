/** One Session: what it says in the cluster, under a name that is never used again. */
import type { KubeObject } from '../../cluster/client/kube-object.ts';
import { parseMilliseconds } from '../../runtime/time.ts';

/** Who somebody is at an identity provider. */
export interface Identity {
  readonly provider: string;
  /** What the provider never gives to anybody else. */
  readonly subject: string;
}

/** What a session waits for in phase Pending. */
export interface SessionCode {
  /** Of the code that redeems it, once. */
  readonly hash: string;
  /** RFC 3339: not any more from then on. */
  readonly redeemBefore: string;
  /** Of an authorization code: what must come with it (RFC 6749 section 4.1.3, RFC 7636 section 4.6). */
  readonly redirectURI?: string;
  readonly challenge?: string;
  /** OpenID Connect Core section 3.1.2.1. */
  readonly nonce?: string;
  /** Of a device code: where it was asked from. */
  readonly sourceIP?: string;
  /** When the user last showed who they are. RFC 3339. */
  readonly authenticatedAt?: string;
  /** The sid of the login to our pages that it was given for: both end together, until the code is redeemed. */
  readonly login?: string;
}

export interface SessionSpec {
  /** Whose session it is; a user of the directory's unless it says otherwise. */
  readonly subjectKind?: 'Client' | 'ServiceAccount';
  /** Empty while a device waits for somebody to let it in; so is the UID. */
  readonly userName: string;
  readonly userUID: string;
  readonly clientID: string;
  readonly scope?: string;
  /** Of a user who has logged in with a password of ours. */
  readonly credentialID?: string;
  /** Of a user who has logged in at an identity provider: who that is there. */
  readonly identity?: Identity;
  /** Of a ServiceAccount, as kube-apiserver told them; of a user, those that the identity provider told at the login. */
  readonly groups?: readonly string[];
  /** Of a user: where they logged in, and by which program. */
  readonly sourceIP?: string;
  readonly userAgent?: string;
  /** Of one that is begun by a code. */
  readonly code?: SessionCode;
  /** RFC 3339. */
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
    /** Of a login to our pages: which clients the user lets have what, each as `client scope scope`. */
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

/** Milliseconds since the epoch. */
export const timesOf = ({ spec, status }: Session): Times => ({
  expiresAt: parseMilliseconds(spec.expiresAt),
  lastUse: parseMilliseconds(status.lastUsedAt ?? spec.createdAt),
});

/** The sessions that have all of this: their user, client, password or link is gone. */
export interface Dismissed {
  readonly userUID?: string;
  readonly clientID?: string;
  /** Of a login with this password. */
  readonly credentialID?: string;
  /** Of a login at this identity provider, and as whom there. */
  readonly provider?: string;
  readonly subject?: string;
}

export function isAmong({ userUID, clientID, credentialID, identity }: SessionSpec, dismissed: Dismissed): boolean {
  const has = { userUID, clientID, credentialID, provider: identity?.provider, subject: identity?.subject };
  return (Object.keys(dismissed) as (keyof Dismissed)[]).every((key) => dismissed[key] === has[key]);
}
