/** The log queries: served at /kapis/logging.platform.io, at /kapis/tenant.platform.io, and to the aggregator. */
import { authenticated, authorizedByResource, type Access } from '../http/access.ts';
import type { Route } from '../http/route.ts';
import { text } from '../http/schema.ts';
import { group, kind, loggingGroups, version } from './group.ts';
import { logsHandler, type LogsParts } from './handler.ts';
import { followTypes } from './follow.ts';
import { logParameters } from './query/parameters.ts';
import { removedRoutes } from './removed.ts';
import { logsSchema } from './query/schemas.ts';

export { loggingGroups, loggingGroupVersion } from './group.ts';
export { buildLogs } from './build.ts';

/** What the logs of the aggregated face are answered as. */
export const logQueryKind = { group, version, resource: 'logs', kind, schema: logsSchema };

const route = (path: string, access: Access, handler: Route['handler']): Route => ({
  method: 'get',
  path,
  summary: 'Search, count, export or follow the logs of containers',
  access,
  parameters: logParameters,
  answers: {
    200: {
      description:
        'OK. With operation=export a line a record; with follow=true a LogRecord a line, or a server-sent event',
      content: {
        'application/json': logsSchema,
        ...Object.fromEntries(['text/plain', ...followTypes.slice(1)].map((type) => [type, text])),
      },
    },
  },
  refusals: [502],
  handler,
});

export const loggingRoutes = (parts: LogsParts): Route[] => [
  ...loggingGroups.map(({ group: of }) => route(`/kapis/${of}/${version}/logs`, authenticated, logsHandler(parts, {}))),
  ...removedRoutes,
];

/** Answers are objects of Kubernetes there. */
export const aggregatedLoggingRoutes = (parts: LogsParts): Route[] => [
  route(
    `/apis/${group}/${version}/logs`,
    authorizedByResource,
    logsHandler(parts, { kind, apiVersion: `${group}/${version}` }),
  ),
];
