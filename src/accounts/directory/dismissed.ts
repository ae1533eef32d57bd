/**
 * Finds sessions to revoke permanently because their user, password or link was removed. Users must log in again even
 * after the removed object is restored.
 */
import type { Dismissed, SessionSpec } from '../../tokens/sessions/session.ts';
import { identityKey } from './account-index.ts';
import type { Account } from './account.ts';

/** Returns the sessions that a change of an account revokes permanently; none if the password cannot be read. */
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

/** Returns whether an active account no longer accepts the credential or identity that a session was created with. */
export function isOutdated({ identity, credentialID }: SessionSpec, account: Account): boolean {
  if (identity === undefined) return account.credentialID !== '' && account.credentialID !== credentialID;
  return !account.identities.some((one) => identityKey(one) === identityKey(identity));
}
