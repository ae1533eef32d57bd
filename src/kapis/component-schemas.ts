/** What components.ts answers, as JSON Schema: for the descriptions. */

type Schema = Readonly<Record<string, unknown>>;

const text = { type: 'string' };
const flag = { type: 'boolean' };
const count = { type: 'integer', minimum: 0 };
const list = (items: Schema): Schema => ({ type: 'array', items });
const described = (description: string, schema: Schema): Schema => ({ description, ...schema });

/** All that is not named as one that may be missing has to be there, and nothing else. */
const object = (properties: Readonly<Record<string, Schema>>, optional: readonly string[] = []): Schema => ({
  type: 'object',
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
  properties,
  additionalProperties: false,
});

const typed = (kind: string): Readonly<Record<string, Schema>> => ({
  kind: { type: 'string', enum: [kind] },
  apiVersion: text,
});

const replicas = object({
  desired: described('How many there should be', count),
  ready: described('How many of them are ready', count),
});

const partial = described(
  'If the caller may not see everything that it should be about',
  object({ reason: described('What may not be seen', text) }),
);

export const componentSchema = object({
  ...typed('Component'),
  metadata: described(
    "The workload's",
    object(
      {
        name: text,
        namespace: text,
        uid: text,
        creationTimestamp: { type: 'string', format: 'date-time' },
        labels: { type: 'object', additionalProperties: text },
        selfLink: described('Its path in the core API', text),
      },
      ['creationTimestamp', 'labels'],
    ),
  ),
  workload: described('What runs it', object({ apiVersion: text, kind: text })),
  services: described('The names of the Services of its namespace that lead to it', list(text)),
  replicas,
  healthy: described('All that there should be are ready', flag),
});

export const componentListSchema = object(
  {
    ...typed('ComponentList'),
    metadata: { type: 'object' },
    items: list(componentSchema),
    totalItems: count,
    partial,
  },
  ['partial'],
);

export const componentHealthSchema = object(
  {
    ...typed('ComponentHealth'),
    metadata: { type: 'object' },
    healthy: described('All components and nodes are, of those that the caller may see', flag),
    components: object({
      total: count,
      healthy: count,
      unhealthy: list(object({ name: text, namespace: text, kind: described("The workload's", text), replicas })),
    }),
    nodes: described('Only for those who may list nodes', object({ total: count, healthy: count })),
    partial,
  },
  ['nodes', 'partial'],
);
