/** Where a user is logged in: sessions that are active, and good for the account as it is now. */
import type { Account } from '../directory/account.ts';
import type { Directory } from '../directory/directory.ts';
import type { Session } from '../../tokens/sessions/session.ts';
import type { Sessions } from '../../tokens/sessions/sessions.ts';
import { isOf } from '../directory/subjects.ts';

interface Parts {
  readonly sessions: Sessions;
  readonly directory: Directory;
}

/** As this replica knows them, the newest first. */
export const loginsOf = (account: Account, { sessions, directory }: Parts): Session[] =>
  sessions
    .ofUser(account.uid)
    .filter((session) => isOf(session, account, directory))
    .toSorted((a, b) => (a.spec.createdAt < b.spec.createdAt ? 1 : -1));

/** One of them, also if it has just begun elsewhere. */
export async function loginOf(
  account: Account,
  sid: string,
  { sessions, directory }: Parts,
): Promise<Session | undefined> {
  const session = await sessions.active(sid);
  return session !== undefined && isOf(session, account, directory) ? session : undefined;
}
