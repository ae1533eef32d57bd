/** What components.ts answers. */
import { nothing, partialSchema as partial, typeMeta } from '../http/meta.ts';
import { count, described, flag, list, mapOf, named, object, text, time, type TypeOf } from '../http/schema.ts';

const replicas = named(
  'Replicas',
  object({
    desired: described('How many there should be', count),
    ready: described('How many of them are ready', count),
  }),
);

const metadata = named(
  'ComponentMeta',
  described(
    "The workload's",
    object(
      { name: text, namespace: text, uid: text, selfLink: described('Its path in the core API', text) },
      { creationTimestamp: time, labels: mapOf(text) },
    ),
  ),
);

const workload = named('Workload', described('What runs it', object({ apiVersion: text, kind: text })));

export const componentSchema = named(
  'Component',
  object({
    ...typeMeta('Component'),
    metadata,
    workload,
    services: described('The names of the Services of its namespace that lead to it', list(text)),
    replicas,
    healthy: described('All that there should be are ready', flag),
  }),
);

export type Component = TypeOf<typeof componentSchema>;

export const componentListSchema = named(
  'ComponentList',
  object(
    { ...typeMeta('ComponentList'), metadata: nothing, items: list(componentSchema), totalItems: count },
    { partial },
  ),
);

const unhealthy = named(
  'UnhealthyComponent',
  object({ name: text, namespace: text, kind: described("The workload's", text), replicas }),
);

const componentsHealth = named(
  'ComponentsHealth',
  object({ total: count, healthy: count, unhealthy: list(unhealthy) }),
);

const nodesHealth = named(
  'NodesHealth',
  described('Only for those who may list nodes', object({ total: count, healthy: count })),
);

export const componentHealthSchema = named(
  'ComponentHealth',
  object(
    {
      ...typeMeta('ComponentHealth'),
      metadata: nothing,
      healthy: described('All components and nodes are, of those that the caller may see', flag),
      components: componentsHealth,
    },
    { nodes: nodesHealth, partial },
  ),
);
