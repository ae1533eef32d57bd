/** Copies schemas of the cluster under names in the package of this server. */
import type { ResourceDefinition } from '../../cluster/catalogue/resource.ts';
import type { Schema } from '../../http/schema.ts';
import { jsonSchemaOf } from './json-schema.ts';
import { packageOf } from './operations.ts';

export type ClusterSchema = Readonly<Record<string, unknown>>;
export type ClusterSchemas = Readonly<Record<string, ClusterSchema>>;

/** A resource that is described by a schema of another API. */
export interface DescribedResource {
  readonly group: string;
  readonly version: string;
  /** Plural name of the resource. */
  readonly resource: string;
  readonly kind: string;
  /**
   * Name of the resource's schema in the cluster's own document, such as io.k8s.api.core.v1.Node. The schema of the
   * list has the suffix List.
   */
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

/** A kind that this server defines, with its schema. */
export interface DescribedKind {
  readonly group: string;
  readonly version: string;
  /** Plural name of the resource. */
  readonly resource: string;
  readonly kind: string;
  readonly schema: Schema;
}

const refPrefix = '#/components/schemas/';

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns the value with `change` applied to every object in it, innermost first. */
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
 * Returns the schemas of the resource and its list, and all schemas they refer to. The schemas are renamed into the
 * package of this server, so that no Kubernetes name is defined twice. Returns undefined if the cluster does not have
 * these schemas.
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

/** Returns the schemas of the kinds. Nested schemas are inlined, because kubectl explain shows their content. */
export const kindSchemas = (kinds: readonly DescribedKind[]): ClusterSchemas =>
  Object.fromEntries(
    kinds.map(({ group, version, kind, schema }) => [
      `${packageOf(group, version)}.${kind}`,
      { ...merged(jsonSchemaOf(schema)), 'x-kubernetes-group-version-kind': [{ group, version, kind }] },
    ]),
  );

/** Returns placeholder schemas for a resource whose schema is unavailable. */
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

/**
 * Merges the alternatives of `anyOf`, which Swagger 2.0 does not have, into one object with the properties of all
 * alternatives. A property that two alternatives define differently accepts any value.
 */
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

/** Translates schemas, or values that contain schemas, from OpenAPI 3.0 to Swagger 2.0. */
export const asSwagger2 = (value: unknown): unknown =>
  mapObjects(value, (object) => {
    const target = referenced(object);
    if (target !== undefined) return { ...object, $ref: `#/definitions/${target}` };
    if (object['type'] === 'object' && object['anyOf'] !== undefined) return merged(object);
    const { allOf, oneOf, anyOf, nullable: _nullable, default: preset, ...rest } = object;
    // OpenAPI 3.0 writes `{allOf: [{$ref}], default: {}}` to give a reference a description.
    const [only, ...more] = Array.isArray(allOf) ? (allOf as ClusterSchema[]) : [];
    const isReference = only?.['$ref'] !== undefined && more.length === 0;
    return {
      ...rest,
      ...(isReference ? only : {}),
      ...(preset === undefined || isReference ? {} : { default: preset }),
      // IntOrString and Quantity accept a number or a string. In Swagger 2.0, their values are described as strings.
      ...(oneOf === undefined && anyOf === undefined ? {} : { type: 'string' }),
    };
  });
