/** `users/{u}/loginrecords`: who logged in as a user, or tried to. One's own always. */
import type { Directory } from '../accounts/directory/directory.ts';
import type { LoginHistories } from '../accounts/logins/history.ts';
import type { Authorizer } from '../auth/authorizers/authorizer.ts';
import { authenticated } from '../http/access.ts';
import { json, type Route } from '../http/route.ts';
import { demandJson } from '../http/request/negotiate.ts';
import type { TypeOf } from '../http/schema.ts';
import { writeJson } from '../http/response/write.ts';
import { commonParameters, limit } from '../apimachinery/list/parameters.ts';
import { parseLimit, parsePretty } from '../apimachinery/list/query.ts';
import { accountOf, demandOn, nameInPath, targetOf } from './caller.ts';
import { loginRecordListSchema } from './schemas.ts';
import { apiVersion, base } from './user-store.ts';

export interface LoginRecordsParts {
  readonly authorizer: Authorizer;
  readonly directory: Directory;
  readonly loginHistories: LoginHistories;
}

export const loginRecordsRoute = ({ authorizer, directory, loginHistories }: LoginRecordsParts): Route => ({
  method: 'get',
  path: `${base}/users/:name/loginrecords`,
  summary: 'Logins of the user, failed ones too, the newest first',
  access: authenticated,
  parameters: [nameInPath, limit('How many; -1 for all'), ...commonParameters],
  answers: json(loginRecordListSchema),
  handler: async (req, res, context) => {
    demandJson(req.headers);
    const most = parseLimit(context.query);
    const target = targetOf(directory, context);
    if (target.own === undefined) await demandOn(authorizer, context, target);
    const records = await loginHistories.of(accountOf(directory, target));
    const items = records
      .slice(0, most === -1 ? undefined : most)
      .map((record) => ({ kind: 'LoginRecord' as const, apiVersion, ...record }));
    const all: TypeOf<typeof loginRecordListSchema> = {
      kind: 'LoginRecordList',
      apiVersion,
      metadata: {},
      items,
      totalItems: records.length,
    };
    await writeJson(req, res, all, { pretty: parsePretty(context.query) });
  },
});
