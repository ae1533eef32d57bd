/** The parameters of the routes, as the descriptions name them. */
import type { Parameter } from '../http/route.ts';
import type { ResourceDefinition } from './resource.ts';

const text = { type: 'string' };
const flag = { type: 'boolean', default: false };

export const parameter = (
  name: string,
  description: string,
  schema: Readonly<Record<string, unknown>> = text,
): Parameter => ({
  name,
  in: 'query',
  description,
  schema,
});

export const limit = (description: string): Parameter =>
  parameter('limit', description, { type: 'integer', minimum: -1, default: -1 });

export const inPath = (name: string, description: string): Parameter => ({
  name,
  in: 'path',
  description,
  required: true,
  schema: text,
});
export const nameParameter = inPath('name', 'The name');
export const pretty = parameter('pretty', 'Indented JSON', flag);
export const timeout = parameter('timeout', 'A duration such as "32s" after which the request is given up');

export const labelSelector = parameter(
  'labelSelector',
  'Kubernetes label selector of at most 64 requirements, such as a=b,c in (d,e),!f',
);
export const watchParameters: readonly Parameter[] = [
  parameter('watch', 'Follow the changes instead of listing; over a WebSocket, one text message an event', flag),
  parameter('resourceVersion', 'Where to begin, or how old the answer may be'),
  parameter('resourceVersionMatch', 'How resourceVersion is meant', {
    type: 'string',
    enum: ['NotOlderThan', 'Exact'],
  }),
  parameter('allowWatchBookmarks', 'BOOKMARK events that say how far the watch has come', flag),
  parameter('sendInitialEvents', 'Begin a watch with the present objects', flag),
  parameter('timeoutSeconds', 'How long a watch lasts', { type: 'integer', minimum: 0 }),
];

const shown = [
  parameter('managedFields', 'With metadata.managedFields', flag),
  parameter('fields', 'Only these of at most 64 paths, comma-separated, and what names the object'),
];

export const kapisListParameters = (own: readonly Parameter[]): readonly Parameter[] => [
  parameter('page', 'From 1', { type: 'integer', minimum: 1, default: 1 }),
  limit('Items of a page; -1 for all'),
  parameter(
    'sortBy',
    'name, createTime (also creationTimestamp), or any path, such as .status.nodeInfo.kubeletVersion',
    {
      ...text,
      default: 'createTime',
    },
  ),
  parameter('ascending', 'Oldest, or least, first', flag),
  parameter('name', 'The name contains this'),
  parameter('names', 'The name is one of this comma list'),
  parameter('uid', 'The uid is this'),
  parameter('namespace', 'The namespace is this'),
  parameter('ownerReference', 'An owner has this uid'),
  parameter('ownerKind', 'An owner is of this kind'),
  parameter('label', 'The same as labelSelector'),
  parameter('annotation', 'A selector over the annotations'),
  parameter('alias', 'The annotation platform.io/alias-name contains this, in whatever case'),
  ...own,
  labelSelector,
  parameter('fieldSelector', 'path=value and path!=value, over any path, comma-separated; at most 32 of them'),
  ...shown,
  pretty,
  timeout,
  ...watchParameters,
];

const statusParameter = (statuses: readonly string[]): readonly Parameter[] =>
  statuses.length === 0 ? [] : [parameter('status', 'The state of the object', { type: 'string', enum: statuses })];

export const getParameters: readonly Parameter[] = [...shown, pretty, timeout];

/** Those of one kind. */
export const listParameters = ({
  statuses,
  filters,
}: Pick<ResourceDefinition<never>, 'statuses' | 'filters'>): readonly Parameter[] =>
  kapisListParameters([
    ...statusParameter(statuses),
    ...Object.entries(filters).map(([name, { description }]) => parameter(name, description)),
  ]);
