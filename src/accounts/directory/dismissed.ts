/** Sessions that shall end for good: what they were made for is gone, and if it comes back people log in anew. */
import type { SessionSpec } from '../sessions/session.ts';
import { identityKey } from './account-index.ts';
import type { Account } from './account.ts';

/** Those that have all of this. */
export interface Dismissed {
  readonly userUID?: string;
  readonly clientID?: string;
  /** Begun with this password. */
  readonly credentialID?: string;
  /** Begun at this identity provider, and as whom there. */
  readonly provider?: string;
  readonly subject?: string;
}

export function isAmong({ userUID, clientID, credentialID, identity }: SessionSpec, dismissed: Dismissed): boolean {
  const has = { userUID, clientID, credentialID, provider: identity?.provider, subject: identity?.subject };
  return (Object.keys(dismissed) as (keyof Dismissed)[]).every((key) => dismissed[key] === has[key]);
}

/** What a change of an account dismisses. Of a password that cannot be read nothing is known. */
export function dismissedBetween(before: Account, after: Account | undefined): readonly Dismissed[] {
  const { uid: userUID, credentialID, identities } = before;
  if (!before.active) return [];
  if (after?.active !== true || after.uid !== userUID) return [{ userUID }];
  const isChanged = credentialID !== '' && after.credentialID !== '' && credentialID !== after.credentialID;
  const left = new Set(after.identities.map(identityKey));
  const unlinked = identities.filter((one) => !left.has(identityKey(one)));
  return [
    ...(isChanged ? [{ userUID, credentialID }] : []),
    ...unlinked.map(({ provider, subject }) => ({ userUID, provider, subject })),
  ];
}

/** Whether an account that is active cannot be logged in to any more by what a session began with. */
export function isOutdated({ identity, credentialID }: SessionSpec, account: Account): boolean {
  if (identity === undefined) return account.credentialID !== '' && account.credentialID !== credentialID;
  return !account.identities.some((one) => identityKey(one) === identityKey(identity));
}
