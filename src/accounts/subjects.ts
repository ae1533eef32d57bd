import type { Account, Directory } from './directory.ts';
import type { Session } from './sessions.ts';

/** Whom a token speaks of. One object as long as nothing of it changes, so that others can keep what they know by it. */
export type Subject = Pick<Account, 'username' | 'uid' | 'groups' | 'displayName' | 'email'>;

/** Who a session stands for, by what the directory says now; undefined once anything is gone that it was made for. */
export function subjectOf({ spec }: Session, directory: Directory): Subject | undefined {
  const account = directory.account(spec.userName);
  const stands =
    account !== undefined &&
    account.active &&
    account.uid === spec.userUID &&
    account.credentialID === spec.credentialID &&
    directory.client(spec.clientID) !== undefined;
  return stands ? account : undefined;
}
