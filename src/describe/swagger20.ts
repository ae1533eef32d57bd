/** Swagger 2.0. */
import type { Answer, Body, Parameter } from '../http/description.ts';
import type { Schema } from '../http/schema.ts';
import { Components } from './components.ts';
import { byPath, license, sorted, type Description, type Operation } from './operation.ts';
import { merged, type Properties } from './schemas.ts';
import { security20 } from './security.ts';

const form = 'application/x-www-form-urlencoded';

/** 2.0 has neither null nor alternatives. */
function asSwagger(schema: Schema): Schema {
  const { nullable: _nullable, not: _not, oneOf: _oneOf, anyOf, ...rest } = schema;
  const areObjects = Array.isArray(anyOf) && anyOf.every((one: Schema) => one['properties'] !== undefined);
  return areObjects ? merged(schema) : rest;
}

/** A parameter's type stands beside its name, and one that may be repeated says how. */
const parameterOf = ({ schema, ...parameter }: Parameter): object => ({
  ...parameter,
  ...(schema as object),
  ...(schema['type'] === 'array' ? { collectionFormat: 'multi' } : {}),
});

/** Writes the parts of one document: what they have in common comes together. */
export class Writer20 {
  readonly #definitions = new Components('#/definitions/', asSwagger);
  readonly #responses = new Map<string, object>();

  get components(): { readonly responses: object; readonly schemas: Readonly<Record<string, unknown>> } {
    return { responses: sorted(this.#responses), schemas: this.#definitions.schemas };
  }

  paths(operations: readonly Operation[]): object {
    return byPath(operations, (operation) => this.#operation(operation));
  }

  #operation(operation: Operation): object {
    const { operationId, tag, summary, deprecated, security, parameters, body, answers, refusals } = operation;
    const refused = [...refusals].map(([status, { name, answer }]) => {
      if (!this.#responses.has(name)) this.#responses.set(name, this.#response(answer));
      return [String(status), { $ref: `#/responses/${name}` }] as const;
    });
    const all = [...Object.values(answers), ...[...refusals.values()].map(({ answer }) => answer)];
    const produces = new Set(all.flatMap(({ content = {} }) => Object.keys(content)));
    const every = [...parameters.map(parameterOf), ...(body === undefined ? [] : this.#body(body))];
    return {
      operationId,
      tags: [tag],
      summary,
      ...(deprecated === true ? { deprecated } : {}),
      ...(security === undefined ? {} : { security }),
      ...(body === undefined ? {} : { consumes: Object.keys(body.content) }),
      produces: [...produces],
      ...(every.length === 0 ? {} : { parameters: every }),
      responses: {
        ...Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, this.#response(answer)])),
        ...Object.fromEntries(refused),
      },
      ...operation.extensions,
    };
  }

  #response({ description, content = {}, headers }: Answer): object {
    const [schema] = Object.values(content);
    return {
      description,
      ...(headers === undefined
        ? {}
        : {
            headers: Object.fromEntries(
              Object.entries(headers).map(([name, what]) => [name, { description: what, type: 'string' }]),
            ),
          }),
      ...(schema === undefined ? {} : { schema: this.#definitions.write(schema) }),
    };
  }

  #body({ required, content }: Body): object[] {
    const fields = content[form];
    if (fields === undefined) {
      const schemas = new Set(Object.values(content).map((one) => JSON.stringify(this.#definitions.write(one))));
      const [schema = '{}', another] = schemas;
      // Which one of several it is, says the media type.
      return [
        { name: 'body', in: 'body', required, schema: another === undefined ? (JSON.parse(schema) as object) : {} },
      ];
    }
    const must = new Set((fields['required'] ?? []) as readonly string[]);
    return Object.entries(fields['properties'] as Properties).map(([name, property]) => ({
      name,
      in: 'formData',
      required: required && must.has(name),
      ...(property as object),
    }));
  }
}

export function swagger20({ title, description, version, tags, operations }: Description, issuer: string): object {
  const writer = new Writer20();
  const paths = writer.paths(operations);
  const { responses, schemas: definitions } = writer.components;
  const info = { title, description, version, license };
  return { swagger: '2.0', info, ...security20(issuer), tags, paths, responses, definitions };
}
