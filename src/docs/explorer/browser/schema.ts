/** Describes a schema in words, and makes an example that it accepts. */
import { isObject, textOf, type ShownSchema, type SchemaReader } from './openapi.ts';
import { shortened } from './text.ts';

const typesOf = ({ type }: ShownSchema): readonly string[] =>
  (Array.isArray(type) ? type : [type]).filter((one) => typeof one === 'string');

const choices = ['allOf', 'anyOf', 'oneOf'] as const;

/** Returns the parts of `allOf`, `anyOf` and `oneOf`. */
export function partsOf(
  schema: ShownSchema,
): { readonly how: (typeof choices)[number]; readonly of: readonly ShownSchema[] }[] {
  return choices.flatMap((how) => {
    const of = schema[how];
    return Array.isArray(of) ? [{ how, of: of.filter(isObject) }] : [];
  });
}

export const propertiesOf = ({ properties }: ShownSchema): readonly (readonly [string, ShownSchema])[] =>
  isObject(properties)
    ? Object.entries(properties).filter((one): one is [string, ShownSchema] => isObject(one[1]))
    : [];

export const requiredOf = ({ required }: ShownSchema): ReadonlySet<unknown> =>
  new Set(Array.isArray(required) ? required : []);

/** Returns the schema of the items of a list or of the values of a map, which may be a reference. */
export function innerOf(given: ShownSchema, schemas: SchemaReader): ShownSchema | undefined {
  const schema = schemas.resolve(given);
  if (isObject(schema['items'])) return schema['items'];
  return isObject(schema['additionalProperties']) ? schema['additionalProperties'] : undefined;
}

/** Maximum depth: schemas may be recursive. */
const deepest = 8;

/** Formats the type, such as `integer` or `list of User`. */
export function typeOf(given: ShownSchema, schemas: SchemaReader, depth = 0): string {
  const name = schemas.nameOf(given);
  const schema = schemas.resolve(given);
  const inner = depth > deepest ? undefined : innerOf(schema, schemas);
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

/** Maximum characters of a value, and values of an enumeration. */
const longestValue = 200;
const mostValues = 50;

const plain = (value: unknown): string =>
  shortened(typeof value === 'string' ? value : JSON.stringify(value), longestValue);

function listed(values: readonly unknown[]): string {
  const left = values.length - mostValues;
  return values.slice(0, mostValues).map(plain).join(', ') + (left > 0 ? ` and ${left} more` : '');
}

/** Returns the words of a pattern that accepts only these, or nothing. */
export const wordsIn = (pattern: unknown): readonly string[] | undefined =>
  /^\^\(\?:(\w+(?:\|\w+)*)\)\?\$$/.exec(textOf(pattern))?.[1]?.split('|');

/** Formats the constraints beside the type. */
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
const most = 8;

/** Returns a value that the schema accepts, as far as the schema tells. */
export function exampleOf(given: ShownSchema, schemas: SchemaReader, depth = 0): unknown {
  const schema = schemas.resolve(given);
  const { const: only, examples, example, default: byDefault, enum: values } = schema;
  const ready = [only, (examples as unknown[] | undefined)?.[0], example, isObject(byDefault) ? undefined : byDefault];
  const found = ready.find((one) => one !== undefined);
  if (found !== undefined) return found;
  if (Array.isArray(values)) return values[0] as unknown;
  const parts = partsOf(schema);
  const [first] = parts;
  if (first !== undefined && propertiesOf(schema).length === 0) {
    const of = (first.how === 'allOf' ? first.of : first.of.slice(0, 1)).map((one) => exampleOf(one, schemas, depth));
    return of.length > 0 && of.every(isObject) ? Object.assign({}, ...of) : of[0];
  }
  switch (typesOf(schema)[0] ?? (isObject(schema['properties']) ? 'object' : '')) {
    case 'object':
      return depth > deepest ? {} : objectExample(schema, schemas, depth);
    case 'array': {
      const inner = innerOf(schema, schemas);
      return inner === undefined || depth > deepest ? [] : [exampleOf(inner, schemas, depth + 1)];
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
  const least = Math.min(Number(minLength) || 1, 1_000);
  return word.repeat(Math.ceil(least / word.length)).slice(0, typeof maxLength === 'number' ? maxLength : undefined);
}

interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** Takes the required properties, else some optional ones; of a Kubernetes object its kind, a name and `spec`. */
function objectExample(schema: ShownSchema, schemas: SchemaReader, depth: number): unknown {
  const all = propertiesOf(schema);
  const names = new Set(all.map(([name]) => name));
  const isKubernetes = ['apiVersion', 'kind', 'metadata'].every((name) => names.has(name));
  const required = requiredOf(schema);
  const chosen = all.filter(([name]) => required.has(name) || (isKubernetes && name === 'spec'));
  const optional = all.filter(([name, one]) => name !== 'status' && isEasy(schemas.resolve(one)));
  const flat = optional.filter(([, one]) => isFlat(one, schemas));
  const shown = chosen.length > 0 ? chosen : (flat.length > 0 ? flat : optional).slice(0, most);
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

/** Optional properties are left out if a value cannot be guessed. */
const isEasy = ({ readOnly, pattern, default: byDefault, examples }: ShownSchema): boolean =>
  readOnly !== true && (pattern === undefined || byDefault !== undefined || examples !== undefined);

/** Neither an object nor a list of objects. */
function isFlat(schema: ShownSchema, schemas: SchemaReader): boolean {
  const types = typesOf(schemas.resolve(schema));
  const inner = innerOf(schema, schemas);
  if (types.includes('array')) return inner !== undefined && isFlat(inner, schemas);
  return types.length > 0 && !types.includes('object');
}
