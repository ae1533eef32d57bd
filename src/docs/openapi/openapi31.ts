/** Writes API descriptions in OpenAPI 3.1. */
import type { ContentDescription } from '../../http/route.ts';
import { parameterExamples, type Example } from './examples.ts';
import type { JSONSchema } from './json-schema.ts';
import { Components } from './components.ts';
import { headOf, type DocumentDescription, type DocumentHead, type OperationDescription } from './operation.ts';
import { security31 } from './security.ts';
import { Writer } from './writer.ts';

/**
 * Writes an enumeration with one value as `const`, because client generators would create a type for the enumeration.
 */
function withConst(schema: JSONSchema): JSONSchema {
  const { enum: values, ...rest } = schema;
  return Array.isArray(values) && values.length === 1 ? { ...rest, const: values[0] as unknown } : schema;
}

const bound = (inclusive: string, exclusive: string, limit: unknown, isExclusive: unknown): object =>
  limit === undefined ? {} : { [isExclusive === true ? exclusive : inclusive]: limit };

/** Translates the OpenAPI 3.0 keywords of CustomResourceDefinitions to JSON Schema. */
function asJSONSchema(schema: JSONSchema): JSONSchema {
  const { nullable, exclusiveMinimum, exclusiveMaximum, example, ...rest } = schema;
  if ([nullable, exclusiveMinimum, exclusiveMaximum, example].every((one) => one === undefined))
    return withConst(schema);
  const { minimum, maximum, type, enum: values, ...others } = rest;
  return {
    ...others,
    ...(type === undefined ? {} : { type: nullable === true ? [type, 'null'] : type }),
    ...(values === undefined ? {} : { enum: nullable === true ? [...(values as unknown[]), null] : values }),
    ...bound('minimum', 'exclusiveMinimum', minimum, exclusiveMinimum),
    ...bound('maximum', 'exclusiveMaximum', maximum, exclusiveMaximum),
    ...(example === undefined ? {} : { examples: [example] }),
  };
}

export class Writer31 extends Writer {
  constructor() {
    super(new Components('#/components/schemas/', asJSONSchema), '#/components/responses/');
  }

  protected override request(operation: OperationDescription): object {
    const { parameters, body, example } = operation;
    const examples = parameterExamples(operation);
    return {
      ...(parameters.length === 0
        ? {}
        : {
            parameters: parameters.map((one) => ({
              ...one,
              schema: this.schemas.write(one.schema),
              ...(examples.has(one.name) ? { example: examples.get(one.name) } : {}),
            })),
          }),
      ...(body === undefined ? {} : { requestBody: { ...body, ...this.content(body.content, example?.request) } }),
    };
  }

  protected override header(description: string): object {
    return { description, schema: { type: 'string' } };
  }

  protected override content(
    content: ContentDescription<JSONSchema> | undefined,
    example?: Example['request' | 'response'],
  ): object {
    if (content === undefined) return {};
    const written = Object.entries(content).map(([type, schema]) => [
      type,
      { schema: this.schemas.write(schema), ...(type === example?.type ? { example: example.body } : {}) },
    ]);
    return { content: Object.fromEntries(written) as object };
  }
}

/**
 * Returns the document without paths and components. Also returns the security schemes, which belong to the components.
 */
export function head31(
  { info, ...tags }: DocumentHead,
  issuer: string,
): { readonly head: object; readonly securitySchemes: object } {
  const { security, securitySchemes } = security31(issuer);
  return { head: { openapi: '3.1.0', info, servers: [{ url: '/' }], security, ...tags }, securitySchemes };
}

export function openapi31(description: DocumentDescription, issuer: string): object {
  const writer = new Writer31();
  const paths = writer.paths(description.operations);
  const { head, securitySchemes } = head31(headOf(description), issuer);
  return { ...head, paths, components: { securitySchemes, ...writer.components } };
}
