import { beforeEach, describe, expect, jest, afterEach, test } from '@jest/globals';
import { openapi3, swagger2 } from '../../../src/docs/openapi/group-documents.ts';
import { openapiRoutes } from '../../../src/docs/aggregated.ts';
import { authenticated } from '../../../src/http/access.ts';
import { json, type Route } from '../../../src/http/route.ts';
import { apisRoutes } from '../../../src/resources/routes.ts';
import { count, integer, described, eitherOf, named, object, text } from '../../../src/http/schema.ts';
import { createLogger } from '../../../src/runtime/logger.ts';
import { call, FakeAuthorizer, fakeResource, get } from '../../labs/resources.ts';

const ref = (name: string): object => ({ $ref: `#/components/schemas/${name}` });
const core = 'io.k8s.api.core.v1';
const meta = 'io.k8s.apimachinery.pkg.apis.meta.v1';
const gvk = (kind: string): object => ({ 'x-kubernetes-group-version-kind': [{ group: '', version: 'v1', kind }] });
const cluster = {
  components: {
    schemas: {
      [`${core}.Node`]: {
        description: 'A node',
        type: 'object',
        properties: {
          metadata: { default: {}, description: 'Its metadata', allOf: [ref(`${meta}.ObjectMeta`)] },
          status: { default: {}, allOf: [ref(`${core}.NodeStatus`)] },
        },
        ...gvk('Node'),
      },
      [`${core}.NodeList`]: {
        type: 'object',
        properties: { items: { type: 'array', items: { default: {}, allOf: [ref(`${core}.Node`)] } } },
        ...gvk('NodeList'),
      },
      [`${core}.NodeStatus`]: {
        type: 'object',
        properties: {
          capacity: { type: 'object', additionalProperties: ref('io.k8s.apimachinery.pkg.api.resource.Quantity') },
          phase: { type: 'string', default: 'Running' },
        },
      },
      [`${meta}.ObjectMeta`]: { type: 'object', properties: { name: { type: 'string' } } },
      'io.k8s.apimachinery.pkg.api.resource.Quantity': { oneOf: [{ type: 'string' }, { type: 'number' }] },
      [`${core}.Pod`]: { type: 'object' },
    },
  },
};

const responseSchema = described('What was found', eitherOf(object({ a: text }), object({ b: named('Count', count) })));

let responses: (() => Promise<unknown>)[];
let requested: string[];
let routes: Route[];
beforeEach(() => {
  responses = [];
  requested = [];
  const client = {
    json: <T>(path: string): Promise<T> => {
      requested.push(path);
      return (responses.shift() ?? (() => Promise.resolve(cluster)))() as Promise<T>;
    },
  };
  const apis = apisRoutes({ authorizer: new FakeAuthorizer(), resources: [fakeResource()] });
  const served = { group: 'resources.platform.io', version: 'v1alpha3', resource: 'nodes', kind: 'Node' };
  routes = openapiRoutes({
    client,
    log: createLogger({ silent: true }),
    version: '3.0.0',
    routes: apis,
    resources: [{ ...served, source: `${core}.Node` }],
    kinds: [
      {
        group: 'logging.platform.io',
        version: 'v1',
        resource: 'logs',
        kind: 'LogQuery',
        schema: named('Query', responseSchema),
      },
    ],
  });
});
afterEach(() => {
  jest.useRealTimers();
});

const own = 'io.platform.resources.v1alpha3';
const groupPath = '/openapi/v3/apis/resources.platform.io/v1alpha3';

async function document(path: string): Promise<Record<string, Record<string, Record<string, unknown>>>> {
  return (await get(routes, path)).body as unknown as Record<string, Record<string, Record<string, unknown>>>;
}

describe('the OpenAPI 3 document', () => {
  test('the OpenAPI 3 document contains the schemas of the cluster under names of this server', async () => {
    const { components } = await document(groupPath);
    expect(components?.['schemas']).toEqual({
      [`${own}.Node`]: {
        description: 'A node',
        type: 'object',
        properties: {
          metadata: { default: {}, description: 'Its metadata', allOf: [ref(`${own}.ObjectMeta`)] },
          status: { default: {}, allOf: [ref(`${own}.NodeStatus`)] },
        },
        'x-kubernetes-group-version-kind': [{ group: 'resources.platform.io', version: 'v1alpha3', kind: 'Node' }],
      },
      [`${own}.NodeList`]: {
        type: 'object',
        properties: { items: { type: 'array', items: { default: {}, allOf: [ref(`${own}.Node`)] } } },
        'x-kubernetes-group-version-kind': [{ group: 'resources.platform.io', version: 'v1alpha3', kind: 'NodeList' }],
      },
      [`${own}.NodeStatus`]: {
        type: 'object',
        properties: {
          capacity: { type: 'object', additionalProperties: ref(`${own}.Quantity`) },
          phase: { type: 'string', default: 'Running' },
        },
      },
      [`${own}.ObjectMeta`]: { type: 'object', properties: { name: { type: 'string' } } },
      [`${own}.Quantity`]: { oneOf: [{ type: 'string' }, { type: 'number' }] },
    });
    expect(requested).toEqual(['/openapi/v3/api/v1']);
  });

  test('the OpenAPI 3 document contains the properties that kubectl explain requires for each path', async () => {
    const { paths } = await document(groupPath);
    const base = '/apis/resources.platform.io/v1alpha3';
    expect(
      Object.entries(paths ?? {}).map(([path, item]) => {
        const operation = item['get'] as Record<string, unknown>;
        return [path, operation['operationId'], operation['x-kubernetes-action']];
      }),
    ).toEqual([
      [base, 'getApisResourcesPlatformIoV1alpha3', undefined],
      [`${base}/nodes`, 'listResourcesPlatformIoV1alpha3Node', 'list'],
      [`${base}/nodes/{name}`, 'readResourcesPlatformIoV1alpha3Node', 'get'],
      [`${base}/watch/nodes`, 'watchResourcesPlatformIoV1alpha3NodeList', 'watchlist'],
      [`${base}/watch/nodes/{name}`, 'watchResourcesPlatformIoV1alpha3Node', 'watch'],
    ]);
    expect(paths?.[`${base}/nodes`]?.['get']).toMatchObject({
      'x-kubernetes-group-version-kind': { group: 'resources.platform.io', version: 'v1alpha3', kind: 'Node' },
      responses: { 200: { content: { 'application/json': { schema: ref(`${own}.NodeList`) } } } },
    });
  });

  test('the OpenAPI 3 document lists the same query parameters for a watch of one object as for a watch of a collection', async () => {
    const { paths } = await document(groupPath);
    const namesOf = (path: string): string[] => {
      const operation = paths?.[path]?.['get'] as { parameters: { in: string; name: string }[] } | undefined;
      return (operation?.parameters ?? []).filter((parameter) => parameter.in === 'query').map(({ name }) => name);
    };
    const base = '/apis/resources.platform.io/v1alpha3';
    expect(namesOf(`${base}/watch/nodes/{name}`)).toEqual(namesOf(`${base}/watch/nodes`));
    expect(namesOf(`${base}/nodes/{name}`)).toEqual(['resourceVersion', 'pretty', 'timeout']);
  });

  test('the OpenAPI 3 document and the Swagger 2 document both contain the response schema of a route', () => {
    const response = { type: 'object', properties: { total: { type: 'integer', nullable: true } } };
    const schema = object({ total: integer.nullable() });
    const route: Route = {
      method: 'get',
      path: '/kapis/sum',
      summary: 'A sum',
      access: authenticated,
      responses: json(schema),
      handler: () => undefined,
    };
    const description = { title: '', version: '', routes: [route], resources: [], schemas: {} };
    expect(openapi3(description)).toMatchObject({
      paths: {
        '/kapis/sum': { get: { responses: { 200: { content: { 'application/json': { schema: response } } } } } },
      },
    });
    expect(swagger2(description)).toMatchObject({
      paths: {
        '/kapis/sum': {
          get: { responses: { 200: { schema: { type: 'object', properties: { total: { type: 'integer' } } } } } },
        },
      },
    });
  });

  test('the OpenAPI 3 document is available at the URL with its hash in the index, and can be cached forever', async () => {
    const { paths } = await document('/openapi/v3');
    const url = String(paths?.['apis/resources.platform.io/v1alpha3']?.['serverRelativeURL']);
    expect(url).toMatch(/^\/openapi\/v3\/apis\/resources\.platform\.io\/v1alpha3\?hash=[0-9A-F]{128}$/);
    const { headers } = await get(routes, url);
    expect(headers).toMatchObject({
      'cache-control': 'public, immutable',
      vary: 'Accept',
      etag: `"${url.split('=')[1]}"`,
      'content-type': 'application/json',
    });
    expect(new Date(headers['expires'] ?? '').getTime()).toBeGreaterThan(Date.now() + 364 * 24 * 3_600_000);
    expect((await get(routes, `${groupPath}?hash=OLD`)).headers['cache-control']).toBeUndefined();
    const again = call(routes, groupPath, { headers: { 'if-none-match': headers['etag'] ?? '' } });
    await again.done;
    expect(again.response.statusCode).toBe(304);
    expect((await get(routes, groupPath)).headers['cache-control']).toBeUndefined();
  });
});

test('the OpenAPI documents describe a kind that only this server has, so that kubectl explain finds the kind', async () => {
  const wanted = {
    'io.platform.logging.v1.LogQuery': {
      description: 'What was found',
      type: 'object',
      properties: { a: { type: 'string' }, b: { type: 'integer', minimum: 0 } },
      additionalProperties: false,
      'x-kubernetes-group-version-kind': [{ group: 'logging.platform.io', version: 'v1', kind: 'LogQuery' }],
    },
  };
  const { components } = await document('/openapi/v3/apis/logging.platform.io/v1');
  expect(components?.['schemas']).toEqual(wanted);
  expect((await document('/openapi/v2'))['definitions']).toMatchObject(wanted);
});

describe('the Swagger 2 document', () => {
  test('the Swagger 2 document has the same contents as the OpenAPI 3 document, in its own format', async () => {
    const { definitions, paths } = await document('/openapi/v2');
    expect(JSON.stringify([definitions, paths])).not.toMatch(/#\/components|allOf|oneOf/);
    expect(definitions?.[`${own}.Node`]?.['properties']).toEqual({
      metadata: { description: 'Its metadata', $ref: `#/definitions/${own}.ObjectMeta` },
      status: { $ref: `#/definitions/${own}.NodeStatus` },
    });
    expect(definitions?.[`${own}.Quantity`]).toEqual({ type: 'string' });
    expect(definitions?.[`${own}.NodeStatus`]?.['properties']).toMatchObject({
      phase: { type: 'string', default: 'Running' },
    });
    const list = paths?.['/apis/resources.platform.io/v1alpha3/nodes']?.['get'] as { parameters: object[] };
    expect(list.parameters).toContainEqual({
      name: 'limit',
      in: 'query',
      description: 'Maximum number of items per chunk',
      type: 'integer',
      minimum: 0,
      uniqueItems: true,
    });
  });

  test.each(['/openapi/v2', '/openapi/v3', groupPath])(
    'a request for the document %s gets 406 without a body if the client accepts only protobuf',
    async (path) => {
      const accept = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
      const { response, done } = call(routes, path, { headers: { accept } });
      await done;
      expect(response.statusCode).toBe(406);
      expect(response.text).toBe('');
    },
  );
});

describe('when the schemas of the cluster are unavailable', () => {
  test('a kind has a generic description while the schemas of the cluster are unavailable', async () => {
    jest.useFakeTimers({ now: 0, doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
    responses = [() => Promise.reject(new Error('unreachable'))];
    const loose = await document(groupPath);
    expect(loose['components']?.['schemas']?.[`${own}.Node`]).toMatchObject({
      type: 'object',
      'x-kubernetes-preserve-unknown-fields': true,
      'x-kubernetes-group-version-kind': [{ kind: 'Node' }],
    });
    await document(groupPath);
    expect(requested).toHaveLength(1);
    jest.setSystemTime(10_000);
    await document(groupPath);
    await new Promise((resolve) => setImmediate(resolve));
    expect(requested).toHaveLength(2);
    const full = await document(groupPath);
    expect(full['components']?.['schemas']?.[`${own}.Node`]).toHaveProperty('description', 'A node');
    jest.setSystemTime(10_000 + 599_000);
    await document(groupPath);
    expect(requested).toHaveLength(2);
  });

  test('a kind without a schema in the cluster has a generic description', async () => {
    responses = [() => Promise.resolve({ components: { schemas: {} } })];
    const { components } = await document(groupPath);
    expect(Object.keys(components?.['schemas'] ?? {})).toEqual([`${own}.Node`, `${own}.NodeList`]);
  });
});
