/** Paths of versions before, and what there is in their place. */
import { noSuchPath } from '../runtime/errors.ts';
import { authenticated } from '../http/access.ts';
import { inPath, type Route } from '../http/route.ts';
import { group, version } from './group.ts';

const logs = `/kapis/${group}/${version}/logs`;
const base = `/kapis/${group}/:version`;

const queries: Readonly<Record<string, string>> = {
  'workspaces/:workspace': 'namespaces=… with the namespaces of the workspace',
  'namespaces/:namespace': 'namespaces={namespace}',
  'namespaces/:namespace/workloads/:workload': 'namespaces={namespace}&workloads={workload}',
  'namespaces/:namespace/pods/:pod': 'namespaces={namespace}&pods={pod}',
};

const methods = ['get', 'post', 'put', 'patch', 'delete'] as const;
const settings = ['fluentbit/outputs', 'fluentbit/outputs/:output', 'fluentbit/outputs/:output/*rest'];

const gone = (
  path: string,
  method: Route['method'],
  instead: (parameters: Readonly<Record<string, unknown>>) => string,
): Route => ({
  method,
  path: `${base}/${path}`,
  summary: 'Removed; the answer names what replaces it',
  access: authenticated,
  removed: true,
  parameters: [...`${base}/${path}`.matchAll(/[:*](\w+)/g)].map(([, name = '']) => inPath(name, 'As it was')),
  handler: (req) => {
    throw noSuchPath(instead(req.params));
  },
});

export const removedRoutes: readonly Route[] = [
  ...Object.entries(queries).map(([path, query]) =>
    gone(
      path,
      'get',
      (parameters) =>
        `this endpoint was removed: ask ${logs}?${query.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(parameters[name])))}`,
    ),
  ),
  ...settings.flatMap((path) =>
    methods.map((method) =>
      gone(
        path,
        method,
        () =>
          'the log settings were removed: where logs are read is the key "logging" of the ConfigMap platform-config; what ships them is set up by itself',
      ),
    ),
  ),
];
