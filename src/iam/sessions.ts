/** `users/{u}/sessions`: where a user is logged in, and the end of that. One's own always; a revocation counts on every replica. */
import type { Account } from '../accounts/directory/account.ts';
import type { Directory } from '../accounts/directory/directory.ts';
import { loginOf, loginsOf } from '../accounts/directory/subjects.ts';
import type { Session } from '../tokens/sessions/session.ts';
import type { Sessions } from '../tokens/sessions/sessions.ts';
import type { Authorizer } from '../auth/authorizers/authorizer.ts';
import { notFound } from '../runtime/errors.ts';
import { authenticated } from '../http/access.ts';
import { inPath, json, type Handler, type RequestContext, type Route } from '../http/route.ts';
import { doneSchema } from '../http/meta.ts';
import { demandJson } from '../http/request/negotiate.ts';
import type { TypeOf } from '../http/schema.ts';
import { writeDone, writeJson } from '../http/response/write.ts';
import { demandNoParameters, parsePretty } from '../apimachinery/list/query.ts';
import { commonParameters } from '../apimachinery/list/parameters.ts';
import { accountOf, demandOn, nameInPath, targetOf } from './caller.ts';
import { sessionListSchema, type ShownSession } from './schemas.ts';
import { apiVersion, base, group } from './user-store.ts';

export interface SessionsParts {
  readonly authorizer: Authorizer;
  readonly directory: Directory;
  readonly sessions: Sessions;
}

export function sessionsRoutes(parts: SessionsParts): Route[] {
  const { authorizer, directory, sessions } = parts;
  /** The user whom the path names, to those who may; throws 400 for parameters, of which there are none. */
  async function accountIn(context: RequestContext): Promise<Account> {
    demandNoParameters(context);
    const target = targetOf(directory, context);
    if (target.own === undefined) await demandOn(authorizer, context, target);
    return accountOf(directory, target);
  }

  const list: Handler = async (req, res, context) => {
    demandJson(req.headers);
    const account = await accountIn(context);
    const items = loginsOf(account, parts).map((session) => shown(session, context.user?.sessionID));
    const all: TypeOf<typeof sessionListSchema> = {
      kind: 'SessionList',
      apiVersion,
      metadata: {},
      items,
      totalItems: items.length,
    };
    await writeJson(req, res, all, { pretty: parsePretty(context.query) });
  };

  const revokeAll: Handler = async (req, res, context) => {
    const { username, uid } = await accountIn(context);
    note(context, username, await sessions.endAll({ userName: username, userUID: uid }));
    await writeDone(req, res);
  };

  const revokeOne: Handler = async (req, res, context) => {
    const account = await accountIn(context);
    const sid = String(req.params['session']);
    if ((await loginOf(account, sid, parts)) === undefined) throw notFound({ group, resource: 'sessions' }, sid);
    await sessions.revoke(sid);
    note(context, account.username, 1);
    await writeDone(req, res);
  };

  const path = `${base}/users/:name/sessions`;
  return [
    {
      method: 'get',
      path,
      summary: 'Where the user is logged in',
      access: authenticated,
      parameters: [nameInPath, ...commonParameters],
      answers: json(sessionListSchema),
      handler: list,
    },
    {
      method: 'delete',
      path,
      summary: 'End all sessions of the user',
      access: authenticated,
      parameters: [nameInPath, ...commonParameters],
      answers: json(doneSchema, 'Ended, on every replica'),
      handler: revokeAll,
    },
    {
      method: 'delete',
      path: `${path}/:session`,
      summary: 'End a session of the user',
      access: authenticated,
      parameters: [nameInPath, inPath('session', 'The metadata.name of the session'), ...commonParameters],
      answers: json(doneSchema, 'Ended, on every replica'),
      handler: revokeOne,
    },
  ];
}

function note({ log, auditID, user }: RequestContext, of: string, ended: number): void {
  log.info('sessions were revoked', { auditID, user: of, by: user?.username, sessions: ended });
}

/** Nothing by which it could be taken over. */
function shown({ metadata, spec, status }: Session, current: string | undefined): ShownSession {
  const { name, creationTimestamp } = metadata;
  const { userName, clientID, scope, sourceIP, userAgent, createdAt, expiresAt } = spec;
  return {
    kind: 'Session',
    apiVersion,
    metadata: { name, creationTimestamp },
    // Where a device asked from says more than where somebody let it in.
    spec: { userName, clientID, scope, sourceIP: spec.code?.sourceIP ?? sourceIP, userAgent, createdAt, expiresAt },
    status: { phase: status.phase, lastUsedAt: status.lastUsedAt },
    // That of the request.
    current: name === current,
  };
}
