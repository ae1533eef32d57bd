/** The routes of both doors, for each of the resources that they are handed. */
import type { Authorizer } from '../auth/authorizers/authorizer.ts';
import type { Parameter, Route } from '../http/route.ts';
import { apisHandlers } from './apis-handler.ts';
import { discoveryRoutes, groupVersionsOf, type ApiGroupVersion } from './discovery.ts';
import { kapisHandlers } from './kapis-handler.ts';
import type { Resource } from './resource.ts';

export interface KapisDeps {
  readonly authorizer: Authorizer;
  readonly resources: readonly Resource<unknown>[];
  /** Groups that others serve and that discovery names too. */
  readonly otherGroups?: readonly ApiGroupVersion[];
}

const text = { type: 'string' };
const flag = { type: 'boolean', default: false };

const parameter = (name: string, description: string, schema: Readonly<Record<string, unknown>> = text): Parameter => ({
  name,
  in: 'query',
  description,
  schema,
});

const nameParameter: Parameter = { name: 'name', in: 'path', description: 'The name', required: true, schema: text };
const pretty = parameter('pretty', 'Indented JSON', flag);
const timeout = parameter('timeout', 'A duration such as "32s" after which the request is given up');

const labelSelector = parameter(
  'labelSelector',
  'Kubernetes label selector of at most 64 requirements, such as a=b,c in (d,e),!f',
);
const watchParameters: readonly Parameter[] = [
  parameter('watch', 'Follow the changes instead of listing', flag),
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

const kapisListParameters = (statuses: readonly string[]): readonly Parameter[] => [
  parameter('page', 'From 1', { type: 'integer', minimum: 1, default: 1 }),
  parameter('limit', 'Items of a page; -1 for all', { type: 'integer', minimum: -1, default: -1 }),
  parameter('sortBy', 'name, createTime (also creationTimestamp), or any .path.to.field', {
    ...text,
    default: 'createTime',
  }),
  parameter('ascending', 'Oldest, or least, first', flag),
  parameter('name', 'The name contains this'),
  parameter('names', 'The name is one of this comma list'),
  parameter('uid', 'The uid is this'),
  parameter('namespace', 'The namespace is this'),
  parameter('ownerReference', 'An owner has this uid'),
  parameter('ownerKind', 'An owner is of this kind'),
  parameter('label', 'The same as labelSelector'),
  parameter('annotation', 'A selector over the annotations'),
  parameter('status', 'The state of the object', { type: 'string', enum: statuses }),
  labelSelector,
  parameter('fieldSelector', 'path=value and path!=value, over any path, comma-separated; at most 32 of them'),
  ...shown,
  pretty,
  timeout,
  ...watchParameters,
];

/** For the gateway: discovery and every resource below /kapis. */
export function kapisRoutes({ authorizer, resources, otherGroups = [] }: KapisDeps): Route[] {
  const definitions = resources.map(({ definition }) => definition);
  return [
    ...discoveryRoutes('/kapis', [...groupVersionsOf(definitions), ...otherGroups]),
    ...resources.flatMap((resource): Route[] => {
      const { kind, statuses, served } = resource.definition;
      const path = `/kapis/${served.group}/${served.version}/${served.resource}`;
      const { collection, object } = kapisHandlers(resource, authorizer);
      return [
        {
          method: 'get',
          path,
          summary: `List or watch objects of kind ${kind}`,
          parameters: kapisListParameters(statuses),
          hot: true,
          handler: collection,
        },
        {
          method: 'get',
          path: `${path}/:name`,
          summary: `Read the ${kind}`,
          parameters: [nameParameter, ...shown, pretty, timeout],
          hot: true,
          handler: object,
        },
      ];
    }),
  ];
}

const apisListParameters: readonly Parameter[] = [
  labelSelector,
  parameter('fieldSelector', 'Kubernetes field selector of at most 32 terms'),
  parameter('limit', 'Items of a chunk', { type: 'integer', minimum: 0 }),
  parameter('continue', 'metadata.continue of the chunk before'),
  ...watchParameters,
  pretty,
  timeout,
];

/** For the aggregated face: discovery and every resource below /apis, with the old paths of a watch. */
export function apisRoutes({ authorizer, resources, otherGroups = [] }: KapisDeps): Route[] {
  const definitions = resources.map(({ definition }) => definition);
  return [
    ...discoveryRoutes('/apis', [...groupVersionsOf(definitions), ...otherGroups]),
    ...resources.flatMap((resource) => {
      const { kind, served } = resource.definition;
      const base = `/apis/${served.group}/${served.version}`;
      const { collection, object } = apisHandlers(resource, authorizer);
      return [base, `${base}/watch`].flatMap((parent): Route[] => [
        {
          method: 'get',
          path: `${parent}/${served.resource}`,
          summary: parent === base ? `List or watch objects of kind ${kind}` : `Watch objects of kind ${kind}`,
          parameters: apisListParameters,
          hot: true,
          handler: collection,
        },
        {
          method: 'get',
          path: `${parent}/${served.resource}/:name`,
          summary: parent === base ? `Read the ${kind}` : `Watch the ${kind}`,
          parameters: [nameParameter, parameter('resourceVersion', 'How old the answer may be'), pretty, timeout],
          hot: true,
          handler: object,
        },
      ]);
    }),
  ];
}
