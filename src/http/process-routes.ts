import { arch, platform } from 'node:process';
import { registry } from '../runtime/metrics/registry.ts';
import { anonymous, authenticated, authorizedByPath } from './access.ts';
import { defineRoute } from './define-route.ts';
import { allRecorded } from './records.ts';
import { json, type Route } from './route.ts';
import { named, object, text, type TypeOf } from './schema.ts';
import { endWith } from './response/write.ts';

export const metricsRoute = defineRoute({
  method: 'get',
  path: '/metrics',
  summary: 'Get metrics',
  description:
    'Returns the metrics of this process in the Prometheus text format. Requires the right to `get` the path `/metrics`.',
  access: authorizedByPath,
  responses: { 200: { description: 'The metrics', content: { 'text/plain': text } } },
  async handler({ res }) {
    await allRecorded();
    res.setHeader('Content-Type', registry.contentType);
    endWith(res, await registry.metrics());
  },
});

/** The part of k8s.io/apimachinery pkg/version Info that applies to this server. */
const versionSchema = named('Version', object({ major: text, minor: text, gitVersion: text, platform: text }));

export function versionRoute(path: string, version: string): Route {
  const [major = '', minor = ''] = version.split('.');
  const info = { major, minor, gitVersion: `v${version}`, platform: `${platform}/${arch}` } satisfies TypeOf<
    typeof versionSchema
  >;
  const body = `${JSON.stringify(info)}\n`;
  return defineRoute({
    method: 'get',
    path,
    summary: 'Get the version of the server',
    description: 'Returns the version, the operating system and the CPU architecture. Requires no authentication.',
    access: anonymous,
    responses: json(versionSchema, 'The version'),
    handler({ res }) {
      res.setHeader('Content-Type', 'application/json');
      endWith(res, body);
    },
  });
}

/** Returns the route of `/` that lists the served paths, as kube-apiserver does. */
export function indexRoute(routes: readonly Route[]): Route {
  const paths = [...new Set(routes.map(({ path }) => path).filter((path) => !path.includes(':')))].toSorted();
  return defineRoute({
    method: 'get',
    path: '/',
    summary: 'List the served paths',
    description: 'Available to all authenticated callers.',
    access: authenticated,
    responses: {},
    handler({ res }) {
      res.setHeader('Content-Type', 'application/json');
      endWith(res, `${JSON.stringify({ paths })}\n`);
    },
  });
}
