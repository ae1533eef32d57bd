/** Describes a schema in words, and creates an example that it accepts. */
import { isObject, textOf, type ShownSchema, type SchemaReader } from './openapi.ts';
import { shortened } from './text.ts';

const typesOf = ({ type }: ShownSchema): readonly string[] =>
  (Array.isArray(type) ? type : [type]).filter((one) => typeof one === 'string');

const choices = ['allOf', 'anyOf', 'oneOf'] as const;

/** Returns the subschemas in `allOf`, `anyOf` and `oneOf`. */
export function partsOf(
  schema: ShownSchema,
): { readonly keyword: (typeof choices)[number]; readonly of: readonly ShownSchema[] }[] {
  return choices.flatMap((keyword) => {
    const of = schema[keyword];
    return Array.isArray(of) ? [{ keyword, of: of.filter(isObject) }] : [];
  });
}

export const propertiesOf = ({ properties }: ShownSchema): readonly (readonly [string, ShownSchema])[] =>
  isObject(properties)
    ? Object.entries(properties).filter((one): one is [string, ShownSchema] => isObject(one[1]))
    : [];

export const requiredOf = ({ required }: ShownSchema): ReadonlySet<unknown> =>
  new Set(Array.isArray(required) ? required : []);

/** Returns the schema of the items of a list or of the values of a map. The returned schema may be a reference. */
export function innerOf(given: ShownSchema, schemas: SchemaReader): ShownSchema | undefined {
  const schema = schemas.resolve(given);
  if (isObject(schema['items'])) return schema['items'];
  return isObject(schema['additionalProperties']) ? schema['additionalProperties'] : undefined;
}

/** Maximum depth; schemas may be recursive. */
const maxDepth = 8;

/** Formats the type, such as `integer` or `list of User`. */
export function typeOf(given: ShownSchema, schemas: SchemaReader, depth = 0): string {
  const name = schemas.nameOf(given);
  const schema = schemas.resolve(given);
  const inner = depth > maxDepth ? undefined : innerOf(schema, schemas);
  const words = typesOf(schema).map((type) => {
    if (type === 'array') return inner === undefined ? 'list' : `list of ${typeOf(inner, schemas, depth + 1)}`;
    if (type !== 'object') return schema['format'] === undefined ? type : `${type} (${textOf(schema['format'])})`;
    if (name !== '') return name;
    return propertiesOf(schema).length === 0 && inner !== undefined
      ? `map of ${typeOf(inner, schemas, depth + 1)}`
      : type;
  });
  if (schema['x-kubernetes-int-or-string'] === true) return 'integer or string';
  return words.join(' or ') || name || 'any value';
}

const phrases: readonly (readonly [word: string, phrase: (value: string) => string])[] = [
  ['default', (value) => `default ${value}`],
  ['minimum', (value) => `at least ${value}`],
  ['exclusiveMinimum', (value) => `more than ${value}`],
  ['maximum', (value) => `at most ${value}`],
  ['exclusiveMaximum', (value) => `less than ${value}`],
  ['multipleOf', (value) => `a multiple of ${value}`],
  ['minLength', (value) => `at least ${value} characters`],
  ['maxLength', (value) => `at most ${value} characters`],
  ['minItems', (value) => `at least ${value} items`],
  ['maxItems', (value) => `at most ${value} items`],
  ['minProperties', (value) => `at least ${value} members`],
  ['maxProperties', (value) => `at most ${value} members`],
  ['pattern', (value) => `matches ${value}`],
];

/** Maximum characters shown of a value, and values shown of an enumeration. */
const maxValueLength = 200;
const maxValues = 50;

const plain = (value: unknown): string =>
  shortened(typeof value === 'string' ? value : JSON.stringify(value), maxValueLength);

function listed(values: readonly unknown[]): string {
  const left = values.length - maxValues;
  return values.slice(0, maxValues).map(plain).join(', ') + (left > 0 ? ` and ${left} more` : '');
}

/** Returns the words of a pattern that accepts only certain words or an empty string. */
export const wordsIn = (pattern: unknown): readonly string[] | undefined =>
  /^\^\(\?:(\w+(?:\|\w+)*)\)\?\$$/.exec(textOf(pattern))?.[1]?.split('|');

/** Formats the constraints other than the type. */
export function constraintsOf(schema: ShownSchema): readonly string[] {
  const { enum: values, const: only } = schema;
  return [
    ...(only === undefined ? [] : [`only ${plain(only)}`]),
    ...(Array.isArray(values) ? [`one of ${listed(values)}`] : []),
    ...phrases.flatMap(([word, phrase]) => (schema[word] === undefined ? [] : [phrase(plain(schema[word]))])),
    ...(schema['uniqueItems'] === true ? ['unique items'] : []),
    ...(schema['readOnly'] === true ? ['read only'] : []),
  ];
}

const formats: Readonly<Record<string, string>> = {
  'date-time': '2026-01-31T12:00:00Z',
  date: '2026-01-31',
  uri: 'https://example.com/',
  email: 'user@example.com',
  byte: '',
};

/** Maximum number of optional properties in an example. */
const maxOptional = 8;

/** Returns a value that the schema should accept. Best effort: not all constraints are considered. */
export function exampleOf(given: ShownSchema, schemas: SchemaReader, depth = 0): unknown {
  const schema = schemas.resolve(given);
  const { const: only, examples, example, default: byDefault, enum: values } = schema;
  const candidates = [
    only,
    (examples as unknown[] | undefined)?.[0],
    example,
    isObject(byDefault) ? undefined : byDefault,
  ];
  const found = candidates.find((one) => one !== undefined);
  if (found !== undefined) return found;
  if (Array.isArray(values)) return values[0] as unknown;
  const parts = partsOf(schema);
  const [first] = parts;
  if (first !== undefined && propertiesOf(schema).length === 0) {
    const of = (first.keyword === 'allOf' ? first.of : first.of.slice(0, 1)).map((one) =>
      exampleOf(one, schemas, depth),
    );
    return of.length > 0 && of.every(isObject) ? Object.assign({}, ...of) : of[0];
  }
  switch (typesOf(schema)[0] ?? (isObject(schema['properties']) ? 'object' : '')) {
    case 'object':
      return depth > maxDepth ? {} : objectExample(schema, schemas, depth);
    case 'array': {
      const inner = innerOf(schema, schemas);
      return inner === undefined || depth > maxDepth ? [] : [exampleOf(inner, schemas, depth + 1)];
    }
    case 'integer':
    case 'number':
      return schema['minimum'] ?? 0;
    case 'boolean':
      return false;
    case 'null':
      return null;
    case 'string':
      return formats[textOf(schema['format'])] ?? someText(schema);
    default:
      return {};
  }
}

function someText({ minLength, maxLength }: ShownSchema): string {
  const word = 'string';
  const length = Math.min(Number(minLength) || 1, 1_000);
  return word.repeat(Math.ceil(length / word.length)).slice(0, typeof maxLength === 'number' ? maxLength : undefined);
}

interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/**
 * Includes the required properties, or else some optional ones. A Kubernetes object gets its kind, a name and `spec`.
 */
function objectExample(schema: ShownSchema, schemas: SchemaReader, depth: number): unknown {
  const all = propertiesOf(schema);
  const names = new Set(all.map(([name]) => name));
  const isKubernetes = ['apiVersion', 'kind', 'metadata'].every((name) => names.has(name));
  const required = requiredOf(schema);
  const chosen = all.filter(([name]) => required.has(name) || (isKubernetes && name === 'spec'));
  const optional = all.filter(([name, one]) => name !== 'status' && isGuessable(schemas.resolve(one)));
  const flat = optional.filter(([, one]) => isFlat(one, schemas));
  const shown = chosen.length > 0 ? chosen : (flat.length > 0 ? flat : optional).slice(0, maxOptional);
  const values = shown.map(([name, one]) => [name, exampleOf(one, schemas, depth + 1)] as const);
  if (!isKubernetes) return Object.fromEntries(values);
  const [{ group, version, kind } = { group: '', version: '', kind: '' }] = (schema[
    'x-kubernetes-group-version-kind'
  ] ?? []) as GroupVersionKind[];
  return {
    ...(kind === '' ? {} : { apiVersion: group === '' ? version : `${group}/${version}`, kind }),
    ...Object.fromEntries(values.filter(([name]) => kind === '' || (name !== 'apiVersion' && name !== 'kind'))),
    metadata: { name: 'example' },
  };
}

/**
 * Returns whether a plausible value of an optional property can be guessed. Examples omit all other optional
 * properties.
 */
const isGuessable = ({ readOnly, pattern, default: byDefault, examples }: ShownSchema): boolean =>
  readOnly !== true && (pattern === undefined || byDefault !== undefined || examples !== undefined);

/** Returns whether values are neither objects nor lists of objects. */
function isFlat(schema: ShownSchema, schemas: SchemaReader): boolean {
  const types = typesOf(schemas.resolve(schema));
  const inner = innerOf(schema, schemas);
  if (types.includes('array')) return inner !== undefined && isFlat(inner, schemas);
  return types.length > 0 && !types.includes('object');
}
