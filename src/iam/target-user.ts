/** The caller, the user in the path, and whether they are the same. */
import { iamGroup } from '../config/names.ts';
import type { Account } from '../accounts/directory/account.ts';
import type { Directory } from '../accounts/directory/directory.ts';
import { demand, type Authorizer, type ResourceAttributes } from '../auth/authorizers/authorizer.ts';
import type { UserInfo } from '../auth/user.ts';
import type { authorizedByRoute } from '../http/access.ts';
import type { RouteRequest } from '../http/define-route.ts';
import type { RequestContext } from '../http/route.ts';
import { notFound } from '../runtime/errors.ts';

export const usersResource = { group: iamGroup, resource: 'users' };
export const usernameInPath = { name: 'Username; `~` is your own' };

/** Returns the account of the caller; undefined if another issuer authenticated the caller, also under the same name. */
export function ownAccount(directory: Directory, caller: UserInfo): Account | undefined {
  if (caller.via !== 'token') return undefined;
  const account = directory.account(caller.username);
  return account?.uid === caller.uid ? account : undefined;
}

export interface Target {
  readonly caller: UserInfo;
  readonly username: string;
  /** Account of the caller if it is the user in the path. */
  readonly own: Account | undefined;
}

type UserRequest = Pick<RouteRequest<string, typeof authorizedByRoute>, 'context'>;

/** Returns the user in the path `users/{u}`, where `~` is the caller. Throws 404 if `~` is not a user. */
export function targetOf(directory: Directory, { user: caller, info: { name } }: UserRequest['context']): Target {
  const account = ownAccount(directory, caller);
  if (name === '~' && account === undefined) throw notFound(usersResource, caller.username);
  const username = name === '~' ? caller.username : name;
  return { caller, username, own: account?.username === username ? account : undefined };
}

/** Returns the account of the user in the path. Throws 404 if there is none. */
export function accountOf(directory: Directory, { own, username }: Target): Account {
  const account = own ?? directory.account(username);
  if (account === undefined) throw notFound(usersResource, username);
  return account;
}

/** Returns the attributes by which the request is authorized. */
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

/** Demands the right to the user in the path, and returns that user. */
export const authorizeOn =
  ({ authorizer, directory }: AuthorizeParts) =>
  async ({ context }: UserRequest): Promise<Target> => {
    const target = targetOf(directory, context);
    await demand(authorizer, target.caller, attributesOf(context, target.username));
    return target;
  };

/** The same, except that callers have the right to their own user. */
export const authorizeOnOthers =
  (parts: AuthorizeParts) =>
  async (request: UserRequest): Promise<Target> => {
    const target = targetOf(parts.directory, request.context);
    return target.own === undefined ? await authorizeOn(parts)(request) : target;
  };
