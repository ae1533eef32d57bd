/** Reads a description in OpenAPI 3.1, as there are such at /swagger. What is in it of a cluster may be anything. */

export type ShownSchema = Readonly<Record<string, unknown>>;

export interface ShownParameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly description: string;
  readonly required: boolean;
  readonly schema: ShownSchema;
}

/** What is sent, or comes, in a media type. */
export interface ShownContent {
  readonly type: string;
  readonly schema: ShownSchema;
}

export interface ShownResponse {
  readonly status: string;
  readonly description: string;
  /** Each with what it says. */
  readonly headers: readonly (readonly [name: string, description: string])[];
  readonly content: readonly ShownContent[];
}

export interface ShownOperation {
  readonly id: string;
  /** In capitals. */
  readonly method: string;
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly isDeprecated: boolean;
  /** What a caller shows: a token, the secret of a client, or nothing. */
  readonly shows: 'token' | 'client' | 'nothing';
  readonly parameters: readonly ShownParameter[];
  readonly body: { readonly isRequired: boolean; readonly content: readonly ShownContent[] } | undefined;
  readonly answers: readonly ShownResponse[];
  readonly schemas: SchemaReader;
}

export interface ShownTag {
  readonly name: string;
  readonly description: string;
}

export interface ShownDescription {
  readonly title: string;
  readonly version: string;
  readonly description: string;
  /** Last those of which nothing is left. */
  readonly tags: readonly ShownTag[];
  readonly operations: readonly ShownOperation[];
}

const methods = new Set(['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']);

export const isObject = (value: unknown): value is ShownSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const objectOf = (value: unknown): ShownSchema => (isObject(value) ? value : {});
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
/** Its own member: a description may have one called `constructor`. */
const member = (of: unknown, name: string): unknown => (isObject(of) && Object.hasOwn(of, name) ? of[name] : undefined);

/** What `$ref` refers to. */
export class SchemaReader {
  readonly #document: unknown;

  constructor(document: unknown) {
    this.#document = document;
  }

  /** What a reference leads to; nothing where it leads nowhere, or in a circle. */
  resolve(value: unknown): ShownSchema {
    let at = objectOf(value);
    for (let steps = 0; steps < 32; steps += 1) {
      const ref = at['$ref'];
      if (typeof ref !== 'string') return at;
      // RFC 6901.
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

  /** What a reference calls what it refers to; '' of what is none. */
  nameOf(schema: ShownSchema): string {
    return textOf(schema['$ref']).split('/').at(-1) ?? '';
  }
}

export function read(document: unknown): ShownDescription {
  const { info, tags, paths, security } = objectOf(document);
  const schemas = new SchemaReader(document);
  const operations = Object.entries(objectOf(paths)).flatMap(([path, item]) =>
    Object.entries(objectOf(item))
      .filter(([method]) => methods.has(method))
      .map(([method, operation]) => operationOf(objectOf(operation), { path, method, security, schemas })),
  );
  const { title, version, description } = objectOf(info);
  const alive = new Set(operations.filter(({ isDeprecated }) => !isDeprecated).map(({ tag }) => tag));
  return {
    title: textOf(title),
    version: textOf(version),
    description: textOf(description),
    tags: listOf(tags)
      .map(objectOf)
      .map((tag) => ({ name: textOf(tag['name']), description: textOf(tag['description']) }))
      .toSorted((a, b) => Number(alive.has(b.name)) - Number(alive.has(a.name))),
    operations,
  };
}

interface Around {
  readonly path: string;
  readonly method: string;
  /** Where an operation says nothing else. */
  readonly security: unknown;
  readonly schemas: SchemaReader;
}

function operationOf(operation: ShownSchema, { path, method, security, schemas }: Around): ShownOperation {
  const { operationId, tags, summary, deprecated, parameters, requestBody, responses } = operation;
  const body = schemas.resolve(requestBody);
  return {
    id: textOf(operationId),
    method: method.toUpperCase(),
    path,
    tag: textOf(listOf(tags)[0]),
    summary: textOf(summary),
    isDeprecated: deprecated === true,
    shows: shownOf(operation['security'] ?? security),
    parameters: listOf(parameters)
      .map((one) => schemas.resolve(one))
      .map((one) => ({
        name: textOf(one['name']),
        in: one['in'] as ShownParameter['in'],
        description: textOf(one['description']),
        required: one['required'] === true,
        schema: objectOf(one['schema']),
      })),
    body:
      requestBody === undefined
        ? undefined
        : { isRequired: body['required'] === true, content: contentOf(body['content']) },
    answers: Object.entries(objectOf(responses)).map(([status, answer]) => answerOf(status, schemas.resolve(answer))),
    schemas,
  };
}

function shownOf(security: unknown): ShownOperation['shows'] {
  const names = new Set(listOf(security).flatMap((one) => Object.keys(objectOf(one))));
  if (names.has('bearer')) return 'token';
  return names.has('client') ? 'client' : 'nothing';
}

const contentOf = (content: unknown): readonly ShownContent[] =>
  Object.entries(objectOf(content)).map(([type, one]) => ({ type, schema: objectOf(objectOf(one)['schema']) }));

const answerOf = (status: string, { description, headers, content }: ShownSchema): ShownResponse => ({
  status,
  description: textOf(description),
  headers: Object.entries(objectOf(headers)).map(
    ([name, header]) => [name, textOf(objectOf(header)['description'])] as const,
  ),
  content: contentOf(content),
});
