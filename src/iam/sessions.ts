/**
 * Serves `users/{u}/sessions`, which lists and revokes the sessions of a user. Users need no right for their own
 * sessions.
 */
import { iamAPIVersion, iamGroup } from '../config/names.ts';
import type { Directory } from '../accounts/directory/directory.ts';
import { loginOf, loginsOf } from '../accounts/directory/subjects.ts';
import type { Session } from '../tokens/sessions/session.ts';
import type { Sessions } from '../tokens/sessions/sessions.ts';
import type { Authorizer } from '../auth/authorizers/authorizer.ts';
import { notFound } from '../runtime/errors.ts';
import { authorizedByRoute } from '../http/access.ts';
import { defineRoute } from '../http/define-route.ts';
import { json, objectResponse, type RequestContext, type Route } from '../http/route.ts';
import { doneSchema } from '../http/meta-schemas.ts';
import { assertAcceptsObjects } from '../apimachinery/list/resource-responses.ts';
import type { TypeOf } from '../http/schema.ts';
import { writeObject } from '../http/response/pretty.ts';
import { writeDone } from '../http/response/write.ts';
import { commonParameters } from '../apimachinery/common-parameters.ts';
import { accountOf, authorizeOnOthers, usernameInPath } from './target-user.ts';
import { sessionListSchema, type ShownSession } from './schemas.ts';
import { base } from './user-store.ts';

export interface SessionsParts {
  readonly authorizer: Authorizer;
  readonly directory: Directory;
  readonly sessions: Sessions;
}

const revocation =
  'Every replica rejects the tokens of a revoked session within a second, and ends its watches. Requires the right to `delete users/sessions` in `iam.platform.io`, except for your own sessions.';

export function sessionsRoutes(parts: SessionsParts): Route[] {
  const { directory, sessions } = parts;
  const authorize = authorizeOnOthers(parts);
  const path = `${base}/users/:name/sessions` as const;
  return [
    defineRoute({
      method: 'get',
      path,
      summary: 'List the sessions of a user',
      description:
        'Each login creates a session; the newest is first. Requires the right to `get users/sessions` in `iam.platform.io`, except for your own sessions.',
      access: authorizedByRoute,
      pathParameters: usernameInPath,
      query: commonParameters,
      responses: objectResponse(sessionListSchema, 'The sessions of the user'),
      authorize,
      async handler({ req, res, context, query: { pretty }, granted: target }) {
        assertAcceptsObjects(req);
        const items = loginsOf(accountOf(directory, target), parts).map((session) =>
          shown(session, context.user.sessionID),
        );
        const all: TypeOf<typeof sessionListSchema> = {
          kind: 'SessionList',
          apiVersion: iamAPIVersion,
          metadata: {},
          items,
          totalItems: items.length,
        };
        await writeObject(req, res, all, { pretty });
      },
    }),
    defineRoute({
      method: 'delete',
      path,
      summary: 'Revoke all sessions of a user',
      description: revocation,
      access: authorizedByRoute,
      pathParameters: usernameInPath,
      query: commonParameters,
      responses: json(doneSchema, 'The sessions were revoked'),
      authorize,
      async handler({ req, res, context, granted: target }) {
        const { username, uid } = accountOf(directory, target);
        logRevocation(context, username, await sessions.revokeAll({ userName: username, userUID: uid }));
        await writeDone(req, res);
      },
    }),
    defineRoute({
      method: 'delete',
      path: `${path}/:session`,
      summary: 'Revoke a session of a user',
      description: revocation,
      access: authorizedByRoute,
      pathParameters: { ...usernameInPath, session: '`metadata.name` of the session' },
      query: commonParameters,
      responses: json(doneSchema, 'The session was revoked'),
      authorize,
      async handler({ req, res, context, path: { session: sid }, granted: target }) {
        const account = accountOf(directory, target);
        if ((await loginOf(account, sid, parts)) === undefined)
          throw notFound({ group: iamGroup, resource: 'sessions' }, sid);
        await sessions.revoke(sid);
        logRevocation(context, account.username, 1);
        await writeDone(req, res);
      },
    }),
  ];
}

function logRevocation({ log, auditID, user }: RequestContext, username: string, count: number): void {
  log.info('sessions revoked', { auditID, user: username, by: user?.username, sessions: count });
}

/** Returns the public properties of a session, and omits the properties that could be used to take over the session. */
function shown({ metadata, spec, status }: Session, current: string | undefined): ShownSession {
  const { name, creationTimestamp } = metadata;
  const { userName, clientID, scope, sourceIP, userAgent, createdAt, expiresAt } = spec;
  return {
    kind: 'Session',
    apiVersion: iamAPIVersion,
    metadata: { name, creationTimestamp },
    // For a device login, the address of the device is more useful than the address of the browser that approved the
    // device.
    spec: { userName, clientID, scope, sourceIP: spec.code?.sourceIP ?? sourceIP, userAgent, createdAt, expiresAt },
    status: { phase: status.phase, lastUsedAt: status.lastUsedAt },
    current: name === current,
  };
}
