/**
 * Lists of a caller whom RoleBindings name in many namespaces. Above 166 namespaces, the server refreshes the decisions
 * of kube-apiserver slowly (ADR 16).
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { mapConcurrent } from '../../src/runtime/promises.ts';
import { eventually } from '../labs/integration/eventually.ts';
import { call, gateway, type HttpResponse } from '../labs/integration/http.ts';
import {
  create,
  createClusterRole,
  kube,
  patch,
  remove,
  removeClusterRole,
  type KubeList,
} from '../labs/integration/kube.ts';
import { adminToken } from '../labs/integration/login.ts';
import { expectStatus } from '../labs/integration/status.ts';
import { addUsers, tokenOf } from '../labs/integration/users.ts';

type List = KubeList & { readonly totalItems: number };

const user = 'visible-many';
const role = 'visible-reader';
const apiGroup = 'rbac.authorization.k8s.io';
const namespaces = Array.from({ length: 170 }, (_, index) => `visible-${String(index).padStart(3, '0')}`);
const first = namespaces[0] ?? '';
const atOnce = 16;
/** Milliseconds until a lost right takes effect for new requests (docs/security.md). */
const maxDecisionAge = 12_000;

const bindings = (namespace: string): string => `/apis/${apiGroup}/v1/namespaces/${namespace}/rolebindings`;
const bindIn = (namespace: string): Promise<unknown> =>
  create(bindings(namespace), {
    metadata: { name: user },
    roleRef: { apiGroup, kind: 'ClusterRole', name: role },
    subjects: [{ apiGroup, kind: 'User', name: user }],
  });
const unbindIn = (namespace: string): Promise<void> => remove(`${bindings(namespace)}/${user}`);

/**
 * Deletes a namespace and its objects without the namespace controller. The controller takes about a minute for 170
 * namespaces, and longer if API groups are unavailable. Namespaces that later tests delete would have to wait.
 */
async function removeNamespace(name: string): Promise<void> {
  const path = `/api/v1/namespaces/${name}`;
  await remove(path);
  for (const collection of [bindings(name), `${path}/configmaps`, `${path}/serviceaccounts`]) await remove(collection);
  await kube().json(`${path}/finalize`, { method: 'PUT', body: { metadata: { name }, spec: { finalizers: [] } } });
}
const reading = (...resources: string[]): object => ({ apiGroups: [''], resources, verbs: ['get', 'list', 'watch'] });

let token = '';
let removeUsers: () => Promise<void>;
beforeAll(async () => {
  removeUsers = await addUsers({ [user]: [] });
  await createClusterRole(role, [reading('configmaps', 'namespaces')]);
  await mapConcurrent(namespaces, atOnce, async (name) => {
    await create('/api/v1/namespaces', { metadata: { name } });
    await create(`/api/v1/namespaces/${name}/configmaps`, { metadata: { name: 'visible' } });
    await bindIn(name);
  });
  token = await tokenOf(user);
}, 300_000);
afterAll(async () => {
  await mapConcurrent(namespaces, atOnce, removeNamespace);
  await removeClusterRole(role);
  await removeUsers();
}, 300_000);

const get = (resource: string): Promise<HttpResponse> =>
  call(`${gateway()}/kapis/resources.platform.io/v1alpha3/${resource}`, { token });

/** Returns the names of the namespaces on the first page of three, and the total. */
async function firstPage(resource: 'namespaces' | 'configmaps?name=visible'): Promise<[string[], number]> {
  const parameters = 'limit=3&sortBy=.metadata.namespace&ascending=true';
  const page =
    resource === 'namespaces' ? 'namespaces?limit=3&sortBy=name&ascending=true' : `${resource}&${parameters}`;
  const response = await get(page);
  expect({ status: response.status, text: response.text }).toMatchObject({ status: 200 });
  const { items, totalItems } = response.json as List;
  return [items.map(({ metadata: { namespace, name } }) => namespace ?? name), totalItems];
}

/** Returns the number of access reviews that the server has sent. */
async function reviews(): Promise<number> {
  const { text } = await call(`${gateway()}/metrics`, { token: await adminToken() });
  return [...text.matchAll(/^platform_apiserver_access_review_duration_seconds_count\S* (\d+)$/gm)]
    .map(([, count]) => Number(count))
    .reduce((sum, count) => sum + count, 0);
}

const all = namespaces.length;

test.each(['namespaces', 'configmaps?name=visible'] as const)(
  'a page of %s contains and counts the objects of all namespaces, and is repeated without an access review per namespace',
  async (resource) => {
    await eventually('kube-apiserver has noticed all bindings', async () => {
      expect(await firstPage(resource)).toEqual([namespaces.slice(0, 3), all]);
    });
    const before = await reviews();
    for (let time = 0; time < 20; time += 1) await firstPage(resource);
    expect((await reviews()) - before).toBeLessThan(all);
  },
);

test('a deleted role binding removes its namespace from the next pages, and a new one adds it again', async () => {
  await unbindIn(first);
  await eventually(
    'the namespace is not visible',
    async () => {
      expect(await firstPage('namespaces')).toEqual([namespaces.slice(1, 4), all - 1]);
      expect(await firstPage('configmaps?name=visible')).toEqual([namespaces.slice(1, 4), all - 1]);
    },
    maxDecisionAge,
  );
  await bindIn(first);
  await eventually('the namespace is visible', async () => {
    expect(await firstPage('namespaces')).toEqual([namespaces.slice(0, 3), all]);
    expect(await firstPage('configmaps?name=visible')).toEqual([namespaces.slice(0, 3), all]);
  });
});

test('a role that loses a resource hides its objects within 12 seconds, although no role binding changes', async () => {
  await patch(`/apis/${apiGroup}/v1/clusterroles/${role}`, { rules: [reading('namespaces')] });
  await eventually(
    'the objects are hidden',
    async () => {
      expectStatus(await get('configmaps?name=visible&limit=3'), 403, 'Forbidden');
    },
    maxDecisionAge,
  );
  expect(await firstPage('namespaces')).toEqual([namespaces.slice(0, 3), all]);
});
