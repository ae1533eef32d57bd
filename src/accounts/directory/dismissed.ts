/** Sessions that shall end for good: what they were made for is gone, and if it comes back people log in anew. */
import type { Dismissed, SessionSpec } from '../../tokens/sessions/session.ts';
import { identityKey } from './account-index.ts';
import type { Account } from './account.ts';

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
