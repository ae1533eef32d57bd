import { arch, platform } from 'node:process';
import { registry } from '../runtime/metrics.ts';
import { anonymous, authenticated, authorizedByPath } from './access.ts';
import { defineRoute } from './define-route.ts';
import { json, type Route } from './route.ts';
import { named, object, text, type TypeOf } from './schema.ts';
import { endWith } from './response/write.ts';

/** The figures of the process; who may read them is decided on the path. */
export const metricsRoute = defineRoute({
  method: 'get',
  path: '/metrics',
  summary: "The server's figures in Prometheus' text format",
  access: authorizedByPath,
  responses: { 200: { description: 'OK', content: { 'text/plain': text } } },
  async handler({ res }) {
    res.setHeader('Content-Type', registry.contentType);
    endWith(res, await registry.metrics());
  },
});

/** k8s.io/apimachinery pkg/version Info, as far as it is known of this server. */
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
    summary: 'The version of this server',
    access: anonymous,
    responses: json(versionSchema),
    handler({ res }) {
      res.setHeader('Content-Type', 'application/json');
      endWith(res, body);
    },
  });
}

/** The paths that are served, as kube-apiserver lists its own at `/`. */
export function indexRoute(routes: readonly Route[]): Route {
  const paths = [...new Set(routes.map(({ path }) => path).filter((path) => !path.includes(':')))].toSorted();
  return defineRoute({
    method: 'get',
    path: '/',
    summary: 'The paths that are served',
    access: authenticated,
    responses: {},
    handler({ res }) {
      res.setHeader('Content-Type', 'application/json');
      endWith(res, `${JSON.stringify({ paths })}\n`);
    },
  });
}
