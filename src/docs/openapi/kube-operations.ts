/** Parameters and schemas that the Kubernetes operations of all resources share. */
import { inQuery, type BodyDescription, type ContentDescription, type ParameterDescription } from '../../http/route.ts';
import { jsonPatchSchema, objectMetaSchema, statusDetailsSchema, typeMeta } from '../../http/meta-schemas.ts';
import {
  anyObject,
  count,
  described,
  flag,
  integer,
  list,
  named,
  object,
  oneOf,
  open,
  text,
} from '../../http/schema.ts';
import { bodyOf as describedBody, jsonSchemaOf, parameterOf, withName, type JSONSchema } from './json-schema.ts';

/** Media types in which kube-apiserver serves custom resources. */
const types = ['application/json', 'application/yaml'];

export const contentOf = (schema: JSONSchema): ContentDescription<JSONSchema> =>
  Object.fromEntries(types.map((type) => [type, schema]));
export const bodyOf = (schema: JSONSchema, required = true): BodyDescription<JSONSchema> => ({
  required,
  content: contentOf(schema),
});

const listMeta = named(
  'ListMeta',
  object(
    {},
    {
      resourceVersion: text,
      continue: described('Token for the next chunk', text),
      remainingItemCount: count,
      selfLink: text,
    },
  ),
);

/** Schema of an error, or of a success without an object. */
export const status = jsonSchemaOf(
  named(
    'Status',
    open(
      object(typeMeta('Status', 'v1'), {
        metadata: listMeta,
        status: oneOf('Success', 'Failure'),
        message: text,
        reason: text,
        details: statusDetailsSchema,
        code: integer,
      }),
    ),
  ),
);

const listTypeMeta = jsonSchemaOf(object({}, { apiVersion: text, kind: text, metadata: listMeta }));

export const listOf = (name: string, items: JSONSchema): JSONSchema =>
  withName(name, {
    ...listTypeMeta,
    required: ['items'],
    properties: { items: { type: 'array', items }, ...(listTypeMeta['properties'] as object) },
  });

const deleteOptions = named(
  'DeleteOptions',
  open(
    object(
      {},
      {
        apiVersion: text,
        kind: text,
        dryRun: list(text),
        gracePeriodSeconds: count,
        orphanDependents: flag,
        preconditions: named('Preconditions', object({}, { resourceVersion: text, uid: text })),
        propagationPolicy: oneOf('Orphan', 'Background', 'Foreground'),
      },
    ),
  ),
);
export const deleteBody = bodyOf(jsonSchemaOf(deleteOptions), false);

/** Schema of meta/v1 Patch in each of its media types. */
const patch = named('Patch', described('Fields to change', anyObject));
export const patchBody = describedBody({
  required: true,
  content: {
    'application/merge-patch+json': patch,
    'application/json-patch+json': jsonPatchSchema,
    'application/apply-patch+yaml': patch,
  },
});

const scaleSchema = named(
  'io.k8s.api.autoscaling.v1.Scale',
  object(
    {},
    {
      apiVersion: text,
      kind: text,
      metadata: objectMetaSchema,
      spec: named('io.k8s.api.autoscaling.v1.ScaleSpec', object({}, { replicas: count })),
      status: named('io.k8s.api.autoscaling.v1.ScaleStatus', object({ replicas: count }, { selector: text })),
    },
  ),
);

export const scale = jsonSchemaOf(scaleSchema);

const pretty = inQuery('pretty', 'Indented JSON');
const dryRun = inQuery('dryRun', '`All`: validate the request and write nothing');
const fieldManager = inQuery('fieldManager', 'Name of the writer in `metadata.managedFields`');
const fieldValidation = inQuery(
  'fieldValidation',
  'Handling of unknown fields: `Strict` rejects them, `Warn` drops them and sends the header `Warning`, `Ignore` drops them',
);

const listing: readonly ParameterDescription[] = [
  inQuery('allowWatchBookmarks', 'Send `BOOKMARK` events, from which a watch can be resumed', flag),
  inQuery('continue', '`metadata.continue` of the previous chunk'),
  inQuery(
    'fieldSelector',
    'Selector over `metadata.name`, `metadata.namespace` and the selectable fields of the definition',
  ),
  inQuery('labelSelector', 'Label selector, such as `a=b,c in (d,e),!f`'),
  inQuery('limit', 'Maximum number of items per chunk', integer),
  inQuery('resourceVersion', 'Minimum version of a list, or version after which a watch starts'),
  inQuery('resourceVersionMatch', 'Meaning of `resourceVersion`: `NotOlderThan` or `Exact`'),
  inQuery('sendInitialEvents', 'Start a watch with the existing objects', flag),
  inQuery('timeoutSeconds', 'Maximum duration of the request in seconds', integer),
  inQuery('watch', 'Stream changes instead of a list', flag),
];
const deleting: readonly ParameterDescription[] = [
  dryRun,
  inQuery('gracePeriodSeconds', 'Seconds before the object is deleted', integer),
  inQuery(
    'ignoreStoreReadErrorWithClusterBreakingPotential',
    'Delete an object that cannot be read; this can break the cluster',
    flag,
  ),
  inQuery('orphanDependents', 'Deprecated: use `propagationPolicy`', flag),
  inQuery(
    'propagationPolicy',
    'Handling of dependent objects: `Background` deletes them after the object, `Foreground` before, `Orphan` keeps them',
  ),
];

const ofActions = {
  list: [pretty, ...listing],
  post: [pretty, dryRun, fieldManager, fieldValidation],
  deletecollection: [pretty, ...listing],
  get: [pretty, inQuery('resourceVersion', 'Minimum version of the object')],
  put: [pretty, dryRun, fieldManager, fieldValidation],
  patch: [
    pretty,
    dryRun,
    fieldManager,
    fieldValidation,
    inQuery('force', 'Take over fields of other managers; only for apply patches', flag),
  ],
  delete: [pretty, ...deleting],
} as const satisfies Readonly<Record<string, readonly ParameterDescription[]>>;

export type Action = keyof typeof ofActions;

/** Returns the query parameters of an action. */
export const parametersOf = (action: Action): readonly ParameterDescription<JSONSchema>[] =>
  ofActions[action].map(parameterOf);
