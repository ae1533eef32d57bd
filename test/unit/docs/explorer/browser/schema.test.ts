import { describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { readFileSync } from 'node:fs';
import { read, SchemaReader, type ShownSchema } from '../../../../../src/docs/explorer/browser/openapi.ts';
import { constraintsOf, exampleOf, typeOf, wordsIn } from '../../../../../src/docs/explorer/browser/schema.ts';

const none = new SchemaReader({});
const schemas = new SchemaReader({
  components: {
    schemas: {
      User: { type: 'object', properties: { name: { type: 'string' } } },
      'a/b~c': { type: 'integer' },
      List: { type: 'array', items: { $ref: '#/components/schemas/List' } },
      Circle: { $ref: '#/components/schemas/Circle' },
      Tree: { type: 'object', required: ['child'], properties: { child: { $ref: '#/components/schemas/Tree' } } },
    },
  },
});
const ref = (name: string): ShownSchema => ({ $ref: `#/components/schemas/${name}` });

describe('typeOf()', () => {
  test.each<[ShownSchema, string]>([
    [{ type: 'string' }, 'string'],
    [{ type: 'string', format: 'date-time' }, 'string (date-time)'],
    [{ type: ['string', 'null'] }, 'string or null'],
    [{ type: 'array', items: { type: 'integer' } }, 'list of integer'],
    [{ type: 'array' }, 'list'],
    [{ type: 'object' }, 'object'],
    [{ type: 'object', additionalProperties: { type: 'string' } }, 'map of string'],
    [{ type: 'object', additionalProperties: false }, 'object'],
    [{ 'x-kubernetes-int-or-string': true }, 'integer or string'],
    [ref('User'), 'User'],
    [{ type: 'array', items: ref('User') }, 'list of User'],
    [ref('a~1b~0c'), 'integer'],
    [ref('Circle'), 'Circle'],
    [ref('constructor'), 'constructor'],
    [{ $ref: '#/__proto__/toString' }, 'toString'],
    [ref('List'), `${'list of '.repeat(9)}list`],
    [{ type: 7, format: {} }, 'any value'],
    [{}, 'any value'],
  ])('typeOf() describes the schema %j as "%s"', (schema, words) => {
    expect(typeOf(schema, schemas)).toBe(words);
  });
});

describe('constraintsOf()', () => {
  test.each<[ShownSchema, string[]]>([
    [{ enum: ['a', 1, null] }, ['one of a, 1, null']],
    [{ minimum: 0, maximum: 9, default: 0 }, ['default 0', 'at least 0', 'at most 9']],
    [{ exclusiveMinimum: 0, multipleOf: 2 }, ['more than 0', 'a multiple of 2']],
    [{ minLength: 1, maxLength: 2, pattern: '^a' }, ['at least 1 characters', 'at most 2 characters', 'matches ^a']],
    [{ maxItems: 3, uniqueItems: true }, ['at most 3 items', 'unique items']],
    [{ default: false, readOnly: true }, ['default false', 'read only']],
    [{ default: { a: 1 } }, ['default {"a":1}']],
    [{ const: 'a' }, ['only a']],
    [{ type: 'string', description: 'x' }, []],
  ])('constraintsOf() lists the constraints of the schema %j', (schema, words) => {
    expect(constraintsOf(schema)).toEqual(words);
  });
});

test.each([
  ['^(?:NotOlderThan|Exact)?$', ['NotOlderThan', 'Exact']],
  ['^(?:All)?$', ['All']],
  ['^(?:a|b)$', undefined],
  ['^(?:a.|b)?$', undefined],
  [undefined, undefined],
])('wordsIn() returns the words of the pattern %s: %j', (pattern, words) => {
  expect(wordsIn(pattern)).toEqual(words);
});

test('constraintsOf() shortens long lists and values', () => {
  const values = Array.from({ length: 60 }, (_, at) => `v${at}`);
  expect(constraintsOf({ enum: values })).toEqual([`one of ${values.slice(0, 50).join(', ')} and 10 more`]);
  expect(constraintsOf({ pattern: 'x'.repeat(300) })).toEqual([`matches ${'x'.repeat(200)}…`]);
});

describe('exampleOf()', () => {
  test.each<[ShownSchema, unknown]>([
    [{ const: 5 }, 5],
    [{ examples: ['a', 'b'] }, 'a'],
    [{ type: 'string', default: 'd' }, 'd'],
    [{ type: 'string', enum: ['x', 'y'] }, 'x'],
    [{ type: 'integer', minimum: 3 }, 3],
    [{ type: 'string', minLength: 8 }, 'stringstring'],
    [{ type: 'string', maxLength: 3 }, 'str'],
    [{ type: ['null', 'string'] }, null],
    [{ type: 'array', items: { type: 'boolean' } }, [false]],
    [
      { type: 'object', required: ['a'], properties: { a: { type: 'string' }, b: { type: 'string' } } },
      { a: 'string' },
    ],
    [{ type: 'object', properties: { a: { type: 'integer' }, b: { type: 'object' } } }, { a: 0 }],
    [{ type: 'object', properties: { a: { type: 'string', readOnly: true }, status: {} } }, {}],
    [{ anyOf: [{ type: 'string' }, { type: 'integer' }] }, 'string'],
    [
      {
        allOf: [
          { type: 'object', required: ['a'], properties: { a: { type: 'integer' } } },
          { type: 'object', required: ['b'], properties: { b: { type: 'integer' } } },
        ],
      },
      { a: 0, b: 0 },
    ],
    [{ default: {}, type: 'object', properties: { a: { type: 'string' } } }, { a: 'string' }],
    [{}, {}],
  ])('exampleOf() returns an example for the schema %j', (schema, example) => {
    expect(exampleOf(schema, none)).toEqual(example);
  });

  test('exampleOf() gives a Kubernetes object its kind and a name', () => {
    const properties = {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      spec: { type: 'object', properties: { size: { type: 'integer' } } },
      status: { type: 'object', properties: { size: { type: 'integer' } } },
    };
    const kinds = [{ group: 'example.com', version: 'v1', kind: 'Wheel' }];
    expect(exampleOf({ type: 'object', properties, 'x-kubernetes-group-version-kind': kinds }, none)).toEqual({
      apiVersion: 'example.com/v1',
      kind: 'Wheel',
      metadata: { name: 'example' },
      spec: { size: 0 },
    });
  });

  test('exampleOf() terminates for a recursive schema', () => {
    expect(JSON.stringify(exampleOf(ref('Tree'), schemas)).length).toBeLessThan(200);
    expect(exampleOf(ref('Circle'), schemas)).toEqual({});
  });
});

describe.each(['platform.v3.json', 'custom-resources.v3.json'])('the OpenAPI document %s', (file) => {
  const document = JSON.parse(readFileSync(new URL(`../../../../../api/${file}`, import.meta.url), 'utf8')) as object;
  const { operations, tags } = read(document);

  test('every operation in the OpenAPI document has a tag, an ID and a summary', () => {
    const { paths } = document as { paths: Readonly<Record<string, object>> };
    expect(operations.length).toBe(Object.values(paths).flatMap((item) => Object.keys(item)).length);
    const names = new Set(tags.map(({ name }) => name));
    expect(operations.filter(({ tag, id, summary }) => !names.has(tag) || id === '' || summary === '')).toEqual([]);
  });

  test('the schema of every request body in the OpenAPI document accepts the generated example', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema({ $id: 'it', ...document });
    const wrong = operations.flatMap(({ id, body, schemas: of }) =>
      (body?.content ?? []).flatMap(({ type, schema }) => {
        const referring = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"it#/')) as object;
        const validate = ajv.compile(referring);
        // Empty form fields are not sent.
        return type.includes('form') || validate(exampleOf(schema, of)) ? [] : [[id, type, validate.errors]];
      }),
    );
    expect(wrong).toEqual([]);
    expect(operations.filter(({ body }) => body !== undefined).length).toBeGreaterThan(5);
  });
});
