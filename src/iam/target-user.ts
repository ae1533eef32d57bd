/** The user in the path of a request, who may be the caller. */
import { iamGroup } from '../config/names.ts';
import type { Account } from '../accounts/directory/account.ts';
import type { Directory } from '../accounts/directory/directory.ts';
import { assertAllowed, type Authorizer, type ResourceAttributes } from '../auth/authorizers/authorizer.ts';
import type { UserInfo } from '../auth/user.ts';
import type { authorizedByRoute } from '../http/access.ts';
import type { RouteRequest } from '../http/define-route.ts';
import type { RequestContext } from '../http/route.ts';
import { notFound } from '../runtime/errors.ts';

export const usersResource = { group: iamGroup, resource: 'users' };
export const usernameInPath = { name: 'Username; `~` is your own' };

/**
 * Returns the account of the caller; undefined if another issuer authenticated the caller, even with the same username.
 */
export function ownAccount(directory: Directory, caller: UserInfo): Account | undefined {
  if (caller.via !== 'token') return undefined;
  const account = directory.account(caller.username);
  return account?.uid === caller.uid ? account : undefined;
}

export interface TargetUser {
  readonly caller: UserInfo;
  readonly username: string;
  /** Account of the caller if it is the user in the path. */
  readonly own: Account | undefined;
}

type UserRequest = Pick<RouteRequest<string, typeof authorizedByRoute>, 'context'>;

/** Returns the user in the path `users/{u}`, where `~` is the caller. Throws 404 if `~` is not a user. */
export function targetUserOf(
  directory: Directory,
  { user: caller, info: { name } }: UserRequest['context'],
): TargetUser {
  const account = ownAccount(directory, caller);
  if (name === '~' && account === undefined) throw notFound(usersResource, caller.username);
  const username = name === '~' ? caller.username : name;
  return { caller, username, own: account?.username === username ? account : undefined };
}

/** Returns the account of the user in the path. Throws 404 if there is none. */
export function accountOf(directory: Directory, { own, username }: TargetUser): Account {
  const account = own ?? directory.account(username);
  if (account === undefined) throw notFound(usersResource, username);
  return account;
}

/** Returns the attributes of the access review for the request. */
export const attributesOf = (
  { info: { verb, subresource } }: RequestContext,
  username: string,
): ResourceAttributes => ({
  verb,
  ...usersResource,
  subresource,
  name: username,
});

interface AuthorizeParts {
  readonly authorizer: Authorizer;
  readonly directory: Directory;
}

/** Returns the user in the path. Throws 403 unless the caller has the right to that user. */
export const authorizeOn =
  ({ authorizer, directory }: AuthorizeParts) =>
  async ({ context }: UserRequest): Promise<TargetUser> => {
    const target = targetUserOf(directory, context);
    await assertAllowed(authorizer, target.caller, attributesOf(context, target.username));
    return target;
  };

/** Authorizes like `authorizeOn`, but callers need no right to their own user. */
export const authorizeOnOthers =
  (parts: AuthorizeParts) =>
  async (request: UserRequest): Promise<TargetUser> => {
    const target = targetUserOf(parts.directory, request.context);
    return target.own === undefined ? await authorizeOn(parts)(request) : target;
  };
