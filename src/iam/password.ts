/**
 * Serves `users/{u}/password`. Changing your own password requires the current password, regardless of your rights,
 * because a stolen token must not lock out its owner. Setting the password of another user gives access to that user.
 * The caller therefore needs the right to `users/password`, the right to impersonate each group of the user, and the
 * rights that the user has by name.
 */
import { iamGroup } from '../config/names.ts';
import type { Account } from '../accounts/directory/account.ts';
import { OwnPassword, type OwnPasswordParts } from '../accounts/passwords/own.ts';
import { problemWith } from '../accounts/passwords/rules.ts';
import { isChangeable } from '../accounts/passwords/store.ts';
import type { Authorizer } from '../auth/authorizers/authorizer.ts';
import type { UserInfo } from '../auth/user.ts';
import { forbidden, invalid, tooManyRequests } from '../runtime/errors.ts';
import { authorizedByRoute } from '../http/access.ts';
import { defineRoute } from '../http/define-route.ts';
import { json, type RequestContext, type Route } from '../http/route.ts';
import { doneSchema } from '../http/meta-schemas.ts';
import { writeDone } from '../http/response/write.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import { jsonBody } from '../http/request/json-body.ts';
import { commonParameters } from '../apimachinery/common-parameters.ts';
import { accountOf, authorizeOnOthers, usernameInPath, usersResource } from './target-user.ts';
import { missingRootRight, resourcePath, type Release } from './root-rights.ts';
import { passwordSchema } from './schemas.ts';
import { base } from './user-store.ts';

export interface PasswordParts extends OwnPasswordParts {
  readonly authorizer: Authorizer;
  readonly client: Pick<KubeClient, 'stream'>;
  readonly release: Release;
}

/** Used instead of the name of an OAuth client in login records and limits. No OAuth client can have this name. */
const client = 'users/password';

export function passwordRoute(parts: PasswordParts): Route {
  const { directory, passwordStore } = parts;
  const ownPassword = new OwnPassword(parts);

  async function changeOwn(
    own: Account,
    current: string | undefined,
    next: string,
    { auditID, sourceIP, log }: RequestContext,
  ): Promise<void> {
    const { username } = own;
    if (current === undefined)
      throw invalidPassword(username, 'currentPassword', 'is required to change your own password');
    const refused = await ownPassword.change(own, current, next, { client, auditID, sourceIP, log });
    if (refused === undefined) return;
    const { message } = refused;
    if (refused.reason === 'unfit') throw invalidPassword(username, 'password', message);
    if (refused.reason === 'wrong') throw invalidPassword(username, 'currentPassword', message);
    if (refused.reason === 'limited') throw tooManyRequests(message, refused.retryAfter);
    throw forbidden(usersResource, username, message);
  }

  async function changeOther(account: Account, next: string, context: RequestContext, caller: UserInfo): Promise<void> {
    const { username } = account;
    await assertGroupRights(parts.authorizer, caller, account);
    await assertRootRights(parts, caller, account);
    if (!isChangeable(account))
      throw forbidden(
        usersResource,
        username,
        'the password hash of this user is in the cluster configuration object: change the hash there',
      );
    const problem = await problemWith(next, account);
    if (problem !== undefined) throw invalidPassword(username, 'password', problem);
    await passwordStore.change(account, next, false);
    context.log.info('password changed', { auditID: context.auditID, user: username, by: caller.username });
  }

  return defineRoute({
    method: 'put',
    path: `${base}/users/:name/password`,
    summary: 'Set the password of a user',
    description:
      "Revokes the sessions that were started with the previous password.\n\n- Your own password requires only `currentPassword`. A wrong current password counts as a failed login, and the response is 422.\n- Another user's password requires the right to `update users/password` in `iam.platform.io`, and to `impersonate` each group of the user. If role bindings by name give the user more than read access at cluster scope, in `kube-system` or in the release's namespace, you also need these rights, or the right to `impersonate` the user.",
    access: { ...authorizedByRoute, passwordChange: true },
    pathParameters: usernameInPath,
    query: commonParameters,
    body: jsonBody(passwordSchema),
    responses: json(doneSchema, 'The password was set'),
    errors: [422],
    authorize: authorizeOnOthers(parts),
    async handler({ req, res, context, body: { password, currentPassword }, granted: target }) {
      if (target.own !== undefined) await changeOwn(target.own, currentPassword, password, context);
      else await changeOther(accountOf(directory, target), password, context, target.caller);
      await writeDone(req, res);
    },
  });
}

/**
 * Throws 403 unless the caller is allowed to impersonate each group of the user: setting the password gives access to
 * the groups.
 */
async function assertGroupRights(
  authorizer: Authorizer,
  caller: UserInfo,
  { username, groups }: Account,
): Promise<void> {
  const canImpersonate = async (name: string): Promise<boolean> =>
    (await authorizer.authorize(caller, { verb: 'impersonate', group: '', resource: 'groups', name })).allowed;
  if (groups.length === 0 || (await canImpersonate(''))) return;
  for (const name of groups)
    if (!(await canImpersonate(name)))
      throw forbidden(
        usersResource,
        username,
        `setting the password of a user requires the right to impersonate each group of that user; this right is missing for ${JSON.stringify(name)}`,
      );
}

/** Throws 403 unless the caller has the root-equivalent rights that the user has by name. */
async function assertRootRights(parts: PasswordParts, caller: UserInfo, account: Account): Promise<void> {
  const missing = await missingRootRight(parts, caller, account);
  if (missing === undefined) return;
  const { verb, name } = missing;
  const right = JSON.stringify([verb, resourcePath(missing), ...(name === undefined ? [] : [name])].join(' '));
  throw forbidden(
    usersResource,
    account.username,
    `role bindings by name give this user the right to ${right}: setting the password requires the same right, or the right to impersonate the user`,
  );
}

const invalidPassword = (username: string, field: string, message: string): Error =>
  invalid({ group: iamGroup, kind: 'User' }, username, [{ reason: 'FieldValueInvalid', field, message }]);
