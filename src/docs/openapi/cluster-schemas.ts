/** Schemas of the cluster, taken over under names of our own. */
import type { ResourceDefinition } from '../../cluster/catalogue/resource.ts';
import type { Schema } from '../../http/schema.ts';
import { jsonSchemaOf } from './json-schema.ts';
import { packageOf } from './operations.ts';

export type ClusterSchema = Readonly<Record<string, unknown>>;
export type ClusterSchemas = Readonly<Record<string, ClusterSchema>>;

/** A resource that is described by the schema of another API's. */
export interface DescribedResource {
  readonly group: string;
  readonly version: string;
  /** Plural. */
  readonly resource: string;
  readonly kind: string;
  /** The name of its schema in the cluster's own document, such as io.k8s.api.core.v1.Node; the list's has List behind it. */
  readonly source: string;
}

/** Describes a resource that serves the objects of the core API. */
export const describedResource = ({
  kind,
  served,
}: Pick<ResourceDefinition<never>, 'kind' | 'served'>): DescribedResource => ({
  ...served,
  kind,
  source: `io.k8s.api.core.v1.${kind}`,
});

/** A kind of ours, with a schema of our own. */
export interface DescribedKind {
  readonly group: string;
  readonly version: string;
  /** Plural. */
  readonly resource: string;
  readonly kind: string;
  readonly schema: Schema;
}

const refPrefix = '#/components/schemas/';

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The value with every object in it replaced by what `change` makes of it, the inner ones first. */
function mapObjects(value: unknown, change: (object: ClusterSchema) => unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => mapObjects(item, change));
  if (!isObject(value)) return value;
  return change(Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapObjects(item, change)])));
}

const referenced = (schema: ClusterSchema): string | undefined => {
  const ref = schema['$ref'];
  return typeof ref === 'string' && ref.startsWith(refPrefix) ? ref.slice(refPrefix.length) : undefined;
};

export const schemaName = ({ group, version, kind }: DescribedResource, suffix = ''): string =>
  `${packageOf(group, version)}.${kind}${suffix}`;

/**
 * The schemas of the resource and its list, and of all that they refer to, named in our own package: a name of Kubernetes' own is
 * never defined a second time. Undefined if the cluster does not have them.
 */
export function ownSchemas(cluster: ClusterSchemas, resource: DescribedResource): ClusterSchemas | undefined {
  const { group, version, kind, source } = resource;
  const roots = new Map([
    [source, kind],
    [`${source}List`, `${kind}List`],
  ]);
  const own: Record<string, ClusterSchema> = {};
  const pending = [...roots.keys()];
  const seen = new Set(pending);
  const ownName = (name: string): string => `${packageOf(group, version)}.${roots.get(name) ?? name.split('.').at(-1)}`;
  for (const name of pending) {
    const schema = cluster[name];
    if (schema === undefined) return undefined;
    const renamed = mapObjects(schema, (object) => {
      const target = referenced(object);
      if (target === undefined) return object;
      if (!seen.has(target)) {
        seen.add(target);
        pending.push(target);
      }
      return { ...object, $ref: `${refPrefix}${ownName(target)}` };
    }) as ClusterSchema;
    const { 'x-kubernetes-group-version-kind': _gvk, ...rest } = renamed;
    const rootKind = roots.get(name);
    own[ownName(name)] =
      rootKind === undefined
        ? rest
        : { ...rest, 'x-kubernetes-group-version-kind': [{ group, version, kind: rootKind }] };
  }
  return own;
}

/** Without names within: kubectl shows what is in them. */
export const kindSchemas = (kinds: readonly DescribedKind[]): ClusterSchemas =>
  Object.fromEntries(
    kinds.map(({ group, version, kind, schema }) => [
      `${packageOf(group, version)}.${kind}`,
      { ...merged(jsonSchemaOf(schema)), 'x-kubernetes-group-version-kind': [{ group, version, kind }] },
    ]),
  );

/** What is said of a resource whose true schema cannot be had. */
export function unknownSchemas(resource: DescribedResource): ClusterSchemas {
  const { group, version, kind } = resource;
  const texts = { apiVersion: { type: 'string' }, kind: { type: 'string' } };
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  return {
    [schemaName(resource)]: {
      ...open,
      properties: { ...texts, metadata: open },
      'x-kubernetes-group-version-kind': [{ group, version, kind }],
    },
    [schemaName(resource, 'List')]: {
      type: 'object',
      required: ['items'],
      properties: {
        ...texts,
        metadata: open,
        items: { type: 'array', items: { $ref: `${refPrefix}${schemaName(resource)}` } },
      },
      'x-kubernetes-group-version-kind': [{ group, version, kind: `${kind}List` }],
    },
  };
}

export type Properties = Readonly<Record<string, ClusterSchema>>;

/** 2.0 has no anyOf: whatever is in one of the objects may be there; where two say different things of it, anything. */
export function merged(schema: ClusterSchema): ClusterSchema {
  const { anyOf, ...rest } = schema;
  if (anyOf === undefined) return schema;
  const properties: Record<string, ClusterSchema> = {};
  for (const { properties: own } of anyOf as { readonly properties: Properties }[])
    for (const [name, one] of Object.entries(own)) {
      const other = properties[name];
      properties[name] = other === undefined || JSON.stringify(other) === JSON.stringify(one) ? one : {};
    }
  return { ...rest, properties, additionalProperties: false };
}

/** Any value in OpenAPI 3.0, as Swagger 2.0 has it. */
export const asSwagger2 = (value: unknown): unknown =>
  mapObjects(value, (object) => {
    const target = referenced(object);
    if (target !== undefined) return { ...object, $ref: `#/definitions/${target}` };
    if (object['type'] === 'object' && object['anyOf'] !== undefined) return merged(object);
    const { allOf, oneOf, anyOf, nullable: _nullable, default: preset, ...rest } = object;
    // `{allOf: [{$ref}], default: {}}` is 3.0's way to give a reference a description.
    const [only, ...more] = Array.isArray(allOf) ? (allOf as ClusterSchema[]) : [];
    const isReference = only?.['$ref'] !== undefined && more.length === 0;
    return {
      ...rest,
      ...(isReference ? only : {}),
      ...(preset === undefined || isReference ? {} : { default: preset }),
      // A number or a text: IntOrString and Quantity are texts in 2.0.
      ...(oneOf === undefined && anyOf === undefined ? {} : { type: 'string' }),
    };
  });
