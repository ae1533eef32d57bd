/** Objects of the cluster as /kapis answers them: what all have. What is in them is said by the cluster's own descriptions. */
import { listSchema, objectMetaSchema } from '../http/meta.ts';
import { named, object, oneOf, open, text, type Schema } from '../http/schema.ts';
import type { ResourceDefinition } from '../cluster/catalogue/resource.ts';

/** `kind`: if it is known. With the parameter `fields` there may be no more in it than what must be. */
const objectSchema = (
  name: string,
  kind?: string,
  parts: Readonly<Record<string, Schema>> = {},
): Schema<Readonly<Record<string, unknown>>> =>
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
