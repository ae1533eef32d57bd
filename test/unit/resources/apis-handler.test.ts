import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { parse } from 'yaml';
import { apisRoutes } from '../../../src/resources/routes.ts';
import type { Gap } from '../../../src/cluster/cache/history.ts';
import type { Route } from '../../../src/http/route.ts';
import { KubeError } from '../../../src/cluster/client/kube-error.ts';
import { call, FakeAuthorizer, fakeResource, get, node, refused, type FakeResource } from '../../labs/resources.ts';

const path = '/apis/resources.platform.io/v1alpha3/nodes';
let resource: FakeResource;
let authorizer: FakeAuthorizer;
let routes: Route[];
beforeEach(() => {
  resource = fakeResource();
  authorizer = new FakeAuthorizer();
  routes = apisRoutes({ authorizer, resources: [resource] });
  resource.store.replace(
    ['a', 'b', 'c', 'd', 'e'].map((name, index) =>
      node(name, { labels: { odd: String(index % 2) }, resourceVersion: index + 1, unschedulable: name === 'c' }),
    ),
    10,
  );
});
afterEach(() => {
  jest.useRealTimers();
});

const names = async (query: string): Promise<string> => {
  const { items } = (await get(routes, `${path}?${query}`)).body;
  return items.map(({ metadata: { name, resourceVersion } }) => `${name}@${resourceVersion}`).join(' ');
};

describe('a list of the aggregated API', () => {
  test('a list of the aggregated API has the apiVersion of this server, no selfLink, and ends with a newline', async () => {
    const { text, body, headers } = await get(routes, `${path}?fieldSelector=metadata.name%3Da`);
    expect(text.endsWith('}\n')).toBe(true);
    expect(body).toEqual({
      kind: 'NodeList',
      apiVersion: 'resources.platform.io/v1alpha3',
      metadata: { resourceVersion: '10' },
      items: [
        {
          kind: 'Node',
          apiVersion: 'resources.platform.io/v1alpha3',
          metadata: {
            name: 'a',
            uid: 'uid-a',
            resourceVersion: '1',
            creationTimestamp: '2023-11-14T22:13:20Z',
            labels: { odd: '0' },
          },
          spec: { unschedulable: false },
          status: {},
        },
      ],
    });
    expect(headers['content-type']).toBe('application/json');
  });

  test('a list of the aggregated API is indented for browsers', async () => {
    const { text, body } = await get(routes, path, { headers: { 'user-agent': 'curl/8' } });
    expect(text).toBe(`${JSON.stringify(body, null, 2)}\n`);
  });

  test('a list of the aggregated API with limit and continue is returned in chunks of one snapshot', async () => {
    const first = (await get(routes, `${path}?limit=2`)).body;
    expect(first.metadata).toMatchObject({ resourceVersion: '10', remainingItemCount: 3 });
    resource.store.apply('DELETED', node('c', { resourceVersion: 11 }));
    resource.store.apply('MODIFIED', node('d', { resourceVersion: 12 }));
    resource.store.apply('ADDED', node('aa', { resourceVersion: 13 }));
    const second = (await get(routes, `${path}?limit=1&continue=${first.metadata['continue']}`)).body;
    expect(second.items.map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`)).toEqual(['c@3']);
    expect(second.metadata).toMatchObject({ resourceVersion: '10', remainingItemCount: 2 });
    const third = (await get(routes, `${path}?limit=2&continue=${second.metadata['continue']}`)).body;
    expect(third.items.map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`)).toEqual(['d@4', 'e@5']);
    expect(third.metadata).toEqual({ resourceVersion: '10' });
    expect(await names('')).toBe('a@1 aa@13 b@2 d@12 e@5');
  });

  test('a list of the aggregated API with a selector omits remainingItemCount', async () => {
    const { metadata } = (await get(routes, `${path}?limit=1&labelSelector=odd%3D1`)).body;
    expect(Object.keys(metadata)).toEqual(['resourceVersion', 'continue']);
    const last = (await get(routes, `${path}?limit=1&labelSelector=odd%3D1&continue=${metadata['continue']}`)).body;
    expect(last.items.map((item) => item.metadata.name)).toEqual(['d']);
    expect(last.metadata).toEqual({ resourceVersion: '10' });
  });

  test('a list of the aggregated API whose snapshot has expired gets 410 with a token to continue at the current version', async () => {
    const { metadata } = (await get(routes, `${path}?limit=2`)).body;
    for (let version = 11; version < 10_100; version += 1)
      resource.store.apply('MODIFIED', node('a', { resourceVersion: version }));
    const error = (await refused(routes, `${path}?limit=2&continue=${metadata['continue']}`)).toStatus();
    expect(error).toMatchObject({ code: 410, reason: 'Expired' });
    expect(error.message).toContain('The provided continue parameter is too old to display a consistent list result.');
    const rest = (await get(routes, `${path}?limit=2&continue=${error.metadata.continue}`)).body;
    expect(rest.items.map((item) => item.metadata.name)).toEqual(['c', 'd']);
    expect(rest.metadata).toMatchObject({ resourceVersion: '10099' });
  });

  test.each([
    ['labelSelector=odd%3D1', 'b@2 d@4'],
    ['labelSelector=odd%3D1&fieldSelector=metadata.name!%3Db', 'd@4'],
    ['fieldSelector=spec.unschedulable%3Dtrue', 'c@3'],
    ['fieldSelector=spec.unschedulable%3Dfalse&limit=1', 'a@1'],
    ['resourceVersion=0&limit=2', 'a@1 b@2 c@3 d@4 e@5'],
    ['resourceVersion=10', 'a@1 b@2 c@3 d@4 e@5'],
    ['resourceVersion=9&resourceVersionMatch=NotOlderThan', 'a@1 b@2 c@3 d@4 e@5'],
    ['resourceVersion=10&resourceVersionMatch=Exact&limit=1', 'a@1'],
    ['limit=0', 'a@1 b@2 c@3 d@4 e@5'],
    ['limit=-1', 'a@1 b@2 c@3 d@4 e@5'],
    ['unknown=parameter', 'a@1 b@2 c@3 d@4 e@5'],
    ['watch=false', 'a@1 b@2 c@3 d@4 e@5'],
  ])('a list of the aggregated API with ?%s has the objects %s', async (query, expected) => {
    expect(await names(query)).toBe(expected);
  });

  test('a list of the aggregated API without a resourceVersion is returned after the cluster has confirmed that the cache is current', async () => {
    await names('resourceVersion=0');
    await names('resourceVersion=5');
    expect(resource.confirmations).toEqual([]);
    await names('');
    await names('limit=1');
    expect(resource.confirmations).toEqual(['list', 'list']);
  });

  test('a list of the aggregated API includes changes that arrive while the cluster confirms the cache', async () => {
    resource.onConfirm = () => resource.store.apply('DELETED', node('e', { resourceVersion: 11 }));
    expect(await names('')).toBe('a@1 b@2 c@3 d@4');
  });

  test('a list of the aggregated API gets 503 when the cluster cannot confirm the cache', async () => {
    resource.onConfirm = () => {
      throw new KubeError(0, { message: 'unreachable' });
    };
    expect(await refused(routes, path)).toMatchObject({ code: 503 });
  });

  test('a list of the aggregated API returns the objects at an earlier resourceVersion while this version is cached', async () => {
    resource.store.apply('DELETED', node('a', { resourceVersion: 11 }));
    resource.store.apply('MODIFIED', node('b', { resourceVersion: 12 }));
    expect(await names('resourceVersion=10&resourceVersionMatch=Exact')).toBe('a@1 b@2 c@3 d@4 e@5');
    expect(await names('resourceVersion=11&resourceVersionMatch=Exact')).toBe('b@2 c@3 d@4 e@5');
    expect(await names('resourceVersion=11&limit=1')).toBe('b@2');
    expect(await refused(routes, `${path}?resourceVersion=9&resourceVersionMatch=Exact`)).toMatchObject({
      code: 410,
      reason: 'Expired',
    });
  });

  test.each([
    `limit=2&continue=${token({ v: 'meta.k8s.io/v1', rv: 7, start: 'd' })}`,
    'resourceVersion=7&resourceVersionMatch=Exact&fieldSelector=metadata.name!%3Da',
    'resourceVersion=7&limit=4',
  ])(
    'a list of the aggregated API with ?%s returns the objects at a resourceVersion before the cached history if nothing changed between that version and the start of the history',
    async (query) => {
      const recalled: number[] = [];
      resource.onRecall = async (resourceVersion) => {
        recalled.push(resourceVersion);
        resource.store.history.recall(resource.store.history.gapAt(7) as Gap, { floor: 0, since: 7 });
      };
      resource.store.apply('DELETED', node('d', { resourceVersion: 11 }));
      expect(await names(query)).toContain('d@4');
      expect(await names(query)).toContain('d@4');
      expect(recalled).toEqual([7]);
      // A list that accepts a newer version does not read an earlier one.
      await names('resourceVersion=5');
      expect(recalled).toEqual([7]);
    },
  );

  test('a list of the aggregated API stops waiting for the cluster when its caller disconnects', async () => {
    resource.onRecall = (_, signal) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve());
      });
    const { abort, done, response } = call(routes, `${path}?resourceVersion=7&resourceVersionMatch=Exact`);
    const failure = done.catch((error: unknown) => error);
    await new Promise((resolve) => setImmediate(resolve));
    abort();
    expect(await failure).toMatchObject({ name: 'AbortError' });
    expect(response.headersSent).toBe(false);
  });

  test('a list of the aggregated API waits for a future resourceVersion', async () => {
    const waiting = names('resourceVersion=12');
    setTimeout(() => resource.store.bookmark(12), 20);
    expect(await waiting).toBe('a@1 b@2 c@3 d@4 e@5');
  });

  test('a list of the aggregated API gets 504 when the requested resourceVersion does not arrive', async () => {
    jest.useFakeTimers();
    const refusal = refused(routes, `${path}?resourceVersion=99`);
    await jest.advanceTimersByTimeAsync(3000);
    const error = (await refusal).toStatus();
    expect(error).toMatchObject({
      code: 504,
      reason: 'Timeout',
      message: 'Timeout: Too large resource version: 99, current: 10',
      details: {
        causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
        retryAfterSeconds: 1,
      },
    });
  });

  test.each([
    ['labelSelector=a%20b', 400, "unable to parse requirement: found 'b'"],
    ['fieldSelector=spec.podCIDR%3Dx', 400, 'field label not supported: spec.podCIDR'],
    ['fieldSelector=x', 400, "invalid selector: 'x'"],
    ['resourceVersion=abc', 400, 'invalid resource version: "abc"'],
    ['resourceVersion=-1', 400, 'invalid resource version: "-1"'],
    ['limit=x', 400, 'limit: "x" is not a 64-bit integer'],
    ['continue=!', 400, 'invalid continue token: '],
    ['continue=e30', 400, 'invalid continue token: '],
    [`continue=${token({ v: 'v2', rv: 1, start: 'a' })}`, 400, 'does not recognize this encoded version'],
    [`continue=${token({ v: 'meta.k8s.io/v1', rv: 0, start: 'a' })}`, 400, 'incorrect encoded start resourceVersion'],
    [`continue=${token({ v: 'meta.k8s.io/v1', rv: 1, start: '' })}`, 400, 'encoded start key empty'],
    [`continue=${token({ v: 'meta.k8s.io/v1', rv: 1, start: '../a' })}`, 400, 'continue key is not valid: ../a'],
    ['resourceVersion=5&continue=!', 400, 'invalid continue token: '],
    [
      `resourceVersion=5&continue=${token({ v: 'meta.k8s.io/v1', rv: 10, start: 'a' })}`,
      400,
      'specifying resource version is not allowed when using continue',
    ],
    ['resourceVersionMatch=Exact', 422, 'resourceVersionMatch is forbidden unless resourceVersion is provided'],
    ['resourceVersion=0&resourceVersionMatch=Exact', 422, 'is forbidden for resourceVersion "0"'],
    ['resourceVersion=1&resourceVersionMatch=Best', 422, 'Unsupported value: "Best"'],
    ['resourceVersion=1&resourceVersionMatch=Exact&continue=x', 422, 'is forbidden when continue is provided'],
    ['sendInitialEvents=true', 422, 'sendInitialEvents is forbidden for list'],
  ])('a list of the aggregated API with ?%s gets %i', async (query, code, message) => {
    const error = await refused(routes, `${path}?${query}`);
    expect(error.code).toBe(code);
    expect(error.message).toContain(message);
    expect(error.details?.kind).toBe(code === 422 ? 'ListOptions' : undefined);
  });

  test("a list of the aggregated API gets 503 with Retry-After when kube-apiserver rejects the server's own credential", async () => {
    resource.onConfirm = () => {
      throw new KubeError(403, { reason: 'Forbidden' });
    };
    expect(await refused(routes, path)).toMatchObject({ code: 503, headers: { 'Retry-After': '1' } });
  });

  test('a list of the aggregated API gets 403 without the right to list the core resource', async () => {
    authorizer.allowed = false;
    expect(await refused(routes, path)).toMatchObject({ code: 403 });
    expect(authorizer.reviews).toEqual([{ verb: 'list', group: '', resource: 'nodes', namespace: '', name: '' }]);
  });
});

function token(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

describe('a single object of the aggregated API', () => {
  test('a single object of the aggregated API is returned after the cluster has confirmed that the object is current', async () => {
    const { body, text } = await get(routes, `${path}/b`);
    expect(body).toMatchObject({ apiVersion: 'resources.platform.io/v1alpha3', metadata: { name: 'b' } });
    expect(text.endsWith('}\n')).toBe(true);
    await get(routes, `${path}/b?resourceVersion=0`);
    await get(routes, `${path}/b?resourceVersion=7`);
    expect(resource.confirmations).toEqual(['b']);
  });

  test('a single object of the aggregated API that does not exist gets 404 in the API group of this server', async () => {
    expect((await refused(routes, `${path}/x`)).toStatus()).toMatchObject({
      code: 404,
      message: 'nodes.resources.platform.io "x" not found',
      details: { name: 'x', group: 'resources.platform.io', kind: 'nodes' },
    });
  });
});

const as = (kind: string, version = 'v1', type = 'application/json'): { headers: { accept: string } } => ({
  headers: { accept: `${type};as=${kind};v=${version};g=meta.k8s.io` },
});

describe('the Accept header', () => {
  test('the Accept header selects a table with the columns of kube-apiserver', async () => {
    const { body, headers } = await get(routes, `${path}?limit=2`, as('Table'));
    expect(headers['content-type']).toBe('application/json');
    expect(body).toMatchObject({
      kind: 'Table',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { resourceVersion: '10', remainingItemCount: 3 },
    });
    const columns = body['columnDefinitions'] as { name: string; priority: number }[];
    expect(columns.map(({ name, priority }) => `${name} ${priority}`)).toEqual([
      'Name 0',
      'Status 0',
      'Roles 0',
      'Age 0',
      'Version 0',
      'Internal-IP 1',
      'External-IP 1',
      'OS-Image 1',
      'Kernel-Version 1',
      'Container-Runtime 1',
    ]);
    const rows = body['rows'] as { cells: string[]; object: object }[];
    expect(rows.map(({ cells }) => cells.slice(0, 3))).toEqual([
      ['a', 'Unknown', '<none>'],
      ['b', 'Unknown', '<none>'],
    ]);
    expect(rows[0]?.object).toMatchObject({
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { name: 'a', labels: { odd: '0' } },
    });
    expect(rows[0]?.object).not.toHaveProperty('spec');
  });

  test.each([
    ['None', []],
    ['Metadata', ['kind', 'apiVersion', 'metadata']],
    ['', ['kind', 'apiVersion', 'metadata']],
    ['Object', ['kind', 'apiVersion', 'metadata', 'spec', 'status']],
  ])('the Accept header selects a table with includeObject=%s', async (include, keys) => {
    const { body } = await get(routes, `${path}/a?includeObject=${include}`, as('Table', 'v1beta1'));
    const [row] = body['rows'] as { object: object | null }[];
    expect(body['apiVersion']).toBe('meta.k8s.io/v1beta1');
    expect(Object.keys(row?.object ?? {})).toEqual(keys);
  });

  test('the Accept header for a table with an unknown includeObject gets 400', async () => {
    expect(await refused(routes, `${path}?includeObject=All`, as('Table'))).toMatchObject({ code: 400 });
  });

  test('the Accept header selects only metadata', async () => {
    const list = (await get(routes, `${path}?limit=2`, as('PartialObjectMetadataList'))).body;
    expect(list).toMatchObject({ kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1' });
    expect(list.items.map((item) => Object.keys(item))).toEqual([
      ['kind', 'apiVersion', 'metadata'],
      ['kind', 'apiVersion', 'metadata'],
    ]);
    const one = (await get(routes, `${path}/a`, as('PartialObjectMetadata'))).body;
    expect(one).toMatchObject({ kind: 'PartialObjectMetadata', metadata: { name: 'a' } });
    expect(one.metadata).not.toHaveProperty('selfLink');
  });

  test('a list gets 406 if the Accept header requests the metadata of a single object, and vice versa', async () => {
    expect(await refused(routes, path, as('PartialObjectMetadata'))).toMatchObject({ code: 406 });
    expect(await refused(routes, `${path}/a`, as('PartialObjectMetadataList'))).toMatchObject({ code: 406 });
  });

  test.each([
    'application/vnd.kubernetes.protobuf,application/json',
    'application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json',
    'application/json;as=Strange;v=v1;g=meta.k8s.io, */*',
    'application/json;stream=watch',
  ])('the Accept header %s selects whole objects', async (accept) => {
    expect((await get(routes, path, { headers: { accept } })).body['kind']).toBe('NodeList');
  });

  test('the second clause of the Accept header of a metadata informer selects metadata', async () => {
    const clause = 'as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';
    const accept = `application/vnd.kubernetes.protobuf;${clause},application/json;${clause},application/json`;
    expect((await get(routes, path, { headers: { accept } })).body['kind']).toBe('PartialObjectMetadataList');
  });

  test('the Accept header for YAML selects the same objects in YAML', async () => {
    const json = await get(routes, path);
    const list = await get(routes, path, { headers: { accept: 'application/yaml' } });
    expect(list.headers['content-type']).toBe('application/yaml');
    expect(parse(list.text)).toEqual(json.body);
  });

  test.each(['application/vnd.kubernetes.protobuf', 'text/html', 'application/json;as=Table;v=v2;g=meta.k8s.io'])(
    'the Accept header %s gets 406',
    async (accept) => {
      expect((await refused(routes, path, { headers: { accept } })).toStatus()).toMatchObject({
        code: 406,
        reason: 'NotAcceptable',
        message: 'only the following media types are accepted: application/json, application/yaml',
      });
    },
  );
});

test.each(['application/yaml', 'application/json;stream=other', 'application/vnd.kubernetes.protobuf;stream=watch'])(
  'a watch of the aggregated API that accepts only %s gets 406',
  async (accept) => {
    expect(await refused(routes, `${path}?watch=true`, { headers: { accept } })).toMatchObject({
      code: 406,
      message: 'only the following media types are accepted: application/json',
    });
  },
);

test('a list of the aggregated API gets 429 with Retry-After while the cache is incomplete', async () => {
  jest.useFakeTimers();
  resource.synced = false;
  const refusal = refused(routes, path);
  await jest.advanceTimersByTimeAsync(10_000);
  expect(await refusal).toMatchObject({ code: 429, reason: 'TooManyRequests', headers: { 'Retry-After': '1' } });
});
