/** `users/{u}/unlock`: the failed logins of a user count no more, on any replica. By right only: a token must not open the way to guesses. */
import type { Directory } from '../accounts/directory/directory.ts';
import { isChangeable, type PasswordStore } from '../accounts/passwords/store.ts';
import type { Authorizer } from '../auth/authorizers/authorizer.ts';
import { forbidden } from '../runtime/errors.ts';
import { authenticated } from '../http/access.ts';
import { json, type Route } from '../http/route.ts';
import { doneSchema } from '../http/meta.ts';
import { writeDone } from '../http/response/write.ts';
import { commonParameters } from '../apimachinery/list/parameters.ts';
import { demandNoParameters } from '../apimachinery/list/query.ts';
import { accountOf, demandOn, nameInPath, targetOf, usersResource } from './caller.ts';
import { base } from './user-store.ts';

export interface UnlockParts {
  readonly authorizer: Authorizer;
  readonly directory: Directory;
  readonly passwordStore: PasswordStore;
}

export const unlockRoute = ({ authorizer, directory, passwordStore }: UnlockParts): Route => ({
  method: 'post',
  path: `${base}/users/:name/unlock`,
  summary: 'Forget the failed logins of a user',
  access: authenticated,
  parameters: [nameInPath, ...commonParameters],
  answers: json(doneSchema, 'Forgotten, on every replica'),
  handler: async (req, res, context) => {
    demandNoParameters(context);
    const target = targetOf(directory, context);
    const { caller, username } = target;
    await demandOn(authorizer, context, target);
    const account = accountOf(directory, target);
    if (!isChangeable(account))
      throw forbidden(
        usersResource,
        username,
        'the hash of this password stands in the cluster configuration object, so replicas cannot be told; use passwordRef',
      );
    await passwordStore.unlock(account);
    context.log.info('a user was unlocked', { auditID: context.auditID, user: username, by: caller.username });
    await writeDone(req, res);
  },
});
