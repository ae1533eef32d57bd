/** The parameters of the routes, as the descriptions name them. */
import { durationPattern, longestDuration } from '../../runtime/duration.ts';
import { inPath, inQuery, type ParameterDescription } from '../../http/route.ts';
import {
  count,
  flag,
  integer,
  oneOf,
  oneOrNone,
  text,
  type Schema,
  named,
  object,
  open,
  withoutDefault,
} from '../../http/schema.ts';
import { listedPathPattern, pathPattern } from './field-path.ts';
import { mostPaths } from './projection.ts';
import type { ResourceDefinition } from '../../cluster/catalogue/resource.ts';
import { listSchema, objectMetaSchema } from '../../http/meta.ts';

/** `kind`: if it is known. With the parameter `fields` there may be no more in it than what must be. */
const objectSchema = (name: string, kind?: string, parts: Readonly<Record<string, Schema>> = {}) =>
  named(
    name,
    open(
      object({ kind: kind === undefined ? text : oneOf(kind), apiVersion: text, metadata: objectMetaSchema }, parts),
    ),
  );

export const anyObjectSchema = objectSchema('Object');
export const anyListSchema = listSchema('ObjectList', anyObjectSchema);

/** Of a kind that is always served. */
export const schemasOf = ({
  kind,
  schema,
}: Pick<ResourceDefinition<unknown>, 'kind' | 'schema'>): { readonly object: Schema; readonly list: Schema } => {
  const one = objectSchema(kind, kind, schema);
  return { object: one, list: listSchema(`${kind}List`, one, kind) };
};

const unless = flag.default(false);

export const limit = (description: string): ParameterDescription =>
  inQuery('limit', description, integer.min(-1).default(-1));

export const nameParameter = inPath('name', 'The name');
export const pretty = inQuery('pretty', 'Indented JSON', unless);
export const timeout = inQuery(
  'timeout',
  'A duration such as "32s" after which the request is given up',
  text.max(longestDuration).regex(new RegExp(durationPattern)),
);

/** Of what has no others; client-go adds its timeout. */
export const commonParameters: readonly ParameterDescription[] = [pretty, timeout];

export const labelSelector = inQuery(
  'labelSelector',
  'Kubernetes label selector of at most 64 requirements, such as a=b,c in (d,e),!f',
);
export const watchParameters: readonly ParameterDescription[] = [
  inQuery('watch', 'Follow the changes instead of listing; over a WebSocket, one text message an event', unless),
  inQuery('resourceVersion', 'Where to begin, or how old the answer may be'),
  inQuery(
    'resourceVersionMatch',
    'How resourceVersion is meant; Exact is for /apis alone',
    oneOrNone('NotOlderThan', 'Exact'),
  ),
  inQuery('allowWatchBookmarks', 'BOOKMARK events that say how far the watch has come', unless),
  // Said at all it is about a watch.
  inQuery('sendInitialEvents', 'Begin a watch with the present objects', flag),
  inQuery('timeoutSeconds', 'How long a watch lasts, in seconds', count),
];

const shown = [
  inQuery('managedFields', 'With metadata.managedFields', unless),
  inQuery(
    'fields',
    `Only these of at most ${mostPaths} paths, comma-separated, and what names the object`,
    text.regex(new RegExp(String.raw`^\.?${listedPathPattern}(?:,\.?${listedPathPattern}){0,${mostPaths - 1}}$`)),
  ),
];

export const kapisListParameters = (own: readonly ParameterDescription[]): readonly ParameterDescription[] => [
  inQuery('page', 'From 1', integer.min(1).default(1)),
  limit('Items of a page; -1 for all'),
  inQuery(
    'sortBy',
    'name, createTime (also creationTimestamp), or any path, such as .status.nodeInfo.kubeletVersion',
    text.regex(new RegExp(String.raw`^(?:name|createTime|creationTimestamp|\.${pathPattern})$`)).default('createTime'),
  ),
  inQuery('ascending', 'Oldest, or least, first', unless),
  inQuery('name', 'The name contains this'),
  inQuery('names', 'The name is one of this comma list'),
  inQuery('uid', 'The uid is this'),
  inQuery('namespace', 'The namespace is this'),
  inQuery('ownerReference', 'An owner has this uid'),
  inQuery('ownerKind', 'An owner is of this kind'),
  inQuery('label', 'The same as labelSelector'),
  inQuery('annotation', 'A selector over the annotations'),
  inQuery('alias', 'The annotation platform.io/alias-name contains this, in whatever case'),
  ...own,
  labelSelector,
  inQuery('fieldSelector', 'path=value and path!=value, over any path, comma-separated; at most 32 of them'),
  ...shown,
  pretty,
  timeout,
  ...watchParameters,
];

const statusParameter = (statuses: readonly string[]): readonly ParameterDescription[] =>
  statuses.length === 0 ? [] : [inQuery('status', 'The state of the object', oneOf(...statuses))];

export const getParameters: readonly ParameterDescription[] = [...shown, pretty, timeout];

/** Without meaning for a watch, which has no pages and no order. */
export const listOnly = ['page', 'limit', 'sortBy', 'ascending'];

/** Those of a single object, which may be watched by whatever a list is, given those of the list. */
export const objectParameters = (list: readonly ParameterDescription[]): readonly ParameterDescription[] =>
  list
    .filter(({ name }) => !listOnly.includes(name))
    .map((one) =>
      getParameters.includes(one) || one.name === 'watch'
        ? one
        : { ...one, description: `${one.description}; only with watch=true`, schema: withoutDefault(one.schema) },
    );

/** Those of one kind. */
export const listParameters = ({
  statuses,
  filters,
  selectedBy,
}: Pick<ResourceDefinition<never>, 'statuses' | 'filters' | 'selectedBy'>): readonly ParameterDescription[] =>
  kapisListParameters([
    ...statusParameter(statuses),
    ...Object.entries({ ...filters, ...selectedBy }).map(([name, { description }]) => inQuery(name, description)),
  ]);
