/** Log queries, served at /kapis/logging.platform.io, at /kapis/tenant.platform.io and through kube-apiserver. */
import { authorizedByHandler, authorizedByResource } from '../http/access.ts';
import { defineRoute } from '../http/define-route.ts';
import { parseAccept } from '../http/request/negotiate.ts';
import { invalidParameter } from '../http/request/parameters.ts';
import type { RequestContext, Route } from '../http/route.ts';
import { text } from '../http/schema.ts';
import { badRequest } from '../runtime/errors.ts';
import { exportType } from './export.ts';
import { followTypes } from './follow.ts';
import { group, kind, loggingGroups, version } from './group.ts';
import { logsHandler, type LogsParts } from './handler.ts';
import { logParameters } from './query/parameters.ts';
import { logsSchema } from './query/schemas.ts';
import { removedRoutes } from './removed.ts';

export { loggingGroups, loggingGroupVersion } from './group.ts';
export { buildLogs } from './build.ts';

/** Response type of the aggregated API. */
export const logQueryKind = { group, version, resource: 'logs', kind, schema: logsSchema };

const common = {
  method: 'get',
  summary: 'Query, export or follow container logs',
  description:
    'Returns the records of namespaces in which you have the right to `get pods/log`. Records older than their namespace are not returned. If you have the right in no namespace, the result is empty. If you have the right in all namespaces, all records are returned. If a result is incomplete, `partial` or the last line of an export contains the reason.',
  query: logParameters,
  responses: {
    200: {
      description:
        'The result of the operation. An export has one line of text per record. A tail (`follow`) has one `LogRecord` per line or server-sent event',
      content: {
        'application/json': logsSchema,
        ...Object.fromEntries([exportType, ...followTypes.slice(1)].map((type) => [type, text])),
      },
    },
  },
  errors: [502],
} as const;

export const loggingRoutes = (parts: LogsParts): Route[] => [
  ...loggingGroups.map(({ group: served }) =>
    defineRoute({
      ...common,
      path: `/kapis/${served}/${version}/logs`,
      access: authorizedByHandler,
      handler: logsHandler(parts, {}),
    }),
  ),
  ...removedRoutes,
];

interface ListRequest {
  readonly req: { readonly headers: { readonly accept?: string | undefined } };
  readonly context: Pick<RequestContext, 'query'>;
}

/**
 * Throws 400 for `kubectl get logs`, which requests pages or a table of objects. The message contains a command that
 * returns logs.
 */
function assertNoList({ req: { headers }, context: { query } }: ListRequest): void {
  const isTable = parseAccept(headers.accept).some(({ parameters }) => parameters['as'] === 'Table');
  if (!isTable && !query.has('limit')) return;
  const command = `kubectl get --raw '/apis/${group}/${version}/logs?namespaces=default&size=10'`;
  const field = query.has('limit') ? 'limit' : 'Accept';
  throw badRequest(`use ${command}: logs cannot be listed as objects`, {
    details: { causes: [invalidParameter(field, 'logs cannot be listed as objects')] },
  });
}

/** Routes for requests through kube-apiserver. Their responses are Kubernetes objects. */
export const aggregatedLoggingRoutes = (parts: LogsParts): Route[] => [
  defineRoute({
    ...common,
    path: `/apis/${group}/${version}/logs`,
    access: authorizedByResource,
    // Runs before the query is parsed, because the parser would reject `limit` without naming a command that works.
    authorize: assertNoList,
    handler: logsHandler(parts, { kind, apiVersion: `${group}/${version}` }),
  }),
];
