/** Response bodies of components.ts. */
import { nothing, partialSchema as partial, typeMeta } from '../http/meta-schemas.ts';
import { count, described, flag, list, mapOf, named, object, text, time, type TypeOf } from '../http/schema.ts';

const replicas = named(
  'Replicas',
  object({
    desired: described('Desired number of pods', count),
    ready: described('Number of ready pods', count),
  }),
);

const metadata = named(
  'ComponentMeta',
  described(
    'Metadata of the workload',
    object(
      {
        name: text,
        namespace: text,
        uid: text,
        selfLink: described('Path of the workload in the Kubernetes API', text),
      },
      { creationTimestamp: time, labels: mapOf(text) },
    ),
  ),
);

const workload = named('Workload', described('Type of the workload', object({ apiVersion: text, kind: text })));

export const componentSchema = named(
  'Component',
  object({
    ...typeMeta('Component'),
    metadata,
    workload,
    services: described('Names of the Services that select the pods of the workload', list(text)),
    replicas,
    healthy: described('Whether the desired number of pods is ready', flag),
  }),
);

export type PlatformComponent = TypeOf<typeof componentSchema>;

export const componentListSchema = named(
  'ComponentList',
  object(
    { ...typeMeta('ComponentList'), metadata: nothing, items: list(componentSchema), totalItems: count },
    { partial },
  ),
);

const unhealthy = named(
  'UnhealthyComponent',
  object({ name: text, namespace: text, kind: described('Kind of the workload', text), replicas }),
);

const componentsHealth = named(
  'ComponentsHealth',
  object({ total: count, healthy: count, unhealthy: list(unhealthy) }),
);

const nodesHealth = named(
  'NodesHealth',
  described('Present only for callers who are allowed to list nodes', object({ total: count, healthy: count })),
);

export const componentHealthSchema = named(
  'ComponentHealth',
  object(
    {
      ...typeMeta('ComponentHealth'),
      metadata: nothing,
      healthy: described('Whether all components and nodes that the caller is allowed to list are healthy', flag),
      components: componentsHealth,
    },
    { nodes: nodesHealth, partial },
  ),
);
