/** Who the server takes the caller for, in the form of kube-apiserver's SelfSubjectReview. */
import type { Directory } from '../../accounts/directory/directory.ts';
import type { Route } from '../../http/route.ts';
import { writeJson } from '../../http/write.ts';
import { parsePretty } from '../query.ts';
import { callerOf, demandJson, demandNoParameters, ownAccount } from './caller.ts';
import { base, group, version } from './user-store.ts';

export const whoAmIRoute = (directory: Directory): Route => ({
  method: 'get',
  path: `${base}/whoami`,
  summary: 'Who you are here',
  handler: async (req, res, context) => {
    demandJson(req);
    demandNoParameters(context);
    const caller = callerOf(context);
    const { username, uid, groups, extra } = caller;
    const account = ownAccount(directory, caller);
    const status = { userInfo: { username, uid, groups, extra }, ...(account === undefined ? {} : userOf(account)) };
    const whoAmI = { kind: 'WhoAmI', apiVersion: `${group}/${version}`, metadata: {}, status };
    await writeJson(req, res, whoAmI, { pretty: parsePretty(context.query) });
  },
});

const userOf = ({
  displayName,
  email,
  passwordChangeRequired,
}: NonNullable<ReturnType<typeof ownAccount>>): object => ({
  user: { displayName, email, passwordChangeRequired },
});
