import { describe, expect, test } from '@jest/globals';
import { Validator } from '@seriousme/openapi-schema-validator';
import { describeDefinition, documentOf, type DocumentForm } from '../../../../src/docs/openapi/custom-documents.ts';
import type { Definition } from '../../../../src/docs/openapi/custom-resource.ts';
import type { JSONSchema } from '../../../../src/docs/openapi/json-schema.ts';

const about = { version: '3.0.0', issuer: 'https://platform.example', maxBytes: Infinity };
const schema: JSONSchema = {
  type: 'object',
  properties: {
    apiVersion: { type: 'string' },
    kind: { type: 'string' },
    metadata: { type: 'object' },
    spec: {
      type: 'object',
      default: { nullable: true },
      properties: {
        // Properties whose names are keywords of JSON Schema.
        nullable: { type: 'boolean' },
        anyOf: { type: 'array', items: { type: 'string', nullable: true, enum: ['a'] } },
        properties: { type: 'object', additionalProperties: { type: 'integer', exclusiveMinimum: true, minimum: 1 } },
        port: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
        raw: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        one: { type: 'object', oneOf: [{ required: ['a'] }, { not: { required: ['b'] } }], example: { a: 1 } },
      },
    },
  },
};
const crontabs: Definition = {
  spec: {
    group: 'stable.example.com',
    names: { kind: 'CronTab', plural: 'crontabs' },
    scope: 'Namespaced',
    versions: [
      { name: 'v1', served: true, schema: { openAPIV3Schema: schema }, subresources: { status: {}, scale: {} } },
      { name: 'v1beta1', served: true, deprecated: true },
      { name: 'v1alpha1', served: false },
    ],
  },
};
const things: Definition = {
  spec: {
    group: 'example.org',
    names: { kind: 'Thing', listKind: 'ThingCollection', plural: 'things' },
    scope: 'Cluster',
    versions: [{ name: 'v1', served: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
};

const like = (group: string, kind: string): Definition => ({
  spec: { ...crontabs.spec, group, names: { kind, plural: `${kind.toLowerCase()}s` } },
});

type Operation = Readonly<Record<string, unknown>>;
interface Document {
  readonly info: { readonly description: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly definitions: Readonly<Record<string, JSONSchema>>;
  readonly components: { readonly schemas: Readonly<Record<string, JSONSchema>> };
}

const textOf = (form: DocumentForm, definitions: readonly Definition[], more: Partial<typeof about> = {}): string =>
  Buffer.concat(documentOf(form, definitions.map(describeDefinition), { ...about, ...more })).toString('utf8');
const made = (form: DocumentForm, ...definitions: readonly Definition[]): Document =>
  JSON.parse(textOf(form, definitions)) as Document;

describe.each(['v2', 'v3'] as const)('the OpenAPI %s document of custom resources', (form) => {
  test.each([
    ['no definitions', []],
    ['definitions with all features', [crontabs, things]],
  ])('the OpenAPI document of custom resources is valid for %s', async (_, definitions) => {
    const { valid, errors } = await new Validator().validate(made(form, ...definitions) as never);
    expect({ valid, errors }).toEqual({ valid: true, errors: undefined });
  });

  test('the OpenAPI document of custom resources has the paths of all served versions', () => {
    const lines = Object.entries(made(form, crontabs, things).paths).map(
      ([path, item]) => `${path} ${Object.keys(item).join()}`,
    );
    const base = '/apis/stable.example.com';
    const one = 'namespaces/{namespace}/crontabs';
    expect(lines).toEqual([
      `${base}/v1/crontabs get`,
      `${base}/v1/${one} get,post,delete`,
      `${base}/v1/${one}/{name} get,put,patch,delete`,
      `${base}/v1/${one}/{name}/status get,put,patch`,
      `${base}/v1/${one}/{name}/scale get,put,patch`,
      `${base}/v1beta1/crontabs get`,
      `${base}/v1beta1/${one} get,post,delete`,
      `${base}/v1beta1/${one}/{name} get,put,patch,delete`,
      '/apis/example.org/v1/things get,post,delete',
      '/apis/example.org/v1/things/{name} get,put,patch,delete',
    ]);
  });

  test('the OpenAPI document of custom resources has a unique ID for each operation', () => {
    const alike = [like('a.b', 'Cron'), like('a.b', 'CronStatus'), like('a-b', 'Cron'), like('a-b', 'CronStatus')];
    const { paths } = made(form, ...alike);
    const ids = Object.values(paths).flatMap((item) => Object.values(item).map(({ operationId }) => operationId));
    expect(ids.filter((id, at) => ids.indexOf(id) !== at)).toEqual([]);
    expect(ids).toEqual(expect.arrayContaining(['readABV1NamespacedCronStatus', 'readABV1NamespacedCronStatus_4']));
  });

  test('the OpenAPI document of custom resources omits resources beyond its maximum size, and reports the omission', () => {
    const [first] = [describeDefinition(crontabs)].map(({ fragments }) => fragments[form]);
    const maxBytes = (first?.paths.length ?? 0) + (first?.schemas.length ?? 0);
    const document = JSON.parse(textOf(form, [crontabs, things], { maxBytes })) as Document;
    expect(document.info.description).toContain(' Omitted because of the size of this document: 1.');
    expect(Object.keys(document.paths).filter((path) => path.includes('things'))).toEqual([]);
  });
});

/** Returns the schema of the spec, which must be a named schema so that generated clients have a type for it. */
const specOf = (schemas: Readonly<Record<string, JSONSchema>>): JSONSchema => {
  const { properties } = schemas['com.example.stable.v1.CronTab'] as { properties: { spec: JSONSchema } };
  expect(String(properties.spec['$ref'])).toMatch(/\/com\.example\.stable\.v1\.CronTab\.spec$/);
  return schemas['com.example.stable.v1.CronTab.spec'] ?? {};
};

test('a schema of a custom resource is converted to OpenAPI 3.1', () => {
  expect(specOf(made('v3', crontabs).components.schemas)).toEqual({
    type: 'object',
    default: { nullable: true },
    properties: {
      nullable: { type: 'boolean' },
      anyOf: { type: 'array', items: { type: ['string', 'null'], enum: ['a', null] } },
      properties: { type: 'object', additionalProperties: { type: 'integer', exclusiveMinimum: 1 } },
      port: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
      raw: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      one: { type: 'object', oneOf: [{ required: ['a'] }, { not: { required: ['b'] } }], examples: [{ a: 1 }] },
    },
  });
});

test('a schema of a custom resource is converted to Swagger 2.0', () => {
  expect(specOf(made('v2', crontabs).definitions)).toEqual({
    type: 'object',
    default: { nullable: true },
    properties: {
      nullable: { type: 'boolean' },
      anyOf: { type: 'array', items: {} },
      properties: { type: 'object', additionalProperties: { type: 'integer', exclusiveMinimum: true, minimum: 1 } },
      port: { 'x-kubernetes-int-or-string': true },
      raw: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      one: { type: 'object', example: { a: 1 } },
    },
  });
});

test('custom resources and their lists have the same schema names as in Kubernetes', () => {
  const names = Object.keys(made('v3', crontabs, things).components.schemas);
  expect(names).toEqual(
    expect.arrayContaining(['com.example.stable.v1.CronTabList', 'org.example.v1.ThingCollection', 'ObjectMeta']),
  );
});

test("alternatives of an object keep the object's properties in Swagger 2.0", () => {
  const properties = { a: { type: 'string' }, b: { type: 'string' }, c: { type: 'string' } };
  const anyOf = ['a', 'b'].map((name) => ({ properties: { [name]: { minLength: 1 } }, required: [name] }));
  const spec = { type: 'object', properties, anyOf };
  const versions = [
    { name: 'v1', served: true, schema: { openAPIV3Schema: { type: 'object', properties: { spec } } } },
  ];
  const { definitions } = made('v2', { spec: { ...things.spec, versions } });
  expect(definitions['org.example.v1.Thing.spec']).toEqual({ type: 'object', properties });
});

const ofKind = (kind: string): Definition => {
  const spec = { properties: { kind: { type: 'string', enum: [kind] } } };
  const versions = [{ name: 'v1', served: true, schema: { openAPIV3Schema: { properties: { spec } } } }];
  return { spec: { ...things.spec, versions } };
};
const kindIn = (schemas: Readonly<Record<string, JSONSchema>>): unknown =>
  (schemas['org.example.v1.Thing.spec'] as { properties: { kind: JSONSchema } }).properties.kind;

test('an enumeration with one value is a constant in OpenAPI 3.1, and stays an enumeration in Swagger 2.0', () => {
  expect(kindIn(made('v3', ofKind('A')).components.schemas)).toEqual({ type: 'string', const: 'A' });
  expect(kindIn(made('v2', ofKind('A')).definitions)).toEqual({ type: 'string', enum: ['A'] });
});
