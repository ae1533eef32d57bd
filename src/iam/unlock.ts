/**
 * Serves `users/{u}/unlock`, which resets the failed logins of a user on all replicas. The request requires a right,
 * even for your own user, because a stolen token must not allow more password guesses.
 */
import type { Directory } from '../accounts/directory/directory.ts';
import { isChangeable, type PasswordStore } from '../accounts/passwords/store.ts';
import type { Authorizer } from '../auth/authorizers/authorizer.ts';
import { forbidden } from '../runtime/errors.ts';
import { authorizedByRoute } from '../http/access.ts';
import { defineRoute } from '../http/define-route.ts';
import { json, type Route } from '../http/route.ts';
import { doneSchema } from '../http/meta-schemas.ts';
import { writeDone } from '../http/response/write.ts';
import { commonParameters } from '../apimachinery/common-parameters.ts';
import { accountOf, authorizeOn, usernameInPath, usersResource } from './target-user.ts';
import { base } from './user-store.ts';

export interface UnlockParts {
  readonly authorizer: Authorizer;
  readonly directory: Directory;
  readonly passwordStore: PasswordStore;
}

export const unlockRoute = (parts: UnlockParts): Route =>
  defineRoute({
    method: 'post',
    path: `${base}/users/:name/unlock`,
    summary: 'Unlock a user',
    description:
      'Resets the failed logins of the user, for all names and addresses, on every replica. The limits per address and per client are not reset. Requires the right to `create users/unlock` in `iam.platform.io`, even for your own user. If the cluster configuration object contains the password hash of the user, the response is 403.',
    access: authorizedByRoute,
    pathParameters: usernameInPath,
    query: commonParameters,
    responses: json(doneSchema, 'The user was unlocked'),
    authorize: authorizeOn(parts),
    async handler({ req, res, context, granted: target }) {
      const account = accountOf(parts.directory, target);
      if (!isChangeable(account))
        throw forbidden(
          usersResource,
          target.username,
          'only users with passwordRef can be unlocked; the password hash of this user is in the cluster configuration object',
        );
      await parts.passwordStore.unlock(account);
      context.log.info('user unlocked', {
        auditID: context.auditID,
        user: target.username,
        by: target.caller.username,
      });
      await writeDone(req, res);
    },
  });
