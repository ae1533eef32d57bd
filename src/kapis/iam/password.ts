/**
 * `users/{u}/password`. One's own needs the current password, whatever else one may do: a token alone, perhaps a stolen one, must not
 * lock its owner out. Another's needs the right to it, the right to impersonate each group that the user is in, and no less power than
 * the user has by name: whoever sets a password may act as that user.
 */
import type { Account } from '../../accounts/directory/account.ts';
import type { Directory } from '../../accounts/directory/directory.ts';
import type { LoginLimiter } from '../../accounts/login-limit.ts';
import { problemWith } from '../../accounts/password-rules.ts';
import { isChangeable, type PasswordStore } from '../../accounts/password-store.ts';
import type { Passwords } from '../../accounts/passwords.ts';
import type { Authorizer } from '../../auth/authorizers/authorizer.ts';
import type { UserInfo } from '../../auth/user.ts';
import { badRequest, forbidden, invalid, tooManyRequests } from '../../errors.ts';
import type { RequestContext, Route } from '../../http/route.ts';
import { writeDone } from '../../http/write.ts';
import { readJson, recordOf } from './body.ts';
import { accountOf, demandNoParameters, demandOn, nameInPath, targetOf, usersResource } from './caller.ts';
import { powerBeyond, type Release } from './powers.ts';
import { base, group } from './user-store.ts';

export interface PasswordParts {
  readonly authorizer: Authorizer;
  readonly directory: Directory;
  readonly passwords: Passwords;
  readonly passwordStore: PasswordStore;
  readonly limiter: LoginLimiter;
  readonly release: Release;
}

/** Counts beside the OAuth clients, none of which can have this name. */
const client = 'users/password';

export function passwordRoute(parts: PasswordParts): Route {
  const { authorizer, directory, passwords, passwordStore, limiter, release } = parts;

  async function demandGroups(caller: UserInfo, { username, groups }: Account): Promise<void> {
    const mayAct = async (name: string): Promise<boolean> =>
      (await authorizer.authorize(caller, { verb: 'impersonate', group: '', resource: 'groups', name })).allowed;
    if (groups.length === 0 || (await mayAct(''))) return;
    for (const name of groups)
      if (!(await mayAct(name)))
        throw forbidden(
          usersResource,
          username,
          `to set the password of a user needs the right to impersonate the groups of that user, and it is missing for ${JSON.stringify(name)}`,
        );
  }

  async function demandPower(caller: UserInfo, account: Account): Promise<void> {
    const power = await powerBeyond(authorizer, release, caller, account);
    if (power === undefined) return;
    const { verb, resource, subresource } = power;
    const what = JSON.stringify(`${verb} ${resource}${subresource === undefined ? '' : `/${subresource}`}`);
    throw forbidden(
      usersResource,
      account.username,
      `to set the password of a user who has the right to ${what} by name needs that right too, or the right to impersonate that user`,
    );
  }

  /** The same limits, work and time as for a login. */
  async function demandCurrent(account: Account, current: string, context: RequestContext): Promise<void> {
    const { auditID, sourceIP, log } = context;
    const attempt = { username: account.username, address: sourceIP, client };
    await limiter.during(attempt, refuse, async () => {
      const { username, passwordHash, active } = account;
      if (await passwords.verify(passwordHash, current, { active, source: sourceIP })) {
        limiter.succeeded(attempt);
        return;
      }
      limiter.failed(attempt);
      log.info('change of a password failed', { auditID, user: username, sourceIP });
      throw forbidden(usersResource, username, 'the current password is wrong');
    });
  }

  return {
    method: 'put',
    path: `${base}/users/:name/password`,
    summary: 'Set a password: your own with the current one beside it',
    parameters: [nameInPath],
    handler: async (req, res, context) => {
      demandNoParameters(context);
      const target = targetOf(directory, context);
      const { caller, username, own } = target;
      const { password, currentPassword } = fieldsOf((await readJson(req, ['application/json'])).value);
      if (own === undefined) await demandOn(authorizer, context, target);
      const account = accountOf(directory, target);
      if (own === undefined) {
        await demandGroups(caller, account);
        await demandPower(caller, account);
      }
      if (!isChangeable(account))
        throw forbidden(
          usersResource,
          username,
          'the hash of this password stands in the cluster configuration object',
        );
      const keepers = own === undefined ? [] : directory.passwordKeepers(own);
      if (keepers.length > 0)
        throw forbidden(
          usersResource,
          username,
          `your password is kept by the identity provider ${keepers.join(' or ')}, and is changed there`,
        );
      const problem = await problemWith(password, account, currentPassword);
      if (problem !== undefined) throw invalidPassword(username, 'password', problem);
      if (own !== undefined) {
        if (currentPassword === undefined)
          throw invalidPassword(username, 'currentPassword', 'is required to change your own password');
        await demandCurrent(own, currentPassword, context);
      }
      await passwordStore.change(account, password, own !== undefined);
      context.log.info('a password was changed', { auditID: context.auditID, user: username, by: caller.username });
      await writeDone(req, res);
    },
  };
}

function refuse(seconds: number): never {
  throw tooManyRequests(`too many failed logins; try again in ${seconds} s`, seconds);
}

const invalidPassword = (username: string, field: string, message: string): Error =>
  invalid({ group, kind: 'User' }, username, [{ reason: 'FieldValueInvalid', field, message }]);

function fieldsOf(value: unknown): { readonly password: string; readonly currentPassword: string | undefined } {
  const { password, currentPassword, ...rest } = recordOf(value) ?? {};
  if (
    typeof password !== 'string' ||
    !['string', 'undefined'].includes(typeof currentPassword) ||
    Object.keys(rest).length > 0
  )
    throw badRequest('the body must be {"password": "…"}, with "currentPassword" for your own');
  return { password, currentPassword: currentPassword as string | undefined };
}
