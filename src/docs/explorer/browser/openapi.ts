/** Reads descriptions in OpenAPI 3.1 from /swagger. The content of custom resource descriptions is not trusted. */

export type ShownSchema = Readonly<Record<string, unknown>>;

export interface ShownParameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly description: string;
  readonly required: boolean;
  readonly schema: ShownSchema;
  readonly examples: readonly ShownExample[];
}

export interface ShownExample {
  /** Summary or name of the example; '' if it is the only example. */
  readonly title: string;
  readonly value: unknown;
}

/** A body in one media type. */
export interface ShownContent {
  readonly type: string;
  readonly schema: ShownSchema;
  readonly examples: readonly ShownExample[];
}

export interface ShownResponse {
  readonly status: string;
  readonly description: string;
  readonly headers: readonly (readonly [name: string, description: string])[];
  readonly content: readonly ShownContent[];
}

export interface ShownOperation {
  readonly id: string;
  /** HTTP method in upper case. */
  readonly method: string;
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  readonly isDeprecated: boolean;
  /** Credentials that a caller sends. */
  readonly credentials: 'token' | 'client' | 'none';
  readonly parameters: readonly ShownParameter[];
  readonly body: { readonly isRequired: boolean; readonly content: readonly ShownContent[] } | undefined;
  readonly responses: readonly ShownResponse[];
  readonly schemas: SchemaReader;
}

export interface ShownTag {
  readonly name: string;
  readonly description: string;
  /** True if the tag is in the group that is collapsed and shown last. */
  readonly isOther: boolean;
}

export interface ShownDescription {
  readonly title: string;
  readonly version: string;
  readonly description: string;
  /** Tags that have only deprecated operations come last. */
  readonly tags: readonly ShownTag[];
  readonly operations: readonly ShownOperation[];
}

const methods = new Set(['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']);

export const isObject = (value: unknown): value is ShownSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const objectOf = (value: unknown): ShownSchema => (isObject(value) ? value : {});
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
/** Reads only own properties, because a description may have a property called `constructor`. */
const member = (of: unknown, name: string): unknown => (isObject(of) && Object.hasOwn(of, name) ? of[name] : undefined);

/** Resolves references between schemas (`$ref`). */
export class SchemaReader {
  readonly #document: unknown;

  constructor(document: unknown) {
    this.#document = document;
  }

  /** Returns the target of a reference, or {} if it is missing or circular. */
  resolve(value: unknown): ShownSchema {
    let at = objectOf(value);
    for (let steps = 0; steps < 32; steps += 1) {
      const ref = at['$ref'];
      if (typeof ref !== 'string') return at;
      // The fragment of a reference is a JSON Pointer (RFC 6901).
      const names = ref.split('/').slice(1);
      at = objectOf(
        names.reduce<unknown>(
          (of, name) => member(of, name.replaceAll('~1', '/').replaceAll('~0', '~')),
          this.#document,
        ),
      );
    }
    return {};
  }

  /** Returns the name of the target of a reference, or '' if the schema is not a reference. */
  nameOf(schema: ShownSchema): string {
    return textOf(schema['$ref']).split('/').at(-1) ?? '';
  }
}

export function read(document: unknown): ShownDescription {
  const { info, tags, paths, security, 'x-tagGroups': groups } = objectOf(document);
  const schemas = new SchemaReader(document);
  const operations = Object.entries(objectOf(paths)).flatMap(([path, item]) =>
    Object.entries(objectOf(item))
      .filter(([method]) => methods.has(method))
      .map(([method, operation]) => operationOf(objectOf(operation), { path, method, security, schemas })),
  );
  const { title, version, description } = objectOf(info);
  const others = listOf(
    listOf(groups)
      .map(objectOf)
      .find(({ name }) => name === 'Other')?.['tags'],
  );
  return {
    title: textOf(title),
    version: textOf(version),
    description: textOf(description),
    tags: listOf(tags)
      .map(objectOf)
      .map(({ name, description: about }) => ({
        name: textOf(name),
        description: textOf(about),
        isOther: others.includes(name),
      })),
    operations,
  };
}

interface OperationContext {
  readonly path: string;
  readonly method: string;
  /** Default security requirement of the description. */
  readonly security: unknown;
  readonly schemas: SchemaReader;
}

function operationOf(operation: ShownSchema, { path, method, security, schemas }: OperationContext): ShownOperation {
  const { operationId, tags, summary, description, deprecated, parameters, requestBody, responses } = operation;
  const body = schemas.resolve(requestBody);
  return {
    id: textOf(operationId),
    method: method.toUpperCase(),
    path,
    tag: textOf(listOf(tags)[0]),
    summary: textOf(summary),
    description: textOf(description),
    isDeprecated: deprecated === true,
    credentials: credentialsOf(operation['security'] ?? security),
    parameters: listOf(parameters)
      .map((one) => schemas.resolve(one))
      .map((one) => ({
        name: textOf(one['name']),
        in: one['in'] as ShownParameter['in'],
        description: textOf(one['description']),
        required: one['required'] === true,
        schema: objectOf(one['schema']),
        examples: examplesOf(one, schemas),
      })),
    body:
      requestBody === undefined
        ? undefined
        : { isRequired: body['required'] === true, content: contentOf(body['content'], schemas) },
    responses: Object.entries(objectOf(responses)).map(([status, response]) =>
      responseOf(status, schemas.resolve(response), schemas),
    ),
    schemas,
  };
}

function credentialsOf(security: unknown): ShownOperation['credentials'] {
  const names = new Set(listOf(security).flatMap((one) => Object.keys(objectOf(one))));
  if (names.has('bearer')) return 'token';
  return names.has('client') ? 'client' : 'none';
}

/** Reads `example` or `examples` of a parameter or a media type. External examples are omitted. */
function examplesOf({ example, examples }: ShownSchema, schemas: SchemaReader): readonly ShownExample[] {
  if (example !== undefined) return [{ title: '', value: example }];
  const all = Object.entries(objectOf(examples)).map(([name, one]) => [name, schemas.resolve(one)] as const);
  const named = all.filter(([, one]) => Object.hasOwn(one, 'value'));
  return named.map(([name, { summary, value }]) => ({
    title: named.length === 1 ? '' : textOf(summary) || name,
    value,
  }));
}

const contentOf = (content: unknown, schemas: SchemaReader): readonly ShownContent[] =>
  Object.entries(objectOf(content)).map(([type, one]) => ({
    type,
    schema: objectOf(objectOf(one)['schema']),
    examples: examplesOf(objectOf(one), schemas),
  }));

const responseOf = (
  status: string,
  { description, headers, content }: ShownSchema,
  schemas: SchemaReader,
): ShownResponse => ({
  status,
  description: textOf(description),
  headers: Object.entries(objectOf(headers)).map(
    ([name, header]) => [name, textOf(objectOf(header)['description'])] as const,
  ),
  content: contentOf(content, schemas),
});
