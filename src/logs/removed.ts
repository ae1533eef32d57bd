/** Paths of earlier versions. A request for such a path gets a 404 that names the new path. */
import { authenticated } from '../http/access.ts';
import { defineRoute, type PathNames, type PathValues } from '../http/define-route.ts';
import type { Route } from '../http/route.ts';
import { noSuchPath } from '../runtime/errors.ts';
import { group, version } from './group.ts';

const base = `/kapis/${group}/:version` as const;
type Base = typeof base;
type Names<P extends string> = Readonly<Record<PathNames<`${Base}/${P}`>, string>>;

function removed<const P extends string>(
  method: Route['method'],
  path: P,
  replacement: (path: PathValues<`${Base}/${P}`>) => string,
): Route {
  const whole = `${base}/${path}` as const;
  const names = [...whole.matchAll(/[:*](\w+)/g)].map(([, name = '']) => [name, 'Same as in the removed endpoint']);
  return defineRoute({
    method,
    path: whole,
    summary: 'Get the replacement of a removed endpoint',
    description: 'Returns 404. The message names the replacement.',
    access: authenticated,
    removed: true,
    pathParameters: Object.fromEntries(names) as Names<P>,
    responses: {},
    handler: (request) => {
      throw noSuchPath(replacement(request.path));
    },
  });
}

const use = (query: string): string => `this endpoint was removed: use /kapis/${group}/${version}/logs?${query}`;
const queryOf = (parameters: Readonly<Record<string, string>>): string =>
  use(new URLSearchParams(parameters).toString());

const methods = ['get', 'post', 'put', 'patch', 'delete'] as const;
const settings = ['fluentbit/outputs', 'fluentbit/outputs/:output', 'fluentbit/outputs/:output/*rest'];

export const removedRoutes: readonly Route[] = [
  removed('get', 'workspaces/:workspace', () => use('namespaces=… with the namespaces of the workspace')),
  removed('get', 'namespaces/:namespace', ({ namespace: namespaces }) => queryOf({ namespaces })),
  removed('get', 'namespaces/:namespace/workloads/:workload', ({ namespace: namespaces, workload: workloads }) =>
    queryOf({ namespaces, workloads }),
  ),
  removed('get', 'namespaces/:namespace/pods/:pod', ({ namespace: namespaces, pod: pods }) =>
    queryOf({ namespaces, pods }),
  ),
  ...settings.flatMap((path) =>
    methods.map((method) =>
      removed(
        method,
        path,
        () =>
          'the log settings were removed: set the log store with "logging" in the ConfigMap platform-config, and configure the log shipper directly',
      ),
    ),
  ),
];
