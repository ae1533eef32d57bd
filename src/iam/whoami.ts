/** Who the server takes the caller for, in the form of kube-apiserver's SelfSubjectReview. */
import type { Account } from '../accounts/directory/account.ts';
import type { Directory } from '../accounts/directory/directory.ts';
import { json, type Route } from '../http/route.ts';
import { demandJson } from '../http/request/negotiate.ts';
import type { TypeOf } from '../http/schema.ts';
import { writeJson } from '../http/response/write.ts';
import { demandNoParameters, parsePretty } from '../apimachinery/list/query.ts';
import { commonParameters } from '../apimachinery/list/parameters.ts';
import { callerOf, ownAccount } from './caller.ts';
import { whoAmISchema } from './schemas.ts';
import { apiVersion, base } from './user-store.ts';

export const whoAmIRoute = (directory: Directory): Route => ({
  method: 'get',
  path: `${base}/whoami`,
  summary: 'Who you are here',
  access: { kind: 'authenticated', passwordChange: true },
  parameters: commonParameters,
  answers: json(whoAmISchema),
  handler: async (req, res, context) => {
    demandJson(req.headers);
    demandNoParameters(context);
    const caller = callerOf(context);
    const { username, uid, groups, extra } = caller;
    const account = ownAccount(directory, caller);
    const whoAmI: TypeOf<typeof whoAmISchema> = {
      kind: 'WhoAmI',
      apiVersion,
      metadata: {},
      status: { userInfo: { username, uid, groups, extra }, user: account && userOf(account) },
    };
    await writeJson(req, res, whoAmI, { pretty: parsePretty(context.query) });
  },
});

const userOf = ({ displayName, email, passwordChangeRequired }: Account) => ({
  displayName,
  email,
  passwordChangeRequired,
});
