/** JSON Schema (2020-12) in documents: translated from our own schemas, or read from the cluster. */
import { z } from 'zod';
import type {
  BodyDescription,
  ContentDescription,
  ParameterDescription,
  ResponseDescription,
  ResponseDescriptions,
} from '../../http/route.ts';

const name = Symbol('name');

export type JSONSchema = Readonly<Record<string, unknown>> & { readonly [name]?: string };

/** Names the schema. Documents define a named schema once, under this name. */
export const withName = (of: string, schema: JSONSchema): JSONSchema => ({ ...schema, [name]: of });

export const nameOf = (schema: JSONSchema): string | undefined => schema[name];

const isRecord = (value: unknown): value is JSONSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const translated = new WeakMap<z.ZodType, JSONSchema>();

/** Returns the schema of the values that clients send. Named schemas inside the schema are inlined. */
export function jsonSchemaOf(schema: z.ZodType): JSONSchema {
  let found = translated.get(schema);
  if (found === undefined) {
    const {
      $schema: _,
      $defs = {},
      ...root
    } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', override });
    translated.set(schema, (found = simplified(root, $defs) as JSONSchema));
  }
  return found;
}

/** Describes a codec by its decoded value, although the value is text in a query. */
function override({
  zodSchema,
  jsonSchema,
}: {
  zodSchema: z.core.$ZodTypes;
  jsonSchema: z.core.JSONSchema.BaseSchema;
}): void {
  const {
    _zod: { def },
  } = zodSchema;
  if (def.type === 'default') jsonSchema.default = def.defaultValue;
  if (def.type === 'pipe' && def.reverseTransform !== undefined)
    Object.assign(jsonSchema, jsonSchemaOf(def.out as z.ZodType));
}

const refPrefix = '#/$defs/';
const isNull = (value: unknown): boolean => isRecord(value) && value['type'] === 'null';

/**
 * Replaces references with their targets. Omits keywords that tell clients nothing, such as the bounds of safe
 * integers.
 */
function simplified(value: unknown, defs: Readonly<Record<string, unknown>>): unknown {
  if (Array.isArray(value)) return value.map((item) => simplified(item, defs));
  if (!isRecord(value)) return value;
  const { $ref, propertyNames: _, ...rest } = value;
  const schema: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(rest)) {
    if (key === 'maximum' && item === Number.MAX_SAFE_INTEGER) continue;
    if (key === 'minimum' && item === Number.MIN_SAFE_INTEGER) continue;
    const isAny = key === 'additionalProperties' && isRecord(item) && Object.keys(item).length === 0;
    schema[key] = isAny || simplified(item, defs);
  }
  if (typeof $ref === 'string') {
    const of = $ref.slice(refPrefix.length);
    return withName(of, { ...(simplified(defs[of], defs) as JSONSchema), ...schema });
  }
  // Uses `nullable` as in Kubernetes and OpenAPI 3.0. Each writer translates this keyword.
  const { anyOf, type } = schema;
  if (Array.isArray(type)) return { ...schema, type: type[0] as unknown, nullable: true };
  if (!Array.isArray(anyOf) || !anyOf.some(isNull)) return schema;
  return { ...(anyOf.find((one) => !isNull(one)) as JSONSchema), nullable: true };
}

export function parameterOf(parameter: ParameterDescription): ParameterDescription<JSONSchema> {
  // The description belongs to the parameter, not to its schema.
  const { description: _, ...schema } = jsonSchemaOf(parameter.schema);
  return { ...parameter, schema };
}

export const contentOf = (content: ContentDescription): ContentDescription<JSONSchema> =>
  Object.fromEntries(Object.entries(content).map(([type, schema]) => [type, jsonSchemaOf(schema)]));

export const bodyOf = ({ content, ...body }: BodyDescription): BodyDescription<JSONSchema> => ({
  ...body,
  content: contentOf(content),
});

const responseOf = ({ content, ...response }: ResponseDescription): ResponseDescription<JSONSchema> =>
  content === undefined ? response : { ...response, content: contentOf(content) };

export const responsesOf = (responses: ResponseDescriptions): ResponseDescriptions<JSONSchema> =>
  Object.fromEntries(Object.entries(responses).map(([status, response]) => [status, responseOf(response)]));
