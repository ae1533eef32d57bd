/** Who asks, whom they ask about, and whether that is themselves. */
import type { Account } from '../accounts/directory/account.ts';
import type { Directory } from '../accounts/directory/directory.ts';
import { demand, type Authorizer, type ResourceAttributes } from '../auth/authorizers/authorizer.ts';
import type { UserInfo } from '../auth/user.ts';
import { notFound, unauthorized } from '../runtime/errors.ts';
import { inPath, type RequestContext } from '../http/route.ts';
import { group } from './user-store.ts';

export const usersResource = { group, resource: 'users' };
export const nameInPath = inPath('name', 'The username; ~ is yourself');

export function callerOf({ user }: Pick<RequestContext, 'user'>): UserInfo {
  if (user === undefined) throw unauthorized();
  return user;
}

/** The caller's own account; undefined for those whom somebody else vouches for, also under the same name. */
export function ownAccount(directory: Directory, caller: UserInfo): Account | undefined {
  if (caller.via !== 'token') return undefined;
  const account = directory.account(caller.username);
  return account?.uid === caller.uid ? account : undefined;
}

export interface Target {
  readonly caller: UserInfo;
  readonly username: string;
  /** The caller's own account if it is that which is asked about. */
  readonly own: Account | undefined;
}

/** `users/{u}`, where `~` is the caller. Throws 404 for one who is no user. */
export function targetOf(directory: Directory, context: RequestContext): Target {
  const caller = callerOf(context);
  const { name } = context.info;
  const account = ownAccount(directory, caller);
  if (name === '~' && account === undefined) throw notFound(usersResource, caller.username);
  const username = name === '~' ? caller.username : name;
  return { caller, username, own: account?.username === username ? account : undefined };
}

/** The account that is asked about. Throws 404 if there is none. */
export function accountOf(directory: Directory, { own, username }: Target): Account {
  const account = own ?? directory.account(username);
  if (account === undefined) throw notFound(usersResource, username);
  return account;
}

/** What the request wants to do with a user. */
export const attributesOf = (
  { info: { verb, subresource } }: RequestContext,
  username: string,
): ResourceAttributes => ({
  verb,
  ...usersResource,
  subresource,
  name: username,
});

/** Throws 403 unless the caller may do that. */
export const demandOn = (
  authorizer: Authorizer,
  context: RequestContext,
  { caller, username }: Pick<Target, 'caller' | 'username'>,
): Promise<void> => demand(authorizer, caller, attributesOf(context, username));
