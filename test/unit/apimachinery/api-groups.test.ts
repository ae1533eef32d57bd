import { describe, expect, test } from '@jest/globals';
import { componentResources } from '../../../src/resources/components.ts';
import { apisRoutes, kapisRoutes } from '../../../src/resources/routes.ts';
import { call, emptyCluster, FakeAuthorizer, fakeResource, get, refused } from '../../labs/resources.ts';

const otherGroups = [
  {
    group: 'logging.platform.io',
    version: 'v1alpha2',
    resources: [{ name: 'logs', singularName: 'log', namespaced: false, kind: 'LogQuery', verbs: ['get'] }],
  },
];
const deps = { authorizer: new FakeAuthorizer(), resources: [fakeResource()], otherGroups, ...emptyCluster };
const version = { groupVersion: 'resources.platform.io/v1alpha3', version: 'v1alpha3' };

describe.each([
  { prefix: '/apis', routes: apisRoutes(deps), others: [] },
  { prefix: '/kapis', routes: kapisRoutes(deps), others: componentResources },
])('discovery below $prefix', ({ prefix, routes, others }) => {
  test('discovery lists the groups, their versions and their resources', async () => {
    const list = await get(routes, prefix);
    expect(list.text.endsWith('}\n')).toBe(true);
    expect(list.body).toMatchObject({
      kind: 'APIGroupList',
      apiVersion: 'v1',
      groups: [
        { name: 'resources.platform.io', versions: [version], preferredVersion: version },
        { name: 'logging.platform.io' },
      ],
    });
    expect((await get(routes, `${prefix}/resources.platform.io`)).body).toEqual({
      kind: 'APIGroup',
      apiVersion: 'v1',
      name: 'resources.platform.io',
      versions: [version],
      preferredVersion: version,
    });
    expect((await get(routes, `${prefix}/resources.platform.io/v1alpha3`)).body).toEqual({
      kind: 'APIResourceList',
      apiVersion: 'v1',
      groupVersion: 'resources.platform.io/v1alpha3',
      resources: [
        {
          name: 'nodes',
          singularName: 'node',
          namespaced: false,
          kind: 'Node',
          verbs: ['get', 'list', 'watch'],
          categories: ['platform'],
        },
        ...others,
      ],
    });
  });

  test.each(['v2', 'v2beta1'])('discovery supports the aggregated format %s', async (v) => {
    const accept = `application/json;g=apidiscovery.k8s.io;v=${v};as=APIGroupDiscoveryList;profile=nopeer,application/json`;
    const { body, headers } = await get(routes, prefix, { headers: { accept } });
    expect(headers).toMatchObject({
      'content-type': `application/json;g=apidiscovery.k8s.io;v=${v};as=APIGroupDiscoveryList`,
      vary: 'Accept',
      'cache-control': 'public',
    });
    expect(headers['etag']).toMatch(/^"[0-9A-F]{128}"$/);
    expect(body).toMatchObject({
      kind: 'APIGroupDiscoveryList',
      apiVersion: `apidiscovery.k8s.io/${v}`,
      items: [
        {
          metadata: { name: 'resources.platform.io', creationTimestamp: null },
          versions: [
            {
              version: 'v1alpha3',
              freshness: 'Current',
              resources: [
                {
                  resource: 'nodes',
                  responseKind: { group: 'resources.platform.io', version: 'v1alpha3', kind: 'Node' },
                  scope: 'Cluster',
                  singularResource: 'node',
                  verbs: ['get', 'list', 'watch'],
                  categories: ['platform'],
                },
                ...others.map(({ name }) => ({ resource: name })),
              ],
            },
          ],
        },
        { metadata: { name: 'logging.platform.io' } },
      ],
    });
    const again = call(routes, prefix, { headers: { accept, 'if-none-match': headers['etag'] ?? '' } });
    await again.done;
    expect(again.response.statusCode).toBe(304);
    expect(again.response.text).toBe('');
  });

  test('discovery returns the unaggregated format if an Accept clause does not match', async () => {
    const accept = 'application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList, application/json;q=0.9';
    expect((await get(routes, prefix, { headers: { accept } })).body['kind']).toBe('APIGroupList');
  });

  test('discovery returns 406 for an unsupported Accept header, so that old aggregators fall back to the unaggregated format', async () => {
    const accept = 'application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList';
    expect(await refused(routes, prefix, { headers: { accept } })).toMatchObject({ code: 406 });
    expect(
      await refused(routes, `${prefix}/resources.platform.io`, {
        headers: { accept: 'application/vnd.kubernetes.protobuf' },
      }),
    ).toMatchObject({ code: 406 });
  });
});
