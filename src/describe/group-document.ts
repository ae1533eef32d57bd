/** The OpenAPI documents of our aggregated group, v3 and, converted from it, v2 (what kube-apiserver merges into its own). */
import type { Schema, Schemas } from './cluster-schemas.ts';

/** A resource of the group as its documents need it. */
export interface DescribedResource {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
}

/** Where the schemas of a group live: io.platform.resources.v1alpha3. */
export const schemaNamespace = ({ group, version }: DescribedResource): string =>
  `${group.split('.').toReversed().join('.')}.${version}`;

const query = (name: string, type: string, description: string) => ({
  name,
  in: 'query',
  description,
  schema: { type, uniqueItems: true },
});

const pretty = query('pretty', 'string', "If 'true', the output is indented.");

const listParameters = [
  query('allowWatchBookmarks', 'boolean', 'Asks for events of type BOOKMARK in a watch.'),
  query('continue', 'string', 'The token of the previous page; the next one is returned.'),
  query('fieldSelector', 'string', 'Restricts the objects by metadata.name and spec.unschedulable.'),
  query('labelSelector', 'string', 'Restricts the objects by their labels.'),
  query('limit', 'integer', 'The largest number of objects in an answer; the rest is had with continue.'),
  query('resourceVersion', 'string', 'How fresh the answer must be; see the Kubernetes API concepts.'),
  query('resourceVersionMatch', 'string', 'How resourceVersion is meant: Exact or NotOlderThan.'),
  query('sendInitialEvents', 'boolean', 'A watch begins with the present objects, closed by a bookmark.'),
  query('timeoutSeconds', 'integer', 'A watch ends after so many seconds.'),
  query('watch', 'boolean', 'Streams the changes.'),
];

/** A document whose schemas are the cluster's own, or, where they cannot be had (`schemas` undefined), whatever an object may be. */
export function groupDocument(resource: DescribedResource, schemas: Schemas | undefined): Record<string, unknown> {
  const { group, version, plural, kind } = resource;
  const namespace = schemaNamespace(resource);
  const names = { item: `${namespace}.${kind}`, list: `${namespace}.${kind}List` };
  const gvk = { group, version, kind };
  const base = schemas ?? {
    [names.item]: anyObject(`${kind} of the cluster`),
    [names.list]: anyObject(`A list of ${kind}`),
  };
  const operation = (action: string, id: string, schema: string, parameters: readonly unknown[]) => ({
    tags: [`${camel(group)}_${version}`],
    description: action === 'get' ? `read the specified ${kind}` : `list or watch objects of kind ${kind}`,
    operationId: `${id}${camel(group)}${camel(version)}${kind}`,
    parameters,
    responses: {
      '200': {
        description: 'OK',
        content: { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` } } },
      },
      '401': { description: 'Unauthorized' },
    },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': gvk,
  });
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: 'unversioned' },
    paths: {
      [`/apis/${group}/${version}/${plural}`]: {
        get: operation('list', 'list', names.list, listParameters),
        parameters: [pretty],
      },
      [`/apis/${group}/${version}/${plural}/{name}`]: {
        get: operation('get', 'read', names.item, []),
        parameters: [
          {
            name: 'name',
            in: 'path',
            description: `name of the ${kind}`,
            required: true,
            schema: { type: 'string', uniqueItems: true },
          },
          pretty,
        ],
      },
    },
    components: {
      schemas: {
        ...base,
        [names.item]: { ...base[names.item], 'x-kubernetes-group-version-kind': [gvk] },
        [names.list]: { ...base[names.list], 'x-kubernetes-group-version-kind': [{ ...gvk, kind: `${kind}List` }] },
      },
    },
  };
}

const anyObject = (description: string): Schema => ({
  description,
  type: 'object',
  'x-kubernetes-preserve-unknown-fields': true,
});

const camel = (text: string): string =>
  text.replace(/(^|\.)([a-z])/g, (_whole, _dot, letter: string) => letter.toUpperCase());

/** Swagger 2.0 knows no components, no content by media type, no oneOf, and takes a $ref's description beside it. */
export function asSwagger(document: Record<string, unknown>): Record<string, unknown> {
  const { info, paths, components } = document as { info: unknown; paths: object; components: { schemas: object } };
  return { swagger: '2.0', info, paths: convert(paths), definitions: convert(components.schemas) };
}

function convert(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(convert);
  if (typeof value !== 'object' || value === null) return value;
  const { allOf, oneOf, schema, content, ...rest } = value as Record<string, unknown>;
  const converted: Record<string, unknown> = Object.fromEntries(
    Object.entries(rest).map(([key, item]) => [
      key,
      key === '$ref' && typeof item === 'string'
        ? item.replace('#/components/schemas/', '#/definitions/')
        : convert(item),
    ]),
  );
  if (Array.isArray(allOf) && allOf.length === 1) Object.assign(converted, convert(allOf[0]));
  if (oneOf !== undefined) converted['type'] = 'string';
  // A parameter has its type on itself, a body's schema stands alone.
  if ('in' in converted && typeof schema === 'object') Object.assign(converted, schema);
  else if (schema !== undefined) converted['schema'] = convert(schema);
  const json = (content as Record<string, { schema?: unknown }> | undefined)?.['application/json'];
  if (json !== undefined) converted['schema'] = convert(json.schema);
  if ('operationId' in converted) converted['produces'] = ['application/json', 'application/json;stream=watch'];
  return converted;
}
