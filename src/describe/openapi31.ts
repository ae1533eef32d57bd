/** OpenAPI 3.1. */
import type { Answer, Content } from '../http/description.ts';
import type { Schema } from '../http/schema.ts';
import { Components } from './components.ts';
import { byPath, license, sorted, type Description, type Operation } from './operation.ts';
import { security31 } from './security.ts';

const bound = (inclusive: string, exclusive: string, limit: unknown, isExclusive: unknown): object =>
  limit === undefined ? {} : { [isExclusive === true ? exclusive : inclusive]: limit };

/** What CustomResourceDefinitions have in the words of OpenAPI 3.0, in those of JSON Schema. */
function asJSONSchema(schema: Schema): Schema {
  const { nullable, exclusiveMinimum, exclusiveMaximum, example, ...rest } = schema;
  if ([nullable, exclusiveMinimum, exclusiveMaximum, example].every((one) => one === undefined)) return schema;
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

/** Writes the parts of one document: what they have in common comes together in `components`. */
export class Writer31 {
  readonly #components = new Components('#/components/schemas/', asJSONSchema);
  readonly #responses = new Map<string, object>();

  get components(): { readonly responses: object; readonly schemas: Readonly<Record<string, unknown>> } {
    return { responses: sorted(this.#responses), schemas: this.#components.schemas };
  }

  paths(operations: readonly Operation[]): object {
    return byPath(operations, (operation) => this.#operation(operation));
  }

  #operation(operation: Operation): object {
    const { operationId, tag, summary, deprecated, security, parameters, body, answers, refusals } = operation;
    const refused = [...refusals].map(([status, { name, answer }]) => {
      if (!this.#responses.has(name)) this.#responses.set(name, this.#response(answer));
      return [String(status), { $ref: `#/components/responses/${name}` }] as const;
    });
    return {
      operationId,
      tags: [tag],
      summary,
      ...(deprecated === true ? { deprecated } : {}),
      ...(security === undefined ? {} : { security }),
      ...(parameters.length === 0
        ? {}
        : { parameters: parameters.map((one) => ({ ...one, schema: this.#components.write(one.schema) })) }),
      ...(body === undefined ? {} : { requestBody: { ...body, content: this.#content(body.content) } }),
      responses: {
        ...Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, this.#response(answer)])),
        ...Object.fromEntries(refused),
      },
      ...operation.extensions,
    };
  }

  #response({ description, content, headers }: Answer): object {
    return {
      description,
      ...(headers === undefined
        ? {}
        : {
            headers: Object.fromEntries(
              Object.entries(headers).map(([name, what]) => [name, { description: what, schema: { type: 'string' } }]),
            ),
          }),
      ...(content === undefined ? {} : { content: this.#content(content) }),
    };
  }

  #content(content: Content): object {
    return Object.fromEntries(
      Object.entries(content).map(([type, schema]) => [type, { schema: this.#components.write(schema) }]),
    );
  }
}

export function openapi31({ title, description, version, tags, operations }: Description, issuer: string): object {
  const writer = new Writer31();
  const paths = writer.paths(operations);
  const { security, securitySchemes } = security31(issuer);
  return {
    openapi: '3.1.0',
    info: { title, description, version, license },
    servers: [{ url: '/' }],
    security,
    tags,
    paths,
    components: { securitySchemes, ...writer.components },
  };
}
