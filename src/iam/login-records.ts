/**
 * Serves `users/{u}/loginrecords`, the logins and failed attempts of a user. Users are allowed to read their own login
 * records.
 */
import { iamAPIVersion } from '../config/names.ts';
import type { Directory } from '../accounts/directory/directory.ts';
import type { LoginHistories } from '../accounts/logins/history.ts';
import type { Authorizer } from '../auth/authorizers/authorizer.ts';
import { authorizedByRoute } from '../http/access.ts';
import { defineRoute } from '../http/define-route.ts';
import { queryParameters } from '../http/request/parameters.ts';
import { objectResponse, type Route } from '../http/route.ts';
import { assertAcceptsObjects } from '../apimachinery/list/resource-responses.ts';
import { described, type TypeOf } from '../http/schema.ts';
import { writeObject } from '../http/response/pretty.ts';
import { commonShape, limitParameter } from '../apimachinery/common-parameters.ts';
import { accountOf, authorizeOnOthers, usernameInPath } from './target-user.ts';
import { loginRecordListSchema } from './schemas.ts';
import { base } from './user-store.ts';

export interface LoginRecordsParts {
  readonly authorizer: Authorizer;
  readonly directory: Directory;
  readonly loginHistories: LoginHistories;
}

export const loginRecordsRoute = (parts: LoginRecordsParts): Route =>
  defineRoute({
    method: 'get',
    path: `${base}/users/:name/loginrecords`,
    summary: 'List the login records of a user',
    description:
      'Returns logins and failed attempts, the newest first. Requires the right to `get users/loginrecords` in `iam.platform.io`, except for your own records. `authentication.loginHistory` of the configuration sets how many records are kept, and for how long.',
    access: authorizedByRoute,
    pathParameters: usernameInPath,
    query: queryParameters({
      limit: described('Maximum number of records; -1 for all', limitParameter),
      ...commonShape,
    }),
    responses: objectResponse(loginRecordListSchema, 'The login records'),
    authorize: authorizeOnOthers(parts),
    async handler({ req, res, query: { limit, pretty }, granted: target }) {
      assertAcceptsObjects(req);
      const records = await parts.loginHistories.of(accountOf(parts.directory, target));
      const items = records
        .slice(0, limit === -1 ? undefined : limit)
        .map((record) => ({ kind: 'LoginRecord' as const, apiVersion: iamAPIVersion, ...record }));
      const all: TypeOf<typeof loginRecordListSchema> = {
        kind: 'LoginRecordList',
        apiVersion: iamAPIVersion,
        metadata: {},
        items,
        totalItems: records.length,
      };
      await writeObject(req, res, all, { pretty });
    },
  });
