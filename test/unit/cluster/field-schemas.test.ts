import { describe, expect, test } from '@jest/globals';
import { Readable } from 'node:stream';
import { FieldSchemas, fieldsOf } from '../../../src/cluster/field-schemas.ts';
import { createLogger } from '../../../src/runtime/logger.ts';

const log = createLogger({ silent: true });
const kind = { group: 'a.io', version: 'v1', kind: 'Thing', revision: '' };
const described = {
  type: 'object',
  properties: { spec: { type: 'object', properties: { size: { type: 'integer' } } } },
  'x-kubernetes-group-version-kind': [{ group: 'a.io', version: 'v1', kind: 'Thing' }],
};

/** A client that counts its requests and responds with this status and body. */
function clientOf(status: number, body: object | Buffer) {
  const paths: string[] = [];
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
  const stream = async (path: string) => {
    paths.push(path);
    return { status, headers: {}, body: Readable.from([bytes]) };
  };
  return { paths, stream };
}

describe('the schema of a kind', () => {
  test('the schema of a kind is read once for concurrent requests, and then returned at once', async () => {
    const client = clientOf(200, { components: { schemas: { Other: { type: 'object' }, Thing: described } } });
    const schemas = new FieldSchemas(client);
    const [one, other] = await Promise.all([schemas.find(kind, log), schemas.find(kind, log)]);
    expect([...(one?.members.keys() ?? [])]).toEqual(['spec']);
    expect(other).toBe(one);
    expect(schemas.find(kind, log)).toBe(one);
    expect(client.paths).toEqual(['/openapi/v3/apis/a.io/v1']);
  });

  test('the schema of a kind is read again for another revision of its CustomResourceDefinition', async () => {
    const client = clientOf(200, { components: { schemas: { Thing: described } } });
    const schemas = new FieldSchemas(client);
    await schemas.find({ ...kind, revision: 'uid/1' }, log);
    await schemas.find({ ...kind, revision: 'uid/2' }, log);
    expect(client.paths).toHaveLength(2);
  });

  test.each<[string, number, object | Buffer]>([
    ['missing', 404, {}],
    ['not accessible', 403, { kind: 'Status', message: 'no' }],
    ['not JSON', 200, Buffer.from('<html>')],
    ['incomplete', 200, { components: { schemas: { Thing: { type: 'object' } } } }],
    ['too large', 200, Buffer.alloc(9 * 1024 * 1024, ' ')],
  ])(
    'the schema of a kind is unknown if the document is %s, and is not read again at once',
    async (_, status, body) => {
      const client = clientOf(status, body);
      const schemas = new FieldSchemas(client);
      expect(await schemas.find(kind, log)).toBeUndefined();
      expect(await schemas.find(kind, log)).toBeUndefined();
      expect(client.paths).toHaveLength(1);
    },
  );

  test('the schema of a kind is reported as unknown if the cluster does not respond within a second', async () => {
    const schemas = new FieldSchemas({ stream: () => new Promise(() => undefined) });
    const started = performance.now();
    expect(await schemas.find(kind, log)).toBeUndefined();
    expect(performance.now() - started).toBeLessThan(5_000);
  });
});

test.each([
  ['allows', { type: 'object' }],
  ['allows', {}],
  ['allows', { type: 'object', properties: {}, 'x-kubernetes-preserve-unknown-fields': true }],
  ['allows', { type: 'object', properties: {}, additionalProperties: true }],
  ['allows', { type: 'object', properties: {}, 'x-kubernetes-embedded-resource': true }],
  ['does not allow', { type: 'object', properties: {} }],
  ['does not allow', { type: 'string' }],
  ['does not allow', { 'x-kubernetes-int-or-string': true }],
  ['does not allow', { oneOf: [{ type: 'string' }, { type: 'number' }] }],
])('a schema %s unknown fields: %j', (outcome, schema) => {
  expect(fieldsOf({}, schema).fields.isOpen).toBe(outcome === 'allows');
});

test('a schema can refer to itself, directly and with a default', () => {
  const schemas = {
    Props: {
      type: 'object',
      properties: {
        not: { $ref: '#/components/schemas/Props' },
        properties: {
          type: 'object',
          additionalProperties: { allOf: [{ $ref: '#/components/schemas/Props' }], default: {} },
        },
      },
    },
  };
  const { fields, count } = fieldsOf(schemas, { $ref: '#/components/schemas/Props' });
  expect(fields.members.get('not')).toBe(fields);
  expect(fields.members.get('properties')?.additional).toBe(fields);
  expect(count).toBe(2);
});
