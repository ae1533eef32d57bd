/** Authorization of callers: the decision and the message of kube-apiserver. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { KubeRequest } from '../../src/cluster/client/client.ts';
import { eventually } from '../labs/integration/eventually.ts';
import { aggregated, apisPath, call, gateway, nodesPath, type HttpResponse } from '../labs/integration/http.ts';
import {
  bind,
  createClusterRole,
  kube,
  nodes,
  removeClusterRole,
  unbind,
  type KubeList,
  type Subject,
} from '../labs/integration/kube.ts';
import { login } from '../labs/integration/login.ts';
import { expectStatus } from '../labs/integration/status.ts';
import { addUsers, tokenOf } from '../labs/integration/users.ts';

const users = {
  'rights-reader': [],
  'rights-member': ['rights-readers'],
  'rights-core': [],
  'rights-platform': [],
  'rights-get': [],
  'rights-list': [],
  'rights-metrics': [],
} as const;
type User = keyof typeof users;

const user = (name: User): Subject => ({ kind: 'User', name });
const reading = { resources: ['nodes'], verbs: ['get', 'list', 'watch'] };
/** Users with a role of the same name. */
const withRole = ['rights-core', 'rights-platform', 'rights-get', 'rights-list', 'rights-metrics'] as const;
let oneNode = '';

let removeUsers: () => Promise<void>;
beforeAll(async () => {
  removeUsers = await addUsers(users);
  oneNode = (await nodes()).items[0]?.metadata.name ?? '';
  await createClusterRole('rights-core', [{ apiGroups: [''], ...reading }]);
  await createClusterRole('rights-platform', [{ apiGroups: ['resources.platform.io'], ...reading }]);
  const one = { apiGroups: ['', 'resources.platform.io'], resources: ['nodes'], resourceNames: [oneNode] };
  await createClusterRole('rights-get', [{ ...one, verbs: ['get'] }]);
  await createClusterRole('rights-list', [{ ...one, verbs: ['list'] }]);
  await createClusterRole('rights-metrics', [{ nonResourceURLs: ['/metrics'], verbs: ['get'] }]);
  for (const name of withRole) await bind(name, name, user(name));
  await bind('rights-members', 'platform-node-reader', { kind: 'Group', name: 'rights-readers' });
});
afterAll(async () => {
  for (const name of withRole) {
    await unbind(name);
    await removeClusterRole(name);
  }
  for (const name of ['rights-members', 'rights-reader']) await unbind(name);
  await removeUsers();
});

const tokens = new Map<User, Promise<string>>();
/** Sends a request with a token of the user. The token is fetched only once. */
async function as(name: User, url: string, method = 'GET'): Promise<HttpResponse> {
  const token = tokens.get(name) ?? tokenOf(name);
  tokens.set(name, token);
  return await call(url, { method, token: await token });
}

/** Returns the response of kube-apiserver to alice. */
async function other(path: string, method: NonNullable<KubeRequest['method']>): Promise<unknown> {
  const { status, body } = await kube().stream(path, {
    method,
    headers: { 'impersonate-user': 'alice', 'impersonate-group': 'staff' },
  });
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(chunk as Buffer);
  expect(status).toBe(403);
  return JSON.parse(Buffer.concat(chunks).toString('utf8'));
}

describe('a 403 has the same message as a 403 from kube-apiserver', () => {
  let token = '';
  beforeAll(async () => {
    ({ access_token: token } = await login('alice'));
  });

  test.each([
    '',
    '?limit=1',
    '?watch=true',
    '?watch=',
    '?watch=0',
    '?fieldSelector=metadata.name%3Dsome-node',
    '?fieldSelector=metadata.name%3D%3Dsome-node,spec.unschedulable%3Dtrue&watch=1',
    '?fieldSelector=metadata.name!%3Dsome-node',
    '?fieldSelector=spec.unschedulable%3D%5C,metadata.name%3Dsome-node',
    '/some-node',
    '/some%20node',
  ])(
    'a 403 for GET /kapis/…/nodes%s has the same message as a 403 from kube-apiserver for the core nodes',
    async (path) => {
      const response = await call(`${gateway()}${nodesPath}${path}`, { token });
      expect(expectStatus(response, 403, 'Forbidden')).toEqual(await other(`/api/v1/nodes${path}`, 'GET'));
    },
  );

  test('a 403 for a HEAD request has no body', async () => {
    const { status, body } = await call(`${gateway()}${nodesPath}`, { token, method: 'HEAD' });
    expect({ status, body }).toEqual({ status: 403, body: Buffer.alloc(0) });
  });

  test.each<[NonNullable<KubeRequest['method']>, string]>([
    ['GET', `${apisPath}/nodes`],
    ['GET', `${apisPath}/nodes?watch=1`],
    ['GET', `${apisPath}/nodes?watch=yes`],
    ['GET', `${apisPath}/nodes?watch=False`],
    ['GET', `${apisPath}/nodes?fieldSelector=metadata.name%3Dsome-node`],
    ['GET', `${apisPath}/nodes/some-node?watch=true`],
    ['GET', `${apisPath}/nodes?limit=1&continue=nonsense`],
    ['GET', `${apisPath}/nodes/some-node`],
    ['GET', `${apisPath}/watch/nodes`],
    ['GET', `${apisPath}/watch/nodes/some-node`],
    ['GET', `${apisPath}/nodes/some-node/status`],
    ['GET', `${apisPath}/namespaces/default/nodes`],
    ['POST', `${apisPath}/nodes`],
    ['PUT', `${apisPath}/nodes/some-node`],
    ['PATCH', `${apisPath}/nodes/some-node`],
    ['DELETE', `${apisPath}/nodes/some-node`],
    ['DELETE', `${apisPath}/nodes`],
    ['GET', `${apisPath}/nothings`],
    ['GET', '/apis/resources.platform.io/v9/nothings/some'],
    ['GET', '/metrics'],
    ['GET', '/nothing/at/all'],
    ['POST', '/nothing'],
  ])('a 403 for %s %s has the same message as a 403 from kube-apiserver', async (method, path) => {
    const response = await call(`${aggregated()}${path}`, { token, method });
    expect(expectStatus(response, 403, 'Forbidden')).toEqual(await other(path, method));
  });

  test('a 403 for /metrics at the gateway has the same message as a 403 from kube-apiserver', async () => {
    const response = await call(`${gateway()}/metrics`, { token });
    expect(expectStatus(response, 403, 'Forbidden')).toEqual(await other('/metrics', 'GET'));
  });
});

describe('discovery', () => {
  test.each(['/kapis', '/kapis/resources.platform.io', '/kapis/resources.platform.io/v1alpha3'])(
    'discovery at %s is allowed for every authenticated caller at the gateway',
    async (path) => {
      expect((await as('rights-reader', `${gateway()}${path}`)).status).toBe(200);
    },
  );

  test.each(['/apis', '/apis/resources.platform.io', apisPath, '/openapi/v2', '/openapi/v3', '/version'])(
    'discovery at %s is allowed for every authenticated caller through the aggregator',
    async (path) => {
      expect((await as('rights-reader', `${aggregated()}${path}`)).status).toBe(200);
    },
  );
});

const urls = (): string[] =>
  [0, 1].flatMap((replica) => [
    `${gateway(replica as 0 | 1)}${nodesPath}?limit=1`,
    `${aggregated(replica as 0 | 1)}${apisPath}/nodes?limit=1`,
    `${gateway(replica as 0 | 1)}${nodesPath}/${oneNode}`,
  ]);

const statuses = (name: User): Promise<number[]> =>
  Promise.all(urls().map(async (url) => (await as(name, url)).status));
const everywhere = (status: number): number[] => urls().map(() => status);

describe('the ClusterRole platform-node-reader', () => {
  test('the ClusterRole platform-node-reader allows a user to read nodes while a binding exists, without a new login', async () => {
    expect(await statuses('rights-reader')).toEqual(everywhere(403));
    await bind('rights-reader', 'platform-node-reader', user('rights-reader'));
    await eventually('the user is allowed to read', async () => {
      expect(await statuses('rights-reader')).toEqual(everywhere(200));
    });
    await unbind('rights-reader');
    await eventually('the user is no longer allowed to read', async () => {
      expect(await statuses('rights-reader')).toEqual(everywhere(403));
    });
  });

  test('the ClusterRole platform-node-reader allows the members of a group to read nodes at /kapis and /apis', async () => {
    expect(await statuses('rights-member')).toEqual(everywhere(200));
  });

  test('the ClusterRole platform-node-reader allows the members of a group to list all nodes', async () => {
    const found = (await as('rights-member', `${gateway()}${nodesPath}`)).json as KubeList;
    expect(found.items).toHaveLength((await nodes()).items.length);
  });
});

describe('a partial right', () => {
  test('a partial right to core nodes is sufficient for /kapis, but not for /apis', async () => {
    expect((await as('rights-core', `${gateway()}${nodesPath}`)).status).toBe(200);
    const response = await as('rights-core', `${aggregated()}${apisPath}/nodes`);
    expect(expectStatus(response, 403, 'Forbidden').message).toBe(
      'nodes.resources.platform.io is forbidden: User "rights-core" cannot list resource "nodes" in API group "resources.platform.io" at the cluster scope',
    );
  });

  test.each(['', '/some-node', '?watch=true'])(
    "a partial right to the platform's nodes is not sufficient for /kapis or /apis, and the error names the missing right: nodes%s",
    async (path) => {
      for (const url of [`${gateway()}${nodesPath}${path}`, `${aggregated()}${apisPath}/nodes${path}`]) {
        const { message } = expectStatus(await as('rights-platform', url), 403, 'Forbidden');
        expect(message).toContain('User "rights-platform" cannot ');
        expect(message).toContain(' resource "nodes" in API group "" at the cluster scope');
      }
    },
  );

  test.each<[User, string[]]>([
    ['rights-get', ['/NODE']],
    ['rights-list', ['?fieldSelector=metadata.name=NODE', '?fieldSelector=spec.unschedulable!=x,metadata.name==NODE']],
  ])('a partial right to one verb on one name allows the user %s nothing else', async (name, allowed) => {
    const refused = [
      '',
      // The response does not reveal whether the node exists.
      '/another-node',
      '?names=NODE',
      '?watch=true',
      '?watch=true&fieldSelector=metadata.name=NODE',
      '?fieldSelector=metadata.name=another-node',
      '?fieldSelector=metadata.name!=NODE',
      '?fieldSelector=spec.unschedulable!=\\,metadata.name=NODE',
      '?labelSelector=metadata.name=NODE',
    ];
    const expected = Object.fromEntries([
      ...refused.map((path) => [path, 403] as const),
      ...allowed.map((path) => [path, 200] as const),
    ]);
    // Paths of /kapis may start with a dot, which is not a valid label at kube-apiserver.
    const dotted = '?fieldSelector=.metadata.name=NODE';
    for (const [base, ofDotted] of [
      [`${gateway()}${nodesPath}`, name === 'rights-list' ? 200 : 403],
      [`${aggregated()}${apisPath}/nodes`, 403],
    ] as const) {
      const wanted = { ...expected, [dotted]: ofDotted };
      const found: Record<string, number> = {};
      for (const path of Object.keys(wanted))
        found[path] = (await as(name, `${base}${path.replace('NODE', oneNode)}`)).status;
      expect(found).toEqual(wanted);
    }
  });

  test('a user with the right to list only one name gets the object with that name', async () => {
    for (const base of [`${gateway()}${nodesPath}`, `${aggregated()}${apisPath}/nodes`]) {
      const { items } = (await as('rights-list', `${base}?fieldSelector=metadata.name=${oneNode}`)).json as KubeList;
      expect(items.map(({ metadata }) => metadata.name)).toEqual([oneNode]);
    }
  });

  test('a partial right to a non-resource URL allows only that URL', async () => {
    for (const base of [gateway(), aggregated()]) {
      const { status, text } = await as('rights-metrics', `${base}/metrics`);
      expect(status).toBe(200);
      expect(text).toContain('platform_apiserver_requests_total');
      expectStatus(await as('rights-metrics', `${base}/metrics/x`), 403, 'Forbidden');
    }
  });
});
