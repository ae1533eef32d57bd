import type { Account } from './account.ts';
import type { Directory } from './directory.ts';
import { grantTypesFor } from '../../config/schema.ts';
import type { Session } from '../../tokens/sessions/session.ts';
import type { Subject } from '../../tokens/subject.ts';
import type { Sessions } from '../../tokens/sessions/sessions.ts';

const grantTypes = { Client: grantTypesFor('Client'), ServiceAccount: grantTypesFor('ServiceAccount') };

/** Who a session stands for, by what the directory says now; undefined once anything is gone that it was made for. */
export function subjectOf(session: Session, directory: Directory): Subject | undefined {
  const { subjectKind = 'User', userName, userUID, clientID } = session.spec;
  const client = directory.clients.get(clientID);
  if (client === undefined) return undefined;
  if (subjectKind === 'User') {
    const account = directory.account(userName);
    return account?.active === true && isOf(session, account, directory)
      ? withoutSystemNames(loggedIn(account, session))
      : undefined;
  }
  if (!grantTypes[subjectKind].some((one) => client.grantTypes.includes(one))) return undefined;
  if (subjectKind === 'ServiceAccount') return reviewedSubject(session);
  return client.subject.uid === userUID ? withoutSystemNames(client.subject) : undefined;
}

/** Undefined for a subject with a name of Kubernetes' own, which only kube-apiserver may give: nothing is left out of an identity. */
const withoutSystemNames = (subject: Subject): Subject | undefined =>
  [subject.username, ...subject.groups].some((name) => name.startsWith('system:')) ? undefined : subject;

/** Whether a session began with what the account can still be logged in to by. */
function isOf({ spec }: Session, account: Account, directory: Directory): boolean {
  const { userUID, identity, credentialID } = spec;
  if (account.uid !== userUID) return false;
  return identity === undefined ? account.credentialID === credentialID : directory.isLinked(account, identity);
}

const limited = new WeakMap<Account, Subject>();
const withGroups = new WeakMap<Account, WeakMap<Session['spec'], Subject>>();

/**
 * The account, with the groups that an identity provider gave at the login. While the password must be changed it has none: nothing but
 * that is allowed then.
 */
export function loggedIn(account: Account, { spec }: Session): Subject {
  const { identity, groups = [] } = spec;
  if (account.passwordChangeRequired) return kept(limited, account, () => ({ ...account, groups: [] }));
  if (identity === undefined || groups.length === 0) return account;
  const bySpec = kept(withGroups, account, () => new WeakMap<Session['spec'], Subject>());
  return kept(bySpec, spec, () => ({ ...account, groups: [...account.groups, ...groups] }));
}

const reviewed = new WeakMap<Session['spec'], Subject>();

/** Whom kube-apiserver named when the session began. */
export function reviewedSubject({ spec }: Session): Subject {
  const { userName: username, userUID: uid, groups = [] } = spec;
  return kept(reviewed, spec, () => ({ username, uid, groups, displayName: undefined, email: undefined }));
}

function kept<K extends object, V>(map: WeakMap<K, V>, key: K, make: () => V): V {
  const before = map.get(key);
  if (before !== undefined) return before;
  const made = make();
  map.set(key, made);
  return made;
}

/** Where a user is logged in: sessions that are active, and good for the account as it is now. */
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
