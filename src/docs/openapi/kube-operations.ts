/** What Kubernetes' own operations take and answer, as far as they are the same for every resource. */
import { inQuery, type BodyDescription, type ContentDescription, type ParameterDescription } from '../../http/route.ts';
import { jsonPatchSchema, objectMetaSchema, statusDetailsSchema, typeMeta } from '../../http/meta.ts';
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

/** In which kube-apiserver answers, and takes, custom resources. */
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
      continue: described('To go on with', text),
      remainingItemCount: count,
      selfLink: text,
    },
  ),
);

/** A refusal, or that something was done. */
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

/** meta/v1 Patch, in each of its forms. */
const patch = named('Patch', described('What there is to be of the object', anyObject));
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
const dryRun = inQuery('dryRun', 'All: judge it and write nothing');
const fieldManager = inQuery('fieldManager', 'Who writes, in metadata.managedFields');
const fieldValidation = inQuery(
  'fieldValidation',
  'What is done about fields that are not known: Ignore, Warn, Strict',
);
const version = inQuery('resourceVersion', 'How old the answer may be');

const listing: readonly ParameterDescription[] = [
  inQuery('allowWatchBookmarks', 'BOOKMARK events that say how far a watch has come', flag),
  inQuery('continue', 'metadata.continue of the chunk before'),
  inQuery('fieldSelector', 'Over metadata.name, metadata.namespace and what the definition lets be selected by'),
  inQuery('labelSelector', 'Such as a=b,c in (d,e),!f'),
  inQuery('limit', 'Items of a chunk', integer),
  version,
  inQuery('resourceVersionMatch', 'How resourceVersion is meant: NotOlderThan, Exact'),
  inQuery('sendInitialEvents', 'Begin a watch with the present objects', flag),
  inQuery('timeoutSeconds', 'How long a watch lasts', integer),
  inQuery('watch', 'Follow the changes instead of listing', flag),
];
const deleting: readonly ParameterDescription[] = [
  dryRun,
  inQuery('gracePeriodSeconds', 'Until it is deleted', integer),
  inQuery('ignoreStoreReadErrorWithClusterBreakingPotential', 'Delete what cannot be read; it breaks things', flag),
  inQuery('orphanDependents', 'Deprecated: propagationPolicy', flag),
  inQuery('propagationPolicy', 'When what belongs to it is deleted: Orphan, Background, Foreground'),
];

const ofActions = {
  list: [pretty, ...listing],
  post: [pretty, dryRun, fieldManager, fieldValidation],
  deletecollection: [pretty, ...listing],
  get: [pretty, version],
  put: [pretty, dryRun, fieldManager, fieldValidation],
  patch: [
    pretty,
    dryRun,
    fieldManager,
    fieldValidation,
    inQuery('force', 'Of an apply: take fields from others', flag),
  ],
  delete: [pretty, ...deleting],
} as const satisfies Readonly<Record<string, readonly ParameterDescription[]>>;

export type Action = keyof typeof ofActions;

/** By what is done. */
export const parametersOf = (action: Action): readonly ParameterDescription<JSONSchema>[] =>
  ofActions[action].map(parameterOf);
