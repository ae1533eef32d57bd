/**
 * The schemas of a resource as the cluster itself publishes them (OpenAPI v3), so that `kubectl explain` shows for our resource what
 * it shows for the core one. They get names of our own: the same name with another content would break the merged document.
 */
import type { KubeClient } from '../kube/client.ts';

export type Schema = Readonly<Record<string, unknown>>;
export type Schemas = Readonly<Record<string, Schema>>;

const prefix = '#/components/schemas/';

/** All `$ref`s of a schema, at any depth. */
function* referencesOf(value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, item] of Object.entries(value))
    if (key === '$ref' && typeof item === 'string') yield item.slice(prefix.length);
    else yield* referencesOf(item);
}

const shortName = (name: string): string => name.slice(name.lastIndexOf('.') + 1);

/** The schemas that `root` needs, itself among them, each renamed to `<namespace>.<Kind>`. Throws if one is missing. */
export function closure(all: Schemas, root: string, namespace: string): Schemas {
  const found = new Map<string, Schema>();
  const waiting = [root];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (found.has(name)) continue;
    const schema = all[name];
    if (schema === undefined) throw new Error(`the cluster publishes no schema ${name}`);
    found.set(name, schema);
    waiting.push(...referencesOf(schema));
  }
  const rename = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(rename);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) =>
        key === '$ref' && typeof item === 'string'
          ? [key, `${prefix}${namespace}.${shortName(item)}`]
          : [key, rename(item)],
      ),
    );
  };
  return Object.fromEntries(
    [...found].map(([name, schema]) => [`${namespace}.${shortName(name)}`, rename(schema) as Schema]),
  );
}

/** Reads the core group's schemas. Throws KubeError, or an Error when the document is another than expected. */
export async function readCoreSchemas(client: KubeClient): Promise<Schemas> {
  const document = await client.json<{ components?: { schemas?: Schemas } }>('/openapi/v3/api/v1');
  const schemas = document.components?.schemas;
  if (schemas === undefined) throw new Error('the OpenAPI document of the core group has no schemas');
  return schemas;
}
