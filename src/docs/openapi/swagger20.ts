/** Writes API descriptions in Swagger 2.0. */
import type { BodyDescription, ContentDescription, ParameterDescription } from '../../http/route.ts';
import type { Example } from './examples.ts';
import type { JSONSchema } from './json-schema.ts';
import { Components } from './components.ts';
import { headOf, type DocumentDescription, type DocumentHead, type OperationDescription } from './operation.ts';
import { merged, type Properties } from './cluster-schemas.ts';
import { security20 } from './security.ts';
import { Writer } from './writer.ts';

const form = 'application/x-www-form-urlencoded';

/** Removes keywords that Swagger 2.0 does not have. A nullable value is described as any value. */
function asSwagger(schema: JSONSchema): JSONSchema {
  const { nullable, not: _not, oneOf: _oneOf, anyOf, ...rest } = schema;
  if (nullable === true) return rest['description'] === undefined ? {} : { description: rest['description'] };
  const areObjects = Array.isArray(anyOf) && anyOf.every((one: JSONSchema) => one['properties'] !== undefined);
  // Alternatives in a schema with `properties` only constrain those properties.
  return areObjects && rest['properties'] === undefined ? merged(schema) : rest;
}

/** Writes the schema keywords into the parameter itself. Array parameters are repeated. */
const parameterOf = ({ schema, ...parameter }: ParameterDescription<JSONSchema>): object => ({
  ...parameter,
  ...(schema as object),
  ...(schema['type'] === 'array' ? { collectionFormat: 'multi' } : {}),
});

export class Writer20 extends Writer {
  constructor() {
    super(new Components('#/definitions/', asSwagger), '#/responses/');
  }

  protected override request({ parameters, body, responses, errors }: OperationDescription): object {
    const all = [...Object.values(responses), ...[...errors.values()].map(({ response }) => response)];
    const produces = new Set(all.flatMap(({ content = {} }) => Object.keys(content)));
    const every = [...parameters.map(parameterOf), ...(body === undefined ? [] : this.#body(body))];
    return {
      ...(body === undefined ? {} : { consumes: Object.keys(body.content) }),
      produces: [...produces],
      ...(every.length === 0 ? {} : { parameters: every }),
    };
  }

  protected override header(description: string): object {
    return { description, type: 'string' };
  }

  /** Writes the schema of a response, which is the same for all media types. */
  protected override content(content: ContentDescription<JSONSchema> = {}, example?: Example['response']): object {
    const [schema] = Object.values(content);
    return {
      ...(schema === undefined ? {} : { schema: this.schemas.write(schema) }),
      ...(example?.type === undefined ? {} : { examples: { [example.type]: example.body } }),
    };
  }

  #body({ required, content }: BodyDescription<JSONSchema>): object[] {
    const fields = content[form];
    if (fields === undefined) {
      const schemas = new Set(Object.values(content).map((one) => JSON.stringify(this.schemas.write(one))));
      const [schema = '{}', other] = schemas;
      // If the schema depends on the media type, which Swagger 2.0 cannot express, the description accepts any body.
      return [
        { name: 'body', in: 'body', required, schema: other === undefined ? (JSON.parse(schema) as object) : {} },
      ];
    }
    const requiredFields = new Set((fields['required'] ?? []) as readonly string[]);
    return Object.entries(fields['properties'] as Properties).map(([name, property]) => ({
      name,
      in: 'formData',
      required: required && requiredFields.has(name),
      ...(property as object),
    }));
  }
}

/** Returns the document without paths, responses and definitions. */
export const head20 = ({ info, ...tags }: DocumentHead, issuer: string): object => ({
  swagger: '2.0',
  info,
  ...security20(issuer),
  ...tags,
});

export function swagger20(description: DocumentDescription, issuer: string): object {
  const writer = new Writer20();
  const paths = writer.paths(description.operations);
  const { responses, schemas: definitions } = writer.components;
  return { ...head20(headOf(description), issuer), paths, responses, definitions };
}
