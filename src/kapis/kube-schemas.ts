/** Objects of the cluster as /kapis answers them: what all have. What is in them is said by the cluster's own descriptions. */
import { listSchema, objectMetaSchema } from '../http/meta.ts';
import { named, object, oneOf, open, text, type Schema } from '../http/schema.ts';

/** `kind`: if it is known. With the parameter `fields` there may be no more in it. */
const objectSchema = (name: string, kind?: string): Schema<Readonly<Record<string, unknown>>> =>
  named(
    name,
    open(
      object({
        kind: kind === undefined ? text : oneOf(kind),
        apiVersion: text,
        metadata: objectMetaSchema,
      }),
    ),
  );

export const anyObjectSchema = objectSchema('Object');
export const anyListSchema = listSchema('ObjectList', anyObjectSchema);

/** Of a kind that is always served. */
export const schemasOf = (kind: string): { readonly object: Schema; readonly list: Schema } => {
  const one = objectSchema(kind, kind);
  return { object: one, list: listSchema(`${kind}List`, one, kind) };
};
