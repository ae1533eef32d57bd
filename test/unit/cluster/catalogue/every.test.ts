/** Routes for all resources of a cluster. The cluster is a fake with prepared responses. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Ajv } from 'ajv';
import { PassThrough, Readable } from 'node:stream';
import { parse } from 'yaml';
import { Catalogue } from '../../../../src/cluster/catalogue/catalogue.ts';
import { kinds, nodes } from '../../../../src/resources/kinds/index.ts';
import { jsonSchemaOf } from '../../../../src/docs/openapi/json-schema.ts';
import { kapisRoutes } from '../../../../src/resources/routes.ts';
import type { Route } from '../../../../src/http/route.ts';
import type { KubeRequest, KubeResponse } from '../../../../src/cluster/client/client.ts';
import type { DiscoveredResource } from '../../../../src/cluster/discovery.ts';
import { FieldSchemas } from '../../../../src/cluster/field-schemas.ts';
import type { KubeObject } from '../../../../src/cluster/client/kube-object.ts';
import { Topic } from '../../../../src/runtime/lifecycle.ts';
import { createLogger } from '../../../../src/runtime/logger.ts';
import { systemClock } from '../../../../src/runtime/time.ts';
import { settle, status } from '../../../labs/cluster-fakes.ts';
import { call, FakeAuthorizer, get, namespaceAccessOf, refused, type Call } from '../../../labs/resources.ts';

const base = '/kapis/resources.platform.io/v1alpha3';

const serves = (resource: string, kind: string, more: Partial<DiscoveredResource> = {}): DiscoveredResource => ({
  group: '',
  version: 'v1',
  resource,
  singular: kind.toLowerCase(),
  shortNames: [],
  kind,
  namespaced: true,
  verbs: ['get', 'list', 'watch'],
  revision: '',
  ...more,
});
const apps = { group: 'apps' };
const served = [
  serves('configmaps', 'ConfigMap', { shortNames: ['cm'] }),
  serves('secrets', 'Secret'),
  serves('services', 'Service'),
  serves('pods', 'Pod'),
  serves('nodes', 'Node', { namespaced: false }),
  serves('namespaces', 'Namespace', { namespaced: false }),
  serves('componentstatuses', 'ComponentStatus', { namespaced: false, verbs: ['get', 'list'] }),
  serves('tokenreviews', 'TokenReview', { verbs: ['create'] }),
  serves('deployments', 'Deployment', apps),
  serves('statefulsets', 'StatefulSet', apps),
  serves('daemonsets', 'DaemonSet', apps),
];

const object = (kind: string, namespace: string, name: string, more: object = {}): KubeObject => ({
  kind,
  apiVersion: 'v1',
  metadata: {
    name,
    ...(namespace === '' ? {} : { namespace }),
    uid: `uid-${name}`,
    resourceVersion: '5',
    ...(more as { metadata?: object }).metadata,
  },
  ...Object.fromEntries(Object.entries(more).filter(([key]) => key !== 'metadata')),
});

const bot = (namespace: string, index: number): { username: string } => ({
  username: `system:serviceaccount:${namespace}:bot-${index}`,
});

const refusedWatch = (problem: string): object => ({
  code: 429,
  headers: { 'Retry-After': '1' },
  message: `watches of resources that are not cached: ${problem}; please try again later`,
});

interface SentRequest extends KubeRequest {
  readonly path: string;
}

const respondWith = (code: number, body: object): KubeResponse => ({
  status: code,
  headers: {},
  body: Readable.from([Buffer.from(JSON.stringify(body))]),
});

/** Responds to lists and single objects; a watch sends the objects and stays open. */
class Cluster {
  objects: Record<string, KubeObject[]> = {};
  readonly requests: SentRequest[] = [];
  readonly watches: PassThrough[] = [];
  refusal: { readonly code: number; readonly reason: string; readonly message?: string } | undefined;

  async stream(path: string, options: KubeRequest = {}): Promise<KubeResponse> {
    this.requests.push({ path, ...options });
    if (this.refusal !== undefined)
      return respondWith(this.refusal.code, { ...status(this.refusal.code, this.refusal.reason), ...this.refusal });
    const items = this.objects[path];
    if (options.query?.['watch'] === 'true') {
      const body = new PassThrough();
      this.watches.push(body);
      options.signal?.addEventListener('abort', () => body.destroy());
      body.on('error', () => undefined);
      if (options.query['sendInitialEvents'] === 'true') {
        for (const item of items ?? []) body.write(`${JSON.stringify({ type: 'ADDED', object: item })}\n`);
        const end = { resourceVersion: '9', annotations: { 'k8s.io/initial-events-end': 'true' } };
        body.write(`${JSON.stringify({ type: 'BOOKMARK', object: { metadata: end } })}\n`);
      }
      return { status: 200, headers: {}, body };
    }
    if (items !== undefined) {
      const at = Number(options.query?.['continue'] ?? 0);
      const next = at + 2 < items.length ? String(at + 2) : '';
      return respondWith(200, {
        kind: 'ThingList',
        apiVersion: 'v1',
        metadata: { resourceVersion: '9', continue: next },
        items: items.slice(at, at + 2),
      });
    }
    const cut = path.lastIndexOf('/');
    const one = this.objects[path.slice(0, cut)]?.find(({ metadata }) => metadata.name === path.slice(cut + 1));
    return one === undefined ? respondWith(404, status(404, 'NotFound')) : respondWith(200, one);
  }

  /** Paths of the requests that impersonated a user, with the username. */
  get impersonated(): unknown[] {
    return this.requests
      .filter(({ headers }) => headers?.['impersonate-user'] !== undefined)
      .map(({ path, headers }) => [path, headers?.['impersonate-user']]);
  }
}

let cluster: Cluster;
let authorizer: FakeAuthorizer;
let granted: string[];
let maxBytes: number;
let catalogue: Catalogue;
let routes: Route[];
beforeEach(() => {
  cluster = new Cluster();
  authorizer = new FakeAuthorizer();
  granted = [];
  maxBytes = 10_000_000;
  catalogue = new Catalogue({
    client: cluster,
    discovery: {
      resources: served,
      hasSynced: () => true,
      waitForSync: async () => undefined,
      changed: new Topic(),
      resolve: (name) => served.find(({ resource, group }) => name === resource || name === `${resource}.${group}`),
      find: (of) => served.find(({ resource, group }) => resource === of.resource && group === of.group),
    },
    rights: { mayListAndWatch: async () => true, forget: () => undefined },
    limits: () => ({ maxBytes, idle: 60_000 }),
    kinds,
    registerResource: () => undefined,
    clock: systemClock,
    log: createLogger({ silent: true }),
  });
  routes = kapisRoutes({
    authorizer,
    resources: [],
    catalogue,
    granted: {
      of: () => new Map(granted.map((name) => [name, { count: 1, lastChange: 1, changedAt: 0 }])),
      hasSynced: () => true,
    },
    namespaceAccess: namespaceAccessOf(authorizer),
    client: cluster,
    fieldSchemas: new FieldSchemas(cluster),
    kinds,
    namespace: 'release',
  });
});
afterEach(() => catalogue.stop());

async function until(condition: () => boolean): Promise<void> {
  for (let turns = 0; !condition(); turns += 1) {
    if (turns === 1_000) throw new Error('the condition is not met');
    await settle();
  }
}

const names = (items: readonly KubeObject[]): string[] =>
  items.map(({ metadata: { namespace, name } }) => `${namespace}/${name}`);

describe('a cached resource', () => {
  beforeEach(() => {
    cluster.objects['/api/v1/configmaps'] = ['a', 'b', 'c'].map((namespace) => object('ConfigMap', namespace, 'x'));
    cluster.objects['/api/v1/namespaces'] = [object('Namespace', '', 'a')];
  });

  test('a cached resource is read from the cache, in all namespaces or in one namespace', async () => {
    const all = (await get(routes, `${base}/configmaps?sortBy=name&ascending=true`)).body;
    expect(all).toMatchObject({ kind: 'ConfigMapList', apiVersion: 'v1', totalItems: 3 });
    expect(names(all.items)).toEqual(['a/x', 'b/x', 'c/x']);
    const one = (await get(routes, `${base}/namespaces/b/configmaps`)).body;
    expect(one).toMatchObject({ totalItems: 1 });
    expect(names(one.items)).toEqual(['b/x']);
    expect((await get(routes, `${base}/namespaces/c/configmaps/x`)).body).toMatchObject({
      metadata: { namespace: 'c', selfLink: '/api/v1/namespaces/c/configmaps/x' },
    });
    expect((await get(routes, `${base}/namespaces/a`)).body).toMatchObject({ kind: 'Namespace' });
    // Two pages and a watch, or one page and a watch.
    const [configMaps, namespaces] = ['/api/v1/configmaps', '/api/v1/namespaces'];
    expect(cluster.requests.map(({ path }) => path)).toEqual([
      configMaps,
      configMaps,
      configMaps,
      namespaces,
      namespaces,
    ]);
    expect(cluster.impersonated).toEqual([]);
  });

  test('a cached resource is watched in the namespaces that each caller is allowed to see, whatever names the namespaces have', async () => {
    cluster.objects['/api/v1/configmaps'] = [object('ConfigMap', 'a', 'x')];
    const other = call(routes, `${base}/namespaces/a%2Cb/configmaps?watch=1`);
    await settle();
    granted = ['a', 'b'];
    authorizer.authorize = async (_, attributes) => ({
      allowed: 'namespace' in attributes && attributes.namespace !== '',
      reason: '',
    });
    const own = call(routes, `${base}/configmaps?watch=1`);
    await settle();
    const changed = object('ConfigMap', 'a', 'x', { metadata: { resourceVersion: '11' } });
    cluster.watches[0]?.write(`${JSON.stringify({ type: 'MODIFIED', object: changed })}\n`);
    await settle();
    expect(other.response.events).toEqual([]);
    expect(own.response.events.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED']);
    for (const { abort, done } of [own, other]) {
      abort();
      await done;
    }
  });

  test('a list of cached namespaces contains the namespaces in which a role allows the caller to get the namespace', async () => {
    cluster.objects['/api/v1/namespaces'] = ['a', 'b', 'c'].map((name) => object('Namespace', '', name));
    granted = ['a', 'b', 'x'];
    authorizer.authorize = async (_, attributes) => ({
      allowed: 'namespace' in attributes && attributes.verb === 'get' && attributes.namespace !== 'a',
      reason: '',
    });
    expect((await get(routes, `${base}/namespaces`)).body).toMatchObject({
      totalItems: 1,
      items: [{ metadata: { name: 'b' } }],
    });
  });

  test.each([
    ['Configmaps', 'configmaps'],
    ['ConfigMap', 'configmaps'],
    ['cm', 'configmaps'],
    ['deployment', 'deployments'],
    ['deploymets', 'deployments'],
    ['deployments.app', 'deployments.apps'],
  ])('a request for the resource name %s is rejected and suggests %s', async (name, suggestion) => {
    expect(await refused(routes, `${base}/${name}`)).toMatchObject({
      code: 404,
      message: expect.stringMatching(new RegExp(`"${name}"; did you mean "${suggestion}"\\?$`)) as unknown,
    });
  });

  test('a cached resource is not served from the cache to a user who is not allowed to read it', async () => {
    authorizer.allowed = false;
    expect(await refused(routes, `${base}/configmaps`)).toMatchObject({ code: 403 });
    expect(cluster.requests).toEqual([]);
  });

  test('a cached resource stays cached while it is watched', async () => {
    const { response, abort } = call(routes, `${base}/namespaces/b/configmaps?watch=1`);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(response.events).toMatchObject([{ type: 'ADDED', object: { metadata: { namespace: 'b' } } }]);
    const entry = await catalogue.find('configmaps', new AbortController().signal);
    const handle = await catalogue.acquire(entry);
    handle?.release();
    maxBytes = 1;
    cluster.objects['/api/v1/services'] = [object('Service', 'a', 'x')];
    cluster.objects['/api/v1/pods'] = [object('Pod', 'a', 'x')];
    expect(await refused(routes, `${base}/services`)).toMatchObject({ code: 503 });
    expect(handle?.resource.ended?.aborted).toBe(false);
    abort();
    response.destroy();
    await settle();
    expect(await refused(routes, `${base}/pods`)).toMatchObject({ code: 503 });
    expect(handle?.resource.ended?.aborted).toBe(true);
  });
});

const alias = (text: string, prefix = 'platform.io'): object => ({
  metadata: { annotations: { [`${prefix}/alias-name`]: text } },
});

describe('a path of /kapis/resources.platform.io', () => {
  test.each([
    ['gizmos', 404, 'serves no resource "gizmos"'],
    ['namespaces/a/nodes', 404, 'use …/nodes'],
    ['namespaces/a/nodes/n', 404, 'use …/nodes/{name}'],
    ['namespaces/a/namespaces', 404, 'use …/namespaces'],
    ['namespaces/a/namespaces/b', 404, 'use …/namespaces/{name}'],
    ['namespaces/a/namespaces/b?watch=true', 404, 'use …/namespaces/{name}'],
    ['namespaces/a/namespaces/%61b', 404, 'use …/namespaces/{name}'],
    ['configmaps/x', 404, 'use …/namespaces/{namespace}/configmaps/{name}'],
    ['namespaces/a/status', 404, 'could not find'],
    ['watch/configmaps', 404, 'could not find'],
    ['tokenreviews', 405, 'does not support list for tokenreviews'],
    ['componentstatuses?watch=1', 405, 'does not support watch for componentstatuses'],
    ['configmaps?status=x', 400, 'status: unknown parameter'],
    ['deployments?status=x', 400, 'expected one of stopped, running, updating'],
    ['configmaps?nodeName=x', 400, 'known parameters include page'],
  ])('the path %s of /kapis/resources.platform.io is rejected with %i', async (path, code, message) => {
    cluster.objects['/api/v1/configmaps'] = [];
    cluster.objects['/apis/apps/v1/deployments'] = [];
    const error = await refused(routes, `${base}/${path}`);
    expect(error).toMatchObject({ code, message: expect.stringContaining(message) as unknown });
  });

  test('a filter by the parameter status of /kapis/resources.platform.io ignores the case of the value', async () => {
    const scaled = { spec: { replicas: 0 }, status: {} };
    cluster.objects['/apis/apps/v1/deployments'] = [
      object('Deployment', 'a', 'stopped', scaled),
      object('Deployment', 'a', 'updating', { spec: { replicas: 1 } }),
    ];
    expect(names((await get(routes, `${base}/deployments?status=Stopped`)).body.items)).toEqual(['a/stopped']);
  });

  test('a filter by the parameter alias of /kapis/resources.platform.io selects objects by their alias', async () => {
    cluster.objects['/api/v1/configmaps'] = [
      object('ConfigMap', 'a', 'x', alias('The shop')),
      object('ConfigMap', 'a', 'y', alias('The bank')),
      object('ConfigMap', 'a', 'z', alias('Old shop', 'kubesphere.io')),
      object('ConfigMap', 'a', 'shop'),
    ];
    expect(names((await get(routes, `${base}/configmaps?alias=SHOP&sortBy=name&ascending=true`)).body.items)).toEqual([
      'a/x',
      'a/z',
    ]);
  });
});

const service = (namespace: string, name: string, selector?: object, more: object = {}): KubeObject =>
  object('Service', namespace, name, { spec: { selector, ...more } });
const pod = (namespace: string, name: string, labels: object): KubeObject =>
  object('Pod', namespace, name, { metadata: { labels } });
const listing = (query: string, path = 'pods'): Promise<string[]> =>
  get(routes, `${base}/${path}?sortBy=name&ascending=true&${query}`).then(({ body }) => names(body.items));

const changeService = async (type: string, changed: KubeObject, resourceVersion: string): Promise<void> => {
  const versioned = { ...changed, metadata: { ...changed.metadata, resourceVersion } };
  // The first watch is the watch of Services.
  cluster.watches[0]?.write(`${JSON.stringify({ type, object: versioned })}\n`);
  await settle();
};
const selectOthers = (): Promise<void> => changeService('MODIFIED', service('a', 'web', { app: 'other' }), '12');

describe('the filter of pods by Service', () => {
  const web = { app: 'web', tier: 'front' };
  beforeEach(() => {
    cluster.objects = {
      '/api/v1/pods': [
        pod('a', 'front', { ...web, more: 'x' }),
        pod('a', 'half', { app: 'web' }),
        pod('a', 'other', { app: 'other' }),
        pod('b', 'front', web),
        pod('b', 'other', { app: 'other' }),
        pod('c', 'front', web),
      ],
      '/api/v1/services': [
        service('a', 'web', web),
        service('b', 'web', { app: 'other' }),
        service('a', 'bare'),
        service('a', 'empty', {}),
        service('a', 'external', web, { type: 'ExternalName', externalName: 'example.com' }),
      ],
    };
  });

  test('the filter of pods by Service selects pods in one namespace and in all namespaces, by the Service of each namespace', async () => {
    expect(await listing('serviceName=web', 'namespaces/a/pods')).toEqual(['a/front']);
    expect(await listing('serviceName=web')).toEqual(['a/front', 'b/other']);
    expect(await listing('serviceName=web&namespace=b')).toEqual(['b/other']);
    expect(await listing('serviceName=web&name=fro')).toEqual(['a/front']);
  });

  test.each(['bare', 'empty', 'external', 'none', ''])(
    'the filter of pods by Service matches no pods for the Service %j',
    async (name) => {
      expect(await listing(`serviceName=${name}`, 'namespaces/a/pods')).toEqual([]);
      expect(await listing(`serviceName=${name}`)).toEqual([]);
    },
  );

  test('the filter of pods by Service follows a change of the selector of the Service', async () => {
    expect(await listing('serviceName=web', 'namespaces/a/pods')).toEqual(['a/front']);
    await selectOthers();
    expect(await listing('serviceName=web', 'namespaces/a/pods')).toEqual(['a/other']);
  });

  test('the filter of pods by Service selects pods only in namespaces where the caller is allowed to list Services', async () => {
    const reviewed: unknown[] = [];
    let readable = '';
    authorizer.authorize = async (_, attributes) => {
      if (!('resource' in attributes)) return { allowed: false, reason: '' };
      const { verb, resource, namespace = '', name } = attributes;
      if (resource === 'pods') return { allowed: true, reason: '' };
      reviewed.push([verb, resource, namespace, name]);
      return { allowed: namespace !== '' && namespace === readable, reason: '' };
    };
    for (const path of ['namespaces/a/pods', 'pods'])
      expect(await refused(routes, `${base}/${path}?serviceName=web`)).toMatchObject({
        code: 403,
        message: expect.stringMatching(/^services "web" is forbidden: .* cannot list resource "services"/) as unknown,
      });
    expect(reviewed).toContainEqual(['list', 'services', 'a', 'web']);
    expect(cluster.requests).toEqual([]);
    readable = 'b';
    granted = ['a', 'b'];
    expect(await listing('serviceName=web')).toEqual(['b/other']);
  });

  test('the filter of pods by Service keeps a watch open while the selector of the Service is unchanged', async () => {
    const { response, changeUser } = call(routes, `${base}/namespaces/a/pods?watch=1&serviceName=web`);
    await settle();
    expect(response.events).toMatchObject([{ type: 'ADDED', object: { metadata: { name: 'front' } } }]);
    changeUser();
    await settle();
    expect(response.writableEnded).toBe(false);
    await selectOthers();
    expect(response.events.slice(1)).toMatchObject([{ type: 'ERROR', object: { code: 410, reason: 'Expired' } }]);
    expect(response.writableEnded).toBe(true);
  });

  test('the filter of pods by Service keeps a watch open while other Services change, until the Service of the filter is deleted', async () => {
    const { response } = call(routes, `${base}/namespaces/a/pods?watch=1&serviceName=web`);
    await settle();
    await changeService('MODIFIED', service('b', 'web', { app: 'third' }), '12');
    await changeService('DELETED', service('a', 'bare'), '13');
    await changeService('MODIFIED', service('a', 'web', web, { clusterIP: '10.0.0.9' }), '14');
    expect(response.events).toHaveLength(1);
    expect(response.writableEnded).toBe(false);
    await changeService('DELETED', service('a', 'web', web), '15');
    expect(response.events.slice(1)).toMatchObject([{ type: 'ERROR', object: { code: 410 } }]);
    expect(response.writableEnded).toBe(true);
  });

  test('the filter of pods by Service keeps a watch open while a Service that the caller is not allowed to list changes', async () => {
    granted = ['a', 'b'];
    authorizer.authorize = async (_, attributes) => ({
      allowed: 'namespace' in attributes && attributes.namespace === 'a',
      reason: '',
    });
    const { response } = call(routes, `${base}/pods?watch=1&serviceName=web`);
    await settle();
    await changeService('MODIFIED', service('b', 'web', { app: 'third' }), '12');
    await changeService('DELETED', service('b', 'web', { app: 'third' }), '13');
    expect(response.events).toMatchObject([{ type: 'ADDED', object: { metadata: { namespace: 'a', name: 'front' } } }]);
    expect(response.writableEnded).toBe(false);
    await changeService('MODIFIED', service('a', 'web', { app: 'other' }), '14');
    expect(response.events.slice(1)).toMatchObject([{ type: 'ERROR', object: { code: 410 } }]);
  });

  test('the filter of pods by Service does not apply to other resources or to a single pod', async () => {
    for (const path of ['configmaps', 'namespaces/a/pods/front'])
      expect(await refused(routes, `${base}/${path}?serviceName=web`)).toMatchObject({
        code: 400,
        message: expect.stringContaining('serviceName: unknown parameter') as unknown,
      });
  });
});

const secretsOf = (namespace: string): KubeObject[] =>
  ['x', 'y', 'z'].map((name) =>
    object('Secret', namespace, name, {
      metadata: { managedFields: [{}] },
      type: name === 'x' ? 'kubernetes.io/tls' : 'Opaque',
    }),
  );

describe('an uncached resource', () => {
  const paths = ['/api/v1/secrets', '/api/v1/namespaces/a/secrets', '/api/v1/namespaces/b/secrets'];
  beforeEach(() => {
    cluster.objects = {
      '/api/v1/secrets': [...secretsOf('a'), ...secretsOf('b')],
      [paths[1] ?? '']: secretsOf('a'),
      [paths[2] ?? '']: secretsOf('b'),
    };
  });

  test('an uncached resource is read from kube-apiserver in pages, and then filtered, sorted and paged by this server', async () => {
    const { body } = await get(routes, `${base}/secrets?type=Opaque&sortBy=name&ascending=true&limit=2&page=2`);
    expect(body).toMatchObject({ kind: 'SecretList', totalItems: 4, metadata: { resourceVersion: '9' } });
    expect(names(body.items)).toEqual(['a/z', 'b/z']);
    expect(body.items[0]).toMatchObject({ metadata: { selfLink: '/api/v1/namespaces/a/secrets/z' } });
    expect(body.items[0]?.metadata).not.toHaveProperty('managedFields');
    expect(cluster.impersonated).toEqual([paths[0], paths[0], paths[0]].map((path) => [path, 'alice']));
    expect(catalogue.listMemory.held).toBe(0);
  });

  test('a list of an uncached resource contains the objects in namespaces that the caller is allowed to list', async () => {
    granted = ['a', 'b', 'c'];
    authorizer.authorize = async (_, attributes) => ({
      allowed: 'namespace' in attributes && attributes.namespace === 'b',
      reason: '',
    });
    expect((await get(routes, `${base}/secrets`)).body).toMatchObject({ totalItems: 3 });
    expect(cluster.impersonated).toEqual([
      [paths[2], 'alice'],
      [paths[2], 'alice'],
    ]);
    expect(await refused(routes, `${base}/secrets?watch=1`)).toMatchObject({ code: 403 });
  });

  test('a list of an uncached resource follows the authorizer without the older decisions that lists of cached resources use', async () => {
    granted = ['a', 'b'];
    let allowed = 'a';
    authorizer.authorize = async (_, attributes) => ({
      allowed: 'namespace' in attributes && attributes.namespace === allowed,
      reason: '',
    });
    expect(names((await get(routes, `${base}/secrets?limit=1`)).body.items)).toEqual(['a/x']);
    allowed = 'b';
    expect(names((await get(routes, `${base}/secrets?limit=1`)).body.items)).toEqual(['b/x']);
  });

  test('an uncached resource is not listed in more than a thousand namespaces', async () => {
    granted = Array.from({ length: 1_001 }, (_, index) => `n${index}`);
    authorizer.authorize = async (_, attributes) => ({
      allowed: 'namespace' in attributes && attributes.namespace === 'n7',
      reason: '',
    });
    expect(await refused(routes, `${base}/secrets`)).toMatchObject({
      code: 403,
      message: expect.stringContaining('role bindings in more than 1000 namespaces (1001)') as unknown,
    });
  });

  test('a read of one object of an uncached resource returns the requested fields, or 404', async () => {
    const { body } = await get(routes, `${base}/namespaces/a/secrets/x?fields=type`);
    expect(body).toEqual({
      kind: 'Secret',
      apiVersion: 'v1',
      metadata: { name: 'x', namespace: 'a' },
      type: 'kubernetes.io/tls',
    });
    expect(await refused(routes, `${base}/namespaces/a/secrets/none`)).toMatchObject({ code: 404 });
  });

  test('an uncached resource is listed at the requested resourceVersion or a later resourceVersion', async () => {
    expect((await get(routes, `${base}/secrets?resourceVersion=9`)).body).toMatchObject({ totalItems: 6 });
    expect(await refused(routes, `${base}/secrets?resourceVersion=10`)).toMatchObject({ code: 504 });
  });

  test('an uncached resource is requested in the namespace of the path, whatever the name of the namespace', async () => {
    for (const [name, path] of [
      ['%252e%252e', '/api/v1/namespaces/%252e%252e/secrets'],
      ['a%3Fb', '/api/v1/namespaces/a%3Fb/secrets'],
    ] as const) {
      await call(routes, `${base}/namespaces/${name}/secrets`).done;
      await call(routes, `${base}/namespaces/${name}/secrets/x`).done;
      expect(cluster.impersonated).toEqual([
        [path, 'alice'],
        [`${path}/x`, 'alice'],
      ]);
      cluster.requests.length = 0;
    }
  });

  test('an uncached resource whose objects have no resourceVersion can be listed', async () => {
    const bare = object('ComponentStatus', '', 'etcd', { metadata: { resourceVersion: undefined } });
    cluster.objects['/api/v1/componentstatuses'] = [bare];
    expect((await get(routes, `${base}/componentstatuses?name=etc`)).body).toMatchObject({
      totalItems: 1,
      items: [{ metadata: { name: 'etcd' } }],
    });
  });

  test.each([
    [403, 'Forbidden', 403],
    [401, 'Unauthorized', 503],
    [429, 'TooManyRequests', 503],
    [500, 'InternalError', 502],
  ])(
    'a read of an uncached resource that kube-apiserver rejects with %i (%s) gets %i',
    async (code, reason, expected) => {
      cluster.refusal = { code, reason };
      for (const path of ['secrets', 'namespaces/a/secrets/x', 'secrets?watch=1'])
        expect(await refused(routes, `${base}/${path}`)).toMatchObject({ code: expected });
    },
  );

  test('a read of an uncached resource gets 503 with Retry-After when this server is not allowed to impersonate', async () => {
    const message =
      'users "alice" is forbidden: User "system:serviceaccount:release:server" cannot impersonate resource "users" in API group "" at the cluster scope';
    cluster.refusal = { code: 403, reason: 'Forbidden', message };
    for (const path of ['secrets', 'namespaces/a/secrets/x', 'secrets?watch=1'])
      expect(await refused(routes, `${base}/${path}`)).toMatchObject({ code: 503, headers: { 'Retry-After': '1' } });
  });

  test('a read of an uncached resource that exceeds the size limit gets 503', async () => {
    maxBytes = 1_000;
    expect(await refused(routes, `${base}/secrets`)).toMatchObject({
      code: 503,
      message: expect.stringMatching(/^secrets exceeds the memory/) as unknown,
    });
    expect(catalogue.listMemory.held).toBe(0);
  });

  test('a read of an uncached resource takes no memory from caches, even if users leave their responses unread', async () => {
    cluster.objects['/api/v1/configmaps'] = [object('ConfigMap', 'a', 'x')];
    cluster.objects[paths[2] ?? ''] = [object('Secret', 'b', 'x', { data: { filling: 'x'.repeat(600_000) } })];
    maxBytes = 8_000_000;
    await get(routes, `${base}/configmaps`);
    const watching = call(routes, `${base}/configmaps?watch=1`);
    const unread: Call[] = [];
    for (const username of ['bob', 'bob', 'carol', 'carol', 'dave']) {
      const reading = call(routes, `${base}/namespaces/b/secrets`, { username });
      reading.response.stalled = true;
      unread.push(reading);
      await Promise.race([reading.done, until(() => reading.response.chunks.length > 0)]);
    }
    expect(catalogue.listMemory.held).toBeGreaterThan(3_000_000);
    expect(await refused(routes, `${base}/namespaces/b/secrets`, { username: 'bob' })).toMatchObject({ code: 429 });
    const grown = object('ConfigMap', 'a', 'x', {
      metadata: { resourceVersion: '11' },
      data: { filling: 'x'.repeat(6_000_000) },
    });
    cluster.watches[0]?.write(`${JSON.stringify({ type: 'MODIFIED', object: grown })}\n`);
    await until(() => watching.response.events.length === 2);
    expect(watching.response.events.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED']);
    expect((await get(routes, `${base}/configmaps`)).body).toMatchObject({ totalItems: 1 });
    for (const { response, done } of unread) {
      response.destroy();
      await done;
    }
    expect(catalogue.listMemory.held).toBe(0);
    watching.abort();
  });

  test('an uncached resource is watched with the identity of the caller, in the format of this server', async () => {
    const { response, abort, done } = call(
      routes,
      `${base}/namespaces/a/secrets/x?watch=1&labelSelector=a=b&label=c&resourceVersion=7&fields=type&allowWatchBookmarks=true`,
    );
    await settle();
    const [upstream] = cluster.watches;
    expect(cluster.requests.at(-1)).toMatchObject({
      path: '/api/v1/namespaces/a/secrets',
      query: {
        watch: 'true',
        resourceVersion: '7',
        labelSelector: 'c,a=b',
        fieldSelector: 'metadata.name=x',
        allowWatchBookmarks: 'true',
      },
      headers: { 'impersonate-user': 'alice' },
    });
    const send = (type: string, of: object): void => {
      upstream?.write(`${JSON.stringify({ type, object: of })}\n`);
    };
    send('MODIFIED', object('Secret', 'a', 'x', { type: 'Opaque' }));
    send('BOOKMARK', { kind: 'Secret', apiVersion: 'v1', metadata: { resourceVersion: '8' } });
    send('ERROR', { kind: 'Status', code: 410 });
    await settle();
    expect(response.events).toEqual([
      {
        type: 'MODIFIED',
        object: { kind: 'Secret', apiVersion: 'v1', metadata: { name: 'x', namespace: 'a' }, type: 'Opaque' },
      },
      { type: 'BOOKMARK', object: expect.objectContaining({ kind: 'Secret' }) as unknown },
      { type: 'ERROR', object: { kind: 'Status', code: 410 } },
    ]);
    abort();
    await done;
    expect(upstream?.destroyed).toBe(true);
  });

  test('an uncached resource is watched in all namespaces until the caller is no longer allowed to watch all namespaces', async () => {
    const { response, recheck, done } = call(routes, `${base}/secrets?watch=1`);
    await settle();
    await recheck();
    expect(response.writableEnded).toBe(false);
    granted = ['a'];
    authorizer.authorize = async (_, attributes) => ({
      allowed: 'namespace' in attributes && attributes.namespace === 'a',
      reason: '',
    });
    await recheck();
    await done;
    expect(response.events).toMatchObject([{ type: 'ERROR', object: { code: 410, reason: 'Expired' } }]);
  });

  test('a single object of an uncached resource is watched by its name, whatever selectors the request has', async () => {
    for (const [name, selector] of [
      ['x', 'metadata.name=x'],
      ['x%2Ctype=Opaque', String.raw`metadata.name=x\,type\=Opaque`],
    ] as const) {
      const url = `${base}/namespaces/a/secrets/${name}?watch=1&fieldSelector=type!%3Dmetadata.name`;
      const { abort, done } = call(routes, url);
      await settle();
      expect(cluster.requests.at(-1)?.query).toMatchObject({ fieldSelector: `${selector},type!=metadata.name` });
      abort();
      await done;
    }
  });

  test('a watch of an uncached resource sends its fieldSelector to kube-apiserver without the leading dots of its paths', async () => {
    const selector = String.raw`.type=a\,.b,.metadata.name!=.c`;
    const url = `${base}/namespaces/a/secrets?watch=1&fieldSelector=${encodeURIComponent(selector)}`;
    const { abort, done } = call(routes, url);
    await settle();
    const sent = cluster.requests.at(-1)?.query;
    abort();
    await done;
    expect(sent).toMatchObject({ fieldSelector: String.raw`type=a\,.b,metadata.name!=.c` });
  });

  test('an uncached resource can be watched as server-sent events', async () => {
    const { response, abort, done } = call(routes, `${base}/namespaces/a/secrets?watch=1`, {
      headers: { accept: 'text/event-stream', 'last-event-id': '6' },
    });
    await settle();
    expect(cluster.requests.at(-1)?.query).toMatchObject({ resourceVersion: 6 });
    cluster.watches[0]?.write(`${JSON.stringify({ type: 'ADDED', object: object('Secret', 'a', 'x') })}\n`);
    await settle();
    expect(response.headers['content-type']).toBe('text/event-stream');
    expect(response.text).toMatch(/^id: 5\ndata: \{"type":"ADDED".*\}\n\n$/);
    abort();
    await done;
  });

  test('a watch of an uncached resource sends no event ID until all existing objects are sent', async () => {
    const initial = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
    const { response, abort, done } = call(routes, `${base}/namespaces/b/secrets?watch=1&${initial}`, {
      headers: { accept: 'text/event-stream' },
    });
    await settle();
    expect(response.text.split('\n\n').map((part) => part.slice(0, 5))).toEqual([
      'data:',
      'data:',
      'data:',
      'id: 9',
      '',
    ]);
    abort();
    await done;
  });

  test('an uncached resource has at most 100 concurrent watches, of which one user can open 25', async () => {
    const url = `${base}/secrets?watch=1`;
    const all = Array.from({ length: 25 }, () => call(routes, url));
    await settle();
    expect(await refused(routes, url)).toMatchObject(refusedWatch('your share of 25 is in use'));
    all.push(...Array.from({ length: 75 }, (_, index) => call(routes, url, { username: `user-${index}` })));
    await settle();
    for (const { response } of all) expect(response.statusCode).toBe(200);
    expect(await refused(routes, url, { username: 'bob' })).toMatchObject(
      refusedWatch("the server's total of 100 is in use"),
    );
    all[0]?.abort();
    await all[0]?.done;
    const next = call(routes, url);
    await settle();
    expect(next.response.statusCode).toBe(200);
    for (const { abort } of [...all, next]) abort();
    await Promise.all([...all, next].map(({ done }) => done));
  });

  test('all ServiceAccounts of a namespace count as one user for the limits on uncached resources', async () => {
    const url = `${base}/secrets?watch=1`;
    const all = Array.from({ length: 25 }, (_, index) => call(routes, url, bot('a', index)));
    await settle();
    expect(await refused(routes, url, bot('a', 25))).toMatchObject(refusedWatch('your share of 25 is in use'));
    all.push(call(routes, url, bot('b', 0)));
    cluster.objects[paths[2] ?? ''] = [object('Secret', 'b', 'x', { data: { filling: 'x'.repeat(600_000) } })];
    maxBytes = 8_000_000;
    for (const index of [0, 1]) {
      const reading = call(routes, `${base}/namespaces/b/secrets`, bot('a', index));
      reading.response.stalled = true;
      all.push(reading);
      await until(() => reading.response.chunks.length > 0);
    }
    expect(await refused(routes, `${base}/namespaces/b/secrets`, bot('a', 2))).toMatchObject({ code: 429 });
    await get(routes, `${base}/namespaces/b/secrets`, bot('b', 0));
    for (const { abort, response, done } of all) {
      abort();
      response.destroy();
      await done;
    }
  });

  test.each(['name=x', 'sortBy=name', 'limit=1', 'type=Opaque', 'alias=x'])(
    'an uncached resource cannot be watched with %s',
    async (query) => {
      expect(await refused(routes, `${base}/secrets?watch=1&${query}`)).toMatchObject({ code: 400 });
    },
  );
});

describe('the platform components', () => {
  const labels = { 'app.kubernetes.io/part-of': 'platform' };
  const workload = (kind: string, namespace: string, name: string, ready: number, of: object = labels): KubeObject =>
    object(kind, namespace, name, {
      metadata: { labels: of },
      spec: { replicas: 2, template: { metadata: { labels: { app: name, tier: 'x' } } } },
      status: { replicas: 2, readyReplicas: ready, desiredNumberScheduled: 2, numberReady: ready },
    });
  beforeEach(() => {
    cluster.objects = {
      '/apis/apps/v1/deployments': [
        workload('Deployment', 'release', 'server', 2),
        workload('Deployment', 'release', 'other', 2, {}),
        workload('Deployment', 'elsewhere', 'server', 2),
        workload('Deployment', 'kube-system', 'dns', 1, { 'k8s-app': 'dns' }),
      ],
      '/apis/apps/v1/statefulsets': [workload('StatefulSet', 'release', 'log', 2)],
      '/apis/apps/v1/daemonsets': [workload('DaemonSet', 'kube-system', 'agent', 2)],
      '/api/v1/services': [
        service('release', 'web', { app: 'server' }),
        service('release', 'none'),
        service('elsewhere', 'far', { app: 'server' }),
      ],
      '/api/v1/nodes': [
        object('Node', '', 'n1', { status: { conditions: [{ type: 'Ready', status: 'True' }] } }),
        object('Node', '', 'n2'),
        object('Node', '', 'n3', {
          status: {
            conditions: [
              { type: 'Ready', status: 'True' },
              { type: 'MemoryPressure', status: 'True' },
            ],
          },
        }),
      ],
    };
    catalogue.cachePermanently(nodes).start();
  });

  test("the platform components are the platform's workloads, with their Services and replicas", async () => {
    const { body } = await get(routes, `${base}/components`);
    expect(body).toMatchObject({ kind: 'ComponentList', apiVersion: 'resources.platform.io/v1alpha3', totalItems: 4 });
    expect(names(body.items)).toEqual(['release/log', 'release/server', 'kube-system/agent', 'kube-system/dns']);
    expect(body.items[1]).toEqual({
      kind: 'Component',
      apiVersion: 'resources.platform.io/v1alpha3',
      metadata: {
        name: 'server',
        namespace: 'release',
        uid: 'uid-server',
        labels,
        selfLink: '/apis/apps/v1/namespaces/release/deployments/server',
      },
      workload: { apiVersion: 'v1', kind: 'Deployment' },
      services: ['web'],
      replicas: { desired: 2, ready: 2 },
      healthy: true,
    });
    expect((await get(routes, `${base}/components/dns`)).body).toMatchObject({ healthy: false });
    expect(await refused(routes, `${base}/components/other`)).toMatchObject({ code: 404 });
    for (const query of ['page=1', 'pretty=maybe'])
      expect(await refused(routes, `${base}/components?${query}`)).toMatchObject({ code: 400 });
    expect(await refused(routes, `${base}/componenthealth/x`)).toMatchObject({
      code: 404,
      message: expect.stringContaining('componenthealth is served only at …/componenthealth') as unknown,
    });
  });

  test('the health of the platform components is summarized together with the health of the nodes', async () => {
    const { body } = await get(routes, `${base}/componenthealth?pretty=true`);
    expect(body).toEqual({
      kind: 'ComponentHealth',
      apiVersion: 'resources.platform.io/v1alpha3',
      metadata: {},
      healthy: false,
      components: {
        total: 4,
        healthy: 3,
        unhealthy: [{ name: 'dns', namespace: 'kube-system', kind: 'Deployment', replicas: { desired: 2, ready: 1 } }],
      },
      nodes: { total: 3, healthy: 1 },
    });
  });

  test('the platform components include only workloads that the caller is allowed to list', async () => {
    authorizer.authorize = async (_, attributes) => ({
      allowed: 'resource' in attributes && attributes.resource === 'deployments' && attributes.namespace === 'release',
      reason: '',
    });
    expect(names((await get(routes, `${base}/components`)).body.items)).toEqual(['release/server']);
    const hidden =
      'daemonsets.apps in kube-system, daemonsets.apps in release, deployments.apps in kube-system, services in kube-system, services in release, statefulsets.apps in kube-system, statefulsets.apps in release';
    expect((await get(routes, `${base}/components`)).body).toMatchObject({
      partial: { reason: `you are not allowed to list ${hidden}` },
    });
    const { body } = await get(routes, `${base}/componenthealth`);
    expect(body).not.toHaveProperty('nodes');
    expect(body).toMatchObject({ partial: { reason: expect.stringContaining(', nodes, ') as unknown } });
    authorizer.authorize = async () => ({ allowed: false, reason: '' });
    for (const path of ['components', 'components/server', 'componenthealth'])
      expect(await refused(routes, `${base}/${path}`)).toMatchObject({
        code: 403,
        message: expect.stringContaining('cannot list resource "deployments"') as unknown,
      });
  });

  test.each(['components', 'components/server', 'componenthealth'])(
    'the response of /%s about the platform components matches the API description',
    async (path) => {
      const described = routes.find((route) => route.path === `${base}/${path.replace('server', ':name')}`);
      const schema = described?.responses?.[200]?.content?.['application/json'];
      if (schema === undefined) throw new Error(`${path} is not described`);
      const validate = new Ajv({ formats: { 'date-time': true } }).compile(jsonSchemaOf(schema));
      const responses = [(await get(routes, `${base}/${path}`)).body];
      // The caller is not allowed to list nodes.
      authorizer.authorize = async (_, attributes) => ({
        allowed: !('resource' in attributes) || attributes.resource !== 'nodes',
        reason: '',
      });
      responses.push((await get(routes, `${base}/${path}`)).body);
      for (const response of responses) expect(validate(response) || validate.errors).toBe(true);
    },
  );

  test.each(['components', 'components/server', 'componenthealth'])(
    'the response of /%s about the platform components has the same values in YAML as in JSON',
    async (path) => {
      const accept = 'application/yaml';
      const response = await get(routes, `${base}/${path}`, { headers: { accept } });
      expect(response.headers['content-type']).toBe(accept);
      expect(parse(response.text)).toEqual((await get(routes, `${base}/${path}`)).body);
      expect(await refused(routes, `${base}/${path}`, { headers: { accept: 'text/html' } })).toMatchObject({
        code: 406,
      });
    },
  );

  test('discovery lists the platform components', async () => {
    const { body } = await get(routes, base);
    const found = (body['resources'] as { name: string }[]).map(({ name }) => name);
    expect(found).toEqual(expect.arrayContaining(['components', 'componenthealth', 'deployments', 'secrets']));
    expect(found).not.toContain('tokenreviews');
  });
});
