/** Every resource that the cluster serves, read at /kapis: built-in and custom, cached and uncached. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { configure } from '../labs/integration/configure.ts';
import { eventually } from '../labs/integration/eventually.ts';
import { call, gateway, open, read, type HttpResponse } from '../labs/integration/http.ts';
import {
  bind,
  create,
  createClusterRole,
  createServiceAccount,
  get,
  kube,
  patch,
  remove,
  removeClusterRole,
  removeServiceAccount,
  serviceAccountToken,
  unbind,
  type KubeList,
  type KubeObject,
} from '../labs/integration/kube.ts';
import { adminToken } from '../labs/integration/login.ts';
import { expectStatus } from '../labs/integration/status.ts';
import { addUsers, tokenOf } from '../labs/integration/users.ts';

type List = KubeList & { readonly totalItems: number };

const base = '/kapis/resources.platform.io/v1alpha3';
const namespaces = ['generic-1', 'generic-2', 'generic-3', 'generic-4', 'generic-5'];
const users = { 'generic-two': [], 'generic-none': [], 'generic-viewer': [], 'generic-secrets': [] } as const;

const as = async (token: string, path: string): Promise<HttpResponse> =>
  await call(`${gateway()}${base}/${path}`, { token });
const send = async (path: string): Promise<HttpResponse> => await as(await adminToken(), path);

async function list(path: string, token?: string): Promise<List> {
  const response = await as(token ?? (await adminToken()), path);
  expect({ status: response.status, text: response.text }).toMatchObject({ status: 200 });
  return response.json as List;
}

const named = ({ items }: Pick<KubeList, 'items'>): string[] =>
  items.map(({ metadata }) => `${(metadata as { namespace?: string }).namespace ?? ''}/${metadata.name}`);

const label = { 'generic-test': 'yes' };
const object = (kind: string, apiVersion: string, name: string, more: object = {}): object => ({
  kind,
  apiVersion,
  metadata: { name, labels: label },
  ...more,
});
const deployment = (name: string): object =>
  object('Deployment', 'apps/v1', name, {
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'c', image: 'example.com/c' }] } },
    },
  });

const bindIn = (
  namespace: string,
  name: string,
  subject: object = { kind: 'User', name, apiGroup: 'rbac.authorization.k8s.io' },
  role = 'generic-reader',
): Promise<KubeObject> =>
  create(`/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings`, {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [subject],
  });

let removeUsers: () => Promise<void>;
const tokens: Record<string, string> = {};
beforeAll(async () => {
  removeUsers = await addUsers(users);
  for (const name of namespaces) {
    await create('/api/v1/namespaces', object('Namespace', 'v1', name));
    await create(
      `/api/v1/namespaces/${name}/configmaps`,
      object('ConfigMap', 'v1', 'settings', { data: { of: name } }),
    );
    await create(`/api/v1/namespaces/${name}/secrets`, object('Secret', 'v1', 'hidden', { stringData: { of: name } }));
  }
  await create(`/apis/apps/v1/namespaces/generic-1/deployments`, deployment('web'));
  await createClusterRole('generic-reader', [
    { apiGroups: [''], resources: ['configmaps', 'secrets'], verbs: ['get', 'list', 'watch'] },
  ]);
  await bindIn('generic-2', 'generic-two');
  await bindIn('generic-4', 'generic-two');
  await bindIn('generic-3', 'generic-viewer', undefined, 'view');
  // A binding without any right to namespaced resources.
  await create('/apis/rbac.authorization.k8s.io/v1/namespaces/generic-5/rolebindings', {
    metadata: { name: 'elsewhere' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'platform-node-reader' },
    subjects: [{ kind: 'User', name: 'generic-two', apiGroup: 'rbac.authorization.k8s.io' }],
  });
  await bind('generic-secrets', 'generic-reader', { kind: 'User', name: 'generic-secrets' });
  for (const name of Object.keys(users)) tokens[name] = await tokenOf(name);
});
afterAll(async () => {
  for (const name of namespaces) await remove(`/api/v1/namespaces/${name}`);
  await unbind('generic-secrets');
  await removeClusterRole('generic-reader');
  await removeUsers();
});

describe('a built-in resource', () => {
  test('a built-in resource is listed in all namespaces and in one namespace, with pages, sorting and filters', async () => {
    const all = await list('configmaps?labelSelector=generic-test=yes&sortBy=.data.of&ascending=true');
    expect(all).toMatchObject({ kind: 'ConfigMapList', apiVersion: 'v1', totalItems: 5 });
    expect(named(all)).toEqual(namespaces.map((name) => `${name}/settings`));
    const page = await list(
      'configmaps?name=settings&label=generic-test&sortBy=.data.of&ascending=true&limit=2&page=2',
    );
    expect(page.totalItems).toBe(5);
    expect(named(page)).toEqual(['generic-3/settings', 'generic-4/settings']);
    const one = await list('namespaces/generic-3/configmaps?names=settings');
    expect(named(one)).toEqual(['generic-3/settings']);
    const [item] = one.items;
    const other = await get('/api/v1/namespaces/generic-3/configmaps/settings');
    const { managedFields: _, ...metadata } = other.metadata;
    expect(item).toEqual({
      ...other,
      metadata: { ...metadata, selfLink: '/api/v1/namespaces/generic-3/configmaps/settings' },
    });
    expect((await send('namespaces/generic-3/configmaps/settings')).json).toEqual(item);
  });

  test('a built-in resource can be requested by the names that kubectl accepts', async () => {
    for (const name of ['deployments', 'deployments.apps', 'deployments.v1.apps'])
      expect(await list(`namespaces/generic-1/${name}`)).toMatchObject({
        kind: 'DeploymentList',
        apiVersion: 'apps/v1',
        totalItems: 1,
        items: [{ kind: 'Deployment', apiVersion: 'apps/v1', metadata: { name: 'web' }, spec: { replicas: 2 } }],
      });
    expect(await list('events?limit=0')).toMatchObject({ kind: 'EventList', apiVersion: 'v1' });
    expect(await list('events.events.k8s.io?limit=0')).toMatchObject({ apiVersion: 'events.k8s.io/v1' });
    expect(await list('nodes.v1.?limit=0')).toMatchObject({ kind: 'NodeList', apiVersion: 'v1' });
  });

  test('a built-in resource is served only in its scope, which is the cluster or a namespace', async () => {
    expect((await send('namespaces/generic-1')).json).toMatchObject({
      kind: 'Namespace',
      metadata: { name: 'generic-1' },
    });
    expect(named(await list('clusterroles?names=generic-reader'))).toEqual(['/generic-reader']);
    expectStatus(await send('namespaces/generic-1/clusterroles'), 404, 'NotFound');
    expect(expectStatus(await send('configmaps/settings'), 404, 'NotFound').message).toContain(
      'namespaces/{namespace}/configmaps/{name}',
    );
  });

  test('a built-in resource can be watched', async () => {
    const stream = await watching(
      'namespaces/generic-5/configmaps?watch=true&label=generic-test&resourceVersion=' +
        (await list('configmaps?limit=0')).metadata.resourceVersion,
    );
    await patch('/api/v1/namespaces/generic-1/configmaps/settings', { data: { more: 'a' } });
    await patch('/api/v1/namespaces/generic-5/configmaps/settings', { data: { more: 'b' } });
    await stream.event(({ type, object: { metadata } }) => type === 'MODIFIED' && metadata.name === 'settings');
    expect(stream.events).toHaveLength(1);
    stream.close();
  });

  test('an invalid path or parameter gets 404 or 400, and a list of a resource without the verb list gets 405', async () => {
    expectStatus(await send('gizmos'), 404, 'NotFound');
    expectStatus(await send('namespaces/generic-1/configmaps/nothing'), 404, 'NotFound');
    expectStatus(await send('tokenreviews'), 405, 'MethodNotAllowed');
    expectStatus(await send('namespaces/generic-1/status'), 404, 'NotFound');
    expectStatus(await send('watch/configmaps'), 404, 'NotFound');
    expect(expectStatus(await send('configmaps?phase=x'), 400, 'BadRequest').message).toContain(
      'known parameters include page',
    );
  });

  test('discovery lists a built-in resource', async () => {
    const { resources } = (await send('')).json as {
      resources: { name: string; verbs: string[]; namespaced: boolean }[];
    };
    const byName = new Map(resources.map((resource) => [resource.name, resource]));
    expect(byName.get('deployments')).toMatchObject({ namespaced: true, verbs: ['get', 'list', 'watch'] });
    expect(byName.get('nodes')).toMatchObject({ namespaced: false });
    expect(byName.has('events.events.k8s.io')).toBe(true);
    expect(byName.has('tokenreviews')).toBe(false);
    expect(byName.size).toBe(resources.length);
  });
});

describe('a list of a built-in resource', () => {
  test('a list of a built-in resource supports status values and parameters specific to the resource', async () => {
    expect(named(await list('namespaces/generic-1/deployments?status=updating'))).toEqual(['generic-1/web']);
    expect((await list('namespaces/generic-1/deployments?status=running')).totalItems).toBe(0);
    expect((await list('namespaces?label=generic-test&status=Active')).totalItems).toBe(5);
    expect((await list('pods?nodeName=nowhere&phase=Running&status=Running')).totalItems).toBe(0);
    expect((await list('secrets?label=generic-test&type=Opaque')).totalItems).toBe(5);
  });

  test('a list of a built-in resource can be filtered by the display name of the objects', async () => {
    const annotations = { 'platform.io/alias-name': 'Einstellungen' };
    await patch('/api/v1/namespaces/generic-2/configmaps/settings', { metadata: { annotations } });
    await eventually('the alias is found', async () => {
      expect(named(await list('configmaps?alias=stell'))).toEqual(['generic-2/settings']);
    });
  });
});

describe('the components of the platform', () => {
  test("the components of the platform include the platform's own workloads", async () => {
    const { items } = (await send('components')).json as {
      items: { metadata: { name: string }; services: string[] }[];
    };
    expect(items.find(({ metadata }) => metadata.name === 'platform-apiserver')).toMatchObject({
      kind: 'Component',
      metadata: { namespace: 'platform-system' },
      workload: { apiVersion: 'apps/v1', kind: 'Deployment' },
      services: ['platform-apiserver'],
    });
    const { items: nodes } = await list('nodes');
    expect((await send('componenthealth')).json).toMatchObject({
      kind: 'ComponentHealth',
      components: { total: items.length },
      nodes: { total: nodes.length },
    });
    expectStatus(await as(tokens['generic-none'] ?? '', 'componenthealth'), 403, 'Forbidden');
  });
});

describe('without the right to all namespaces', () => {
  test('a list without the right to all namespaces contains and counts only objects that the caller is allowed to list', async () => {
    const two = await list('configmaps?names=settings&sortBy=.data.of&ascending=true', tokens['generic-two']);
    expect(named(two)).toEqual(['generic-2/settings', 'generic-4/settings']);
    expect(two.totalItems).toBe(2);
    expect(named(await list('namespaces/generic-4/configmaps', tokens['generic-two']))).toContain('generic-4/settings');
    expectStatus(await as(tokens['generic-two'] ?? '', 'namespaces/generic-5/configmaps'), 403, 'Forbidden');
    expectStatus(await as(tokens['generic-two'] ?? '', 'namespaces/generic-1/configmaps/settings'), 403, 'Forbidden');
  });

  test('a watch without the right to all namespaces shows only objects that the caller is allowed to watch', async () => {
    const { metadata } = await list('configmaps?limit=0', tokens['generic-two']);
    const stream = await watching(
      `configmaps?watch=1&resourceVersion=${metadata.resourceVersion}`,
      tokens['generic-two'],
    );
    await patch('/api/v1/namespaces/generic-3/configmaps/settings', { data: { seen: 'no' } });
    await patch('/api/v1/namespaces/generic-2/configmaps/settings', { data: { seen: 'yes' } });
    await stream.event(({ object: { metadata: of } }) => of.name === 'settings');
    expect(stream.events.map(({ object: { metadata: of } }) => (of as { namespace?: string }).namespace)).toEqual([
      'generic-2',
    ]);
    stream.close();
  });

  test('the list of namespaces contains the namespaces that a RoleBinding allows the caller to get, as in the core API', async () => {
    const seen = await list('namespaces', tokens['generic-viewer']);
    expect(seen.items.map(({ metadata: { name } }) => name)).toEqual(['generic-3']);
    const other = await kube().stream('/api/v1/namespaces/generic-3', {
      headers: { 'impersonate-user': 'generic-viewer', 'impersonate-group': 'system:authenticated' },
    });
    other.body.resume();
    expect(other.status).toBe(200);
    const stream = await watching('namespaces?watch=1', tokens['generic-viewer']);
    await stream.event(({ object: { metadata: of } }) => of.name === 'generic-3');
    stream.close();
    expectStatus(await as(tokens['generic-two'] ?? '', 'namespaces'), 403, 'Forbidden');
  });

  test('a caller without any right gets the error message of kube-apiserver', async () => {
    const other = await kube().stream('/api/v1/configmaps', {
      headers: { 'impersonate-user': 'generic-none', 'impersonate-group': 'system:authenticated' },
    });
    const chunks: Buffer[] = [];
    for await (const chunk of other.body) chunks.push(chunk as Buffer);
    const status = expectStatus(await as(tokens['generic-none'] ?? '', 'configmaps'), 403, 'Forbidden');
    expect(status).toEqual(JSON.parse(Buffer.concat(chunks).toString('utf8')));
  });
});

describe('Secrets', () => {
  test('Secrets are read with the identity of the caller', async () => {
    const all = await list('secrets?names=hidden&sortBy=name&limit=2', tokens['generic-secrets']);
    expect(all).toMatchObject({ kind: 'SecretList', apiVersion: 'v1', totalItems: 5 });
    expect(all.items).toHaveLength(2);
    const one = (await as(tokens['generic-secrets'] ?? '', 'namespaces/generic-2/secrets/hidden')).json as KubeObject;
    expect(one).toMatchObject({
      kind: 'Secret',
      metadata: { selfLink: '/api/v1/namespaces/generic-2/secrets/hidden' },
      data: { of: Buffer.from('generic-2').toString('base64') },
    });
    expect(one.metadata.managedFields).toBeUndefined();
    expectStatus(await as(tokens['generic-secrets'] ?? '', 'namespaces/generic-2/secrets/none'), 404, 'NotFound');
  });

  test('Secrets are listed in the namespaces in which the caller is allowed to list them', async () => {
    const two = await list('secrets?names=hidden', tokens['generic-two']);
    expect(named(two).toSorted()).toEqual(['generic-2/hidden', 'generic-4/hidden']);
    expect(two.totalItems).toBe(2);
    expectStatus(await as(tokens['generic-none'] ?? '', 'secrets'), 403, 'Forbidden');
  });

  test('Secrets can be watched', async () => {
    const stream = await watching('namespaces/generic-3/secrets?watch=1&labelSelector=generic-test=yes');
    await stream.event(({ type, object: { metadata } }) => type === 'ADDED' && metadata.name === 'hidden');
    await patch('/api/v1/namespaces/generic-3/secrets/hidden', { stringData: { more: 'a' } });
    const { object: changed } = await stream.event(({ type }) => type === 'MODIFIED');
    expect(changed).toMatchObject({
      kind: 'Secret',
      metadata: { selfLink: '/api/v1/namespaces/generic-3/secrets/hidden' },
      data: { more: 'YQ==' },
    });
    expect(changed.metadata.managedFields).toBeUndefined();
    stream.close();
    expectStatus(await send('secrets?watch=1&name=hidden'), 400, 'BadRequest');
  });

  test('Secrets are read with the identity of a ServiceAccount that kube-apiserver has authenticated', async () => {
    await createServiceAccount('generic-robot');
    try {
      const token = await serviceAccountToken('generic-robot');
      expectStatus(await as(token, 'namespaces/generic-3/secrets'), 403, 'Forbidden');
      const subject = { kind: 'ServiceAccount', name: 'generic-robot', namespace: 'default' } as const;
      await bindIn('generic-3', 'generic-robot', subject);
      await eventually('the binding is in effect', async () => {
        expect(named(await list('secrets', token))).toEqual(['generic-3/hidden']);
      });
      expect((await as(token, 'namespaces/generic-3/secrets/hidden')).status).toBe(200);
    } finally {
      await removeServiceAccount('generic-robot');
    }
  });

  test('Secrets are not cached', async () => {
    const { text } = await call(`${gateway()}/metrics`, { token: await adminToken() });
    expect(text).toMatch(/store_objects\{resource="configmaps"\} \d/);
    expect(text).not.toContain('store_objects{resource="secrets"}');
  });
});

const pod = (name: string, more: object): object => ({
  kind: 'Pod',
  apiVersion: 'v1',
  metadata: { name, labels: { ...label, ...more } },
  spec: { containers: [{ name: 'c', image: 'example.com/c' }], nodeName: 'generic-nowhere' },
});
const service = (selector?: object): object =>
  object('Service', 'v1', 'selecting', {
    spec: { clusterIP: 'None', ...(selector === undefined ? {} : { selector }) },
  });
const pods = async (query: string, path = 'pods'): Promise<string[]> =>
  named(await list(`${path}?label=generic-test&sortBy=.metadata.namespace&ascending=true&${query}`));

describe('the list of pods that a Service selects', () => {
  const labels = { ...label, app: 'selected' };
  beforeAll(async () => {
    for (const namespace of ['generic-1', 'generic-2']) {
      await create(`/api/v1/namespaces/${namespace}/pods`, pod('one', { app: 'selected' }));
      await create(`/api/v1/namespaces/${namespace}/pods`, pod('two', { app: 'other' }));
    }
    await create('/api/v1/namespaces/generic-1/services', service(labels));
    await create('/api/v1/namespaces/generic-2/services', service({ app: 'other' }));
    await create('/api/v1/namespaces/generic-3/services', service());
    await create('/api/v1/namespaces/generic-3/pods', pod('one', { app: 'selected' }));
  });

  test('the list of pods that a Service selects contains only pods in the namespace of the Service', async () => {
    await eventually('the caches have the pods', async () => {
      expect(await pods('')).toHaveLength(5);
      expect(await pods('serviceName=selecting')).toEqual(['generic-1/one', 'generic-2/two']);
    });
    expect(await pods('serviceName=selecting', 'namespaces/generic-1/pods')).toEqual(['generic-1/one']);
    expect(await pods('serviceName=selecting', 'namespaces/generic-3/pods')).toEqual([]);
    expect(await pods('serviceName=nothing')).toEqual([]);
  });

  test("the list of pods that a Service selects changes with the Service's selector", async () => {
    const path = '/api/v1/namespaces/generic-2/services/selecting';
    await patch(path, { spec: { selector: { app: 'selected' } } });
    await eventually('the cache has the changed Service', async () => {
      expect(await pods('serviceName=selecting', 'namespaces/generic-2/pods')).toEqual(['generic-2/one']);
    });
  });

  test('a list of the pods that a Service selects gets 403 without the right to list Services', async () => {
    await createClusterRole('generic-pods', [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] }]);
    await bind('generic-pods', 'generic-pods', { kind: 'User', name: 'generic-none' });
    try {
      const token = tokens['generic-none'] ?? '';
      await eventually('the binding is in effect', async () => {
        expect(await list('namespaces/generic-1/pods', token)).toMatchObject({ kind: 'PodList' });
      });
      for (const path of ['namespaces/generic-1/pods', 'pods']) {
        const { message } = expectStatus(await as(token, `${path}?serviceName=selecting`), 403, 'Forbidden');
        expect(message).toMatch(
          /^services "selecting" is forbidden: User "generic-none" cannot list resource "services" in API group "" /,
        );
      }
    } finally {
      await unbind('generic-pods');
      await removeClusterRole('generic-pods');
    }
  });
});

const group = 'generic.example.com';
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const definition = (plural: string, kind: string, properties: object): object => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { plural, kind, singular: kind.toLowerCase() },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties } } } },
      },
    ],
  },
});

/** Allows the server's ServiceAccount to read the group, as an administrator might. */
async function allowCaching(): Promise<() => Promise<void>> {
  await createClusterRole('generic-copied', [
    { apiGroups: [group], resources: ['*'], verbs: ['get', 'list', 'watch'] },
  ]);
  await bind('generic-copied', 'generic-copied', {
    kind: 'ServiceAccount',
    name: 'platform-apiserver',
    namespace: 'platform-system',
  });
  return async () => {
    await unbind('generic-copied');
    await removeClusterRole('generic-copied');
  };
}

const isCopied = async (resource: string): Promise<boolean> =>
  (await call(`${gateway()}/metrics`, { token: await adminToken() })).text.includes(
    `store_objects{resource="${resource}"}`,
  );

describe('a custom resource', () => {
  const widgets = `/apis/${group}/v1/namespaces/generic-1/widgets`;
  afterAll(async () => {
    for (const plural of ['widgets', 'gadgets']) await remove(`${definitions}/${plural}.${group}`);
  });

  test('a custom resource is served soon after its CRD is created or changed, and no longer after the CRD is deleted', async () => {
    const forbid = await allowCaching();
    try {
      expectStatus(await send('widgets'), 404, 'NotFound');
      await create(definitions, definition('widgets', 'Widget', { size: { type: 'integer' } }));
      await eventually('widgets are served', async () => {
        const response = await send('widgets');
        if (response.status !== 200) throw new Error(response.text);
      });
      await eventually('a widget can be created', () =>
        create(widgets, { apiVersion: `${group}/v1`, kind: 'Widget', metadata: { name: 'a' }, spec: { size: 1 } }),
      );
      await eventually('the resource is listed', async () => {
        expect(await list('widgets')).toMatchObject({
          kind: 'WidgetList',
          apiVersion: `${group}/v1`,
          totalItems: 1,
          items: [{ metadata: { name: 'a', selfLink: `${widgets}/a` }, spec: { size: 1 } }],
        });
      });
      expect(await isCopied(`widgets.${group}`)).toBe(true);

      const first = await watching('widgets?watch=1');
      await first.event(({ type }) => type === 'ADDED');
      await kube().json(`${definitions}/widgets.${group}`, {
        method: 'PATCH',
        contentType: 'application/json-patch+json',
        body: [
          {
            op: 'add',
            path: '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/colour',
            value: { type: 'string', default: 'red' },
          },
        ],
      });
      await first.ended;
      await eventually('the widgets match their new definition', async () => {
        expect((await list('widgets')).items[0]?.spec).toEqual({ size: 1, colour: 'red' });
      });

      const second = await watching('widgets?watch=1');
      await second.event(({ type }) => type === 'ADDED');
      await remove(`${definitions}/widgets.${group}`);
      await second.ended;
      expect(second.events.map(({ type }) => type)).toEqual(['ADDED', 'DELETED']);
      await eventually('widgets are gone', async () => {
        expectStatus(await send('widgets'), 404, 'NotFound');
      });
    } finally {
      await forbid();
    }
  });

  test('a custom resource that the server is not allowed to cache is read with the identity of the caller', async () => {
    await create(definitions, definition('gadgets', 'Gadget', {}));
    const gadgets = `/apis/${group}/v1/namespaces/generic-2/gadgets`;
    await eventually('a gadget can be created', () =>
      create(gadgets, { apiVersion: `${group}/v1`, kind: 'Gadget', metadata: { name: 'g' }, spec: {} }),
    );
    await eventually('the resource is listed', async () => {
      expect(named(await list('gadgets'))).toEqual(['generic-2/g']);
    });
    expect(await isCopied(`gadgets.${group}`)).toBe(false);
    expectStatus(await as(tokens['generic-none'] ?? '', 'gadgets'), 403, 'Forbidden');
  });
});

test('a list gets 503 with the reason if the resource does not fit into the memory for caches', async () => {
  const filler = 'x'.repeat(200_000);
  for (const name of namespaces)
    await create(`/api/v1/namespaces/${name}/configmaps`, object('ConfigMap', 'v1', 'large', { data: { filler } }));
  const restore = await configure((configuration) => {
    configuration['cache'] = { maxBytes: '700Ki' };
  });
  try {
    const refusal = await eventually('the ConfigMaps do not fit', async () => {
      const response = await send('configmaps');
      return expectStatus(response, 503, 'ServiceUnavailable');
    });
    expect(refusal.message).toMatch(
      /^configmaps does not fit .* [\d.]+ MiB were read so far.*cache\.maxBytes in the configuration is 0\.7 MiB$/,
    );
    expect((await list('nodes?limit=0')).totalItems).toBeGreaterThan(0);
    expect((await list('namespaces?label=generic-test')).totalItems).toBe(5);
  } finally {
    await restore();
  }
  await eventually('the ConfigMaps fit again', async () => {
    expect((await list('configmaps?names=large')).totalItems).toBe(5);
  });
});

interface Event {
  readonly type: string;
  readonly object: KubeObject;
}

interface Watching {
  readonly events: readonly Event[];
  /** Returns the first matching event, past or future. */
  event(matches: (event: Event) => boolean): Promise<Event>;
  readonly ended: Promise<void>;
  close(): void;
}

async function watching(path: string, token?: string): Promise<Watching> {
  const stream = await open(`${gateway()}${base}/${path}`, { token: token ?? (await adminToken()) });
  if (stream.status !== 200) throw new Error((await read(stream)).text);
  let text = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  const ended = new Promise<void>((resolve) => {
    stream.once('close', resolve);
  });
  const events = (): Event[] =>
    text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Event);
  return {
    get events() {
      return events();
    },
    event: (matches) =>
      eventually('a matching event arrives', () => {
        const found = events().find(matches);
        if (found === undefined) throw new Error(`there were ${text}`);
        return found;
      }),
    ended,
    close: () => stream.destroy(),
  };
}
