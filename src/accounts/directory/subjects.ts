import type { Account } from './account.ts';
import type { Directory } from './directory.ts';
import { grantTypesFor } from '../../config/schema.ts';
import type { Session } from '../../tokens/sessions/session.ts';
import type { Subject } from '../../tokens/subject.ts';
import type { Sessions } from '../../tokens/sessions/sessions.ts';

const grantTypes = { Client: grantTypesFor('Client'), ServiceAccount: grantTypesFor('ServiceAccount') };

/**
 * Returns the current subject of a session. Returns undefined once the session's client, account, credential or link
 * was removed.
 */
export function subjectOf(session: Session, directory: Directory): Subject | undefined {
  const { subjectKind = 'User', userName, userUID, clientID } = session.spec;
  const client = directory.clients.get(clientID);
  if (client === undefined) return undefined;
  if (subjectKind === 'User') {
    const account = directory.account(userName);
    return account?.active === true && acceptedBy(session, account, directory)
      ? withoutSystemNames(loggedIn(account, session))
      : undefined;
  }
  if (!grantTypes[subjectKind].some((one) => client.grantTypes.includes(one))) return undefined;
  if (subjectKind === 'ServiceAccount') return reviewedSubject(session);
  return client.subject.uid === userUID ? withoutSystemNames(client.subject) : undefined;
}

/**
 * Returns undefined for a subject with a `system:` name, which only kube-apiserver is allowed to assign. Dropping just
 * that name would change the identity.
 */
const withoutSystemNames = (subject: Subject): Subject | undefined =>
  [subject.username, ...subject.groups].some((name) => name.startsWith('system:')) ? undefined : subject;

/** Returns whether the account still accepts the credential or identity that the session was created with. */
function acceptedBy({ spec }: Session, account: Account, directory: Directory): boolean {
  const { userUID, identity, credentialID } = spec;
  if (account.uid !== userUID) return false;
  return identity === undefined ? account.credentialID === credentialID : directory.isLinked(account, identity);
}

const limited = new WeakMap<Account, Subject>();
const withGroups = new WeakMap<Account, WeakMap<Session['spec'], Subject>>();

/**
 * Returns the account with the groups that an identity provider reported at login. The account has no groups while the
 * password must be changed, because no other action is allowed until then.
 */
export function loggedIn(account: Account, { spec }: Session): Subject {
  const { identity, groups = [] } = spec;
  if (account.passwordChangeRequired) return memoized(limited, account, () => ({ ...account, groups: [] }));
  if (identity === undefined || groups.length === 0) return account;
  const bySpec = memoized(withGroups, account, () => new WeakMap<Session['spec'], Subject>());
  return memoized(bySpec, spec, () => ({ ...account, groups: [...account.groups, ...groups] }));
}

const reviewed = new WeakMap<Session['spec'], Subject>();

/** Returns the user that the TokenReview of kube-apiserver named when the session was created. */
export function reviewedSubject({ spec }: Session): Subject {
  const { userName: username, userUID: uid, groups = [] } = spec;
  return memoized(reviewed, spec, () => ({ username, uid, groups, displayName: undefined, email: undefined }));
}

function memoized<K extends object, V>(map: WeakMap<K, V>, key: K, make: () => V): V {
  const before = map.get(key);
  if (before !== undefined) return before;
  const made = make();
  map.set(key, made);
  return made;
}

interface Parts {
  readonly sessions: Sessions;
  readonly directory: Directory;
}

/** Returns the account's valid sessions that are known to this replica, newest first. */
export const loginsOf = (account: Account, { sessions, directory }: Parts): Session[] =>
  sessions
    .ofUser(account.uid)
    .filter((session) => acceptedBy(session, account, directory))
    .toSorted((a, b) => (a.spec.createdAt < b.spec.createdAt ? 1 : -1));

/** Returns a valid session of an account, even if another replica has just created it. */
export async function loginOf(
  account: Account,
  sid: string,
  { sessions, directory }: Parts,
): Promise<Session | undefined> {
  const session = await sessions.active(sid);
  return session !== undefined && acceptedBy(session, account, directory) ? session : undefined;
}
