/** The identity of the caller, in the form of kube-apiserver's SelfSubjectReview. */
import { iamAPIVersion } from '../config/names.ts';
import type { Account } from '../accounts/directory/account.ts';
import type { Directory } from '../accounts/directory/directory.ts';
import { authenticated } from '../http/access.ts';
import { defineRoute } from '../http/define-route.ts';
import { objectResponse, type Route } from '../http/route.ts';
import { assertAcceptsObjects } from '../apimachinery/list/resource-responses.ts';
import type { TypeOf } from '../http/schema.ts';
import { writeObject } from '../http/response/pretty.ts';
import { commonParameters } from '../apimachinery/common-parameters.ts';
import { ownAccount } from './target-user.ts';
import { whoAmISchema } from './schemas.ts';
import { base } from './user-store.ts';

export const whoAmIRoute = (directory: Directory): Route =>
  defineRoute({
    method: 'get',
    path: `${base}/whoami`,
    summary: 'Get your own identity',
    description:
      'Returns the username, groups and extra attributes with which your requests are authorized. Available to all authenticated callers, also with a token that only allows changing the password.',
    access: { ...authenticated, passwordChange: true },
    query: commonParameters,
    responses: objectResponse(whoAmISchema, 'The identity of the caller'),
    async handler({ req, res, context, query: { pretty } }) {
      assertAcceptsObjects(req);
      const caller = context.user;
      const { username, uid, groups, extra } = caller;
      const account = ownAccount(directory, caller);
      const whoAmI: TypeOf<typeof whoAmISchema> = {
        kind: 'WhoAmI',
        apiVersion: iamAPIVersion,
        metadata: {},
        status: { userInfo: { username, uid, groups, extra }, user: account && userOf(account) },
      };
      await writeObject(req, res, whoAmI, { pretty });
    },
  });

const userOf = ({ displayName, email, passwordChangeRequired }: Account) => ({
  displayName,
  email,
  passwordChangeRequired,
});
