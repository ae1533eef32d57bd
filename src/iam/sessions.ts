/** `users/{u}/sessions`: where a user is logged in, and the end of that. One's own always; a revocation counts on every replica. */
import type { Directory } from '../accounts/directory/directory.ts';
import { loginOf, loginsOf } from '../accounts/directory/subjects.ts';
import type { Session } from '../tokens/sessions/session.ts';
import type { Sessions } from '../tokens/sessions/sessions.ts';
import type { Authorizer } from '../auth/authorizers/authorizer.ts';
import { notFound } from '../runtime/errors.ts';
import { authenticated } from '../http/access.ts';
import { defineRoute } from '../http/define-route.ts';
import { json, type RequestContext, type Route } from '../http/route.ts';
import { doneSchema } from '../http/meta.ts';
import { demandJson } from '../http/request/negotiate.ts';
import type { TypeOf } from '../http/schema.ts';
import { writeDone, writeJson } from '../http/response/write.ts';
import { commonParameters } from '../apimachinery/common-parameters.ts';
import { accountOf, authorizeOnOthers, usernameInPath } from './caller.ts';
import { sessionListSchema, type ShownSession } from './schemas.ts';
import { apiVersion, base, group } from './user-store.ts';

export interface SessionsParts {
  readonly authorizer: Authorizer;
  readonly directory: Directory;
  readonly sessions: Sessions;
}

export function sessionsRoutes(parts: SessionsParts): Route[] {
  const { directory, sessions } = parts;
  const authorize = authorizeOnOthers(parts);
  const path = `${base}/users/:name/sessions` as const;
  return [
    defineRoute({
      method: 'get',
      path,
      summary: 'Where the user is logged in',
      access: authenticated,
      pathParameters: usernameInPath,
      query: commonParameters,
      responses: json(sessionListSchema),
      authorize,
      async handler({ req, res, context, query: { pretty }, granted: target }) {
        demandJson(req.headers);
        const items = loginsOf(accountOf(directory, target), parts).map((session) =>
          shown(session, context.user.sessionID),
        );
        const all: TypeOf<typeof sessionListSchema> = {
          kind: 'SessionList',
          apiVersion,
          metadata: {},
          items,
          totalItems: items.length,
        };
        await writeJson(req, res, all, { pretty });
      },
    }),
    defineRoute({
      method: 'delete',
      path,
      summary: 'End all sessions of the user',
      access: authenticated,
      pathParameters: usernameInPath,
      query: commonParameters,
      responses: json(doneSchema, 'Ended, on every replica'),
      authorize,
      async handler({ req, res, context, granted: target }) {
        const { username, uid } = accountOf(directory, target);
        note(context, username, await sessions.endAll({ userName: username, userUID: uid }));
        await writeDone(req, res);
      },
    }),
    defineRoute({
      method: 'delete',
      path: `${path}/:session`,
      summary: 'End a session of the user',
      access: authenticated,
      pathParameters: { ...usernameInPath, session: 'The metadata.name of the session' },
      query: commonParameters,
      responses: json(doneSchema, 'Ended, on every replica'),
      authorize,
      async handler({ req, res, context, path: { session: sid }, granted: target }) {
        const account = accountOf(directory, target);
        if ((await loginOf(account, sid, parts)) === undefined) throw notFound({ group, resource: 'sessions' }, sid);
        await sessions.revoke(sid);
        note(context, account.username, 1);
        await writeDone(req, res);
      },
    }),
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
