/** The gateway compared with kube-apiserver (docs/reference/gateway.md): both return equal responses. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { execute, type Executed } from '../../hack/cluster/exec.ts';
import { stopApiserver } from '../labs/integration/control-plane.ts';
import { direct, received, through, type Person, type Received, type Way } from '../labs/integration/direct.ts';
import { eventually } from '../labs/integration/eventually.ts';
import { call, gateway, secureGateway, type Call } from '../labs/integration/http.ts';
import {
  create,
  createServiceAccount,
  get as read,
  nodes,
  patch,
  remove,
  removeServiceAccount,
  serviceAccountToken,
  type KubeObject,
} from '../labs/integration/kube.ts';
import { foundPath, lab } from '../labs/integration/lab.ts';
import { encode, login, platform } from '../labs/integration/login.ts';
import { passwords } from '../labs/integration/people.ts';
import { responsesIn, connect, drain } from '../labs/integration/raw.ts';
import { remember } from '../labs/integration/secrets.ts';
import { auditedNamespace as namespace } from '../labs/integration/audit.ts';
import { createUserWithPassword, removeUser } from '../labs/integration/user-objects.ts';

const group = 'gateway-testers';
const core = `/api/v1/namespaces/${namespace}`;
const configMaps = `${core}/configmaps`;
const deployments = `/apis/apps/v1/namespaces/${namespace}/deployments`;
const json = { 'content-type': 'application/json' };

let gwen: Person;
beforeAll(async () => {
  await create('/api/v1/namespaces', { metadata: { name: namespace } });
  const apiGroup = 'rbac.authorization.k8s.io';
  const rbac = `/apis/${apiGroup}/v1`;
  const subjects = [{ apiGroup, kind: 'Group', name: group }];
  // The group has the ClusterRole `admin` in one namespace, and is allowed to read nodes.
  await create(`${rbac}/namespaces/${namespace}/rolebindings`, {
    metadata: { name: group },
    roleRef: { apiGroup, kind: 'ClusterRole', name: 'admin' },
    subjects,
  });
  await create(`${rbac}/clusterrolebindings`, {
    metadata: { name: group },
    roleRef: { apiGroup, kind: 'ClusterRole', name: 'platform-node-reader' },
    subjects,
  });
  const { metadata } = await createUserWithPassword('gwen', { groups: [group] });
  const { access_token: token } = await login('gwen', secureGateway(), passwords.alice);
  gwen = { username: 'gwen', uid: metadata.uid ?? '', groups: [group, 'system:authenticated'], token };
});
afterAll(async () => {
  await removeUser('gwen');
  await remove(`/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/${group}`);
  await remove(`/api/v1/namespaces/${namespace}`);
});

const both = (path: string, options?: Call): Promise<Received[]> =>
  Promise.all([direct, through].map((way) => received(way(gwen, path, options))));

async function expectSame(path: string, options?: Call): Promise<Received> {
  const [one, other] = await both(path, options);
  expect(other).toEqual(one);
  return other as Received;
}

const timeless = (text: string): string => text.replaceAll(/"creationTimestamp":"[^"]*"/g, '"creationTimestamp":""');

const tables =
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json';

describe('the gateway and kube-apiserver return the same bytes', () => {
  test.each<[string, Record<string, string>]>([
    ['/version', {}],
    ['/api', {}],
    ['/api/', {}],
    ['/api', { accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' }],
    ['/apis', {}],
    ['/apis', { accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' }],
    ['/api/v1', {}],
    ['/apis/apps', {}],
    ['/apis/apps/v1', {}],
    ['/apis/resources.platform.io/v1alpha3', {}],
    ['/apis/resources.platform.io/v1alpha3/nodes?limit=2', {}],
    ['/openapi/v2', {}],
    [
      '/openapi/v2',
      { accept: 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf', 'accept-encoding': 'gzip' },
    ],
    ['/openapi/v3', {}],
    ['/openapi/v3/apis/apps/v1', {}],
    ['/api/v1/nodes', {}],
    ['/api/v1/nodes', { accept: tables }],
    ['/api/v1/nodes', { accept: 'application/vnd.kubernetes.protobuf' }],
    ['/api/v1/nodes', { accept: 'application/yaml' }],
    ['/api/v1/nodes', { accept: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1' }],
    ['/api/v1/nodes', { 'user-agent': 'curl/8' }],
    ['/api/v1/nodes/node-1?pretty=true', {}],
    [
      '/api/v1/nodes?labelSelector=kubernetes.io%2Fhostname%20in%20(node-1,node-2)&fieldSelector=metadata.name!%3Dnode-2',
      {},
    ],
    [`${configMaps}/kube-root-ca.crt`, {}],
    // Requests that get an error.
    ['/api/v1/nodes/nobody', {}],
    ['/api/v1/nodes?labelSelector=%25%25', {}],
    ['/api/v1/nodes?limit=x', {}],
    ['/api/v1/nodes?timeout=nonsense', {}],
    ['/api/v1/nodes', { accept: 'text/csv' }],
    ['/api/v1/nowhere', {}],
    ['/api/v9/pods', {}],
    ['/apis/nothing.example.com/v1/things', {}],
    ['/api/v1/namespaces/kube-system/secrets', {}],
    ['/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication', {}],
    ['/api/v1/secrets', {}],
    ['/api/v1/nodes/node-1/proxy/metrics', {}],
    ['/apis/rbac.authorization.k8s.io/v1/clusterroles', {}],
    [`${core}/pods/none/log?follow=true`, {}],
  ])('the gateway and kube-apiserver return the same bytes for GET %s with the headers %j', async (path, headers) => {
    // Wait until both responses contain the earlier writes.
    await eventually(`both return the same for ${path}`, () => expectSame(path, { headers }));
  });

  test('the gateway and kube-apiserver return the same bytes for the pages of a list, with continue tokens of either server', async () => {
    // Writes of other components change the resourceVersion of every list.
    const first = await eventually('both return the same first page', () => expectSame('/api/v1/nodes?limit=3'));
    const { metadata } = JSON.parse(first.body) as { metadata: { continue: string } };
    await expectSame(`/api/v1/nodes?limit=3&continue=${metadata.continue}`);
  });

  test('the gateway and kube-apiserver return the same bytes for a conditional GET of an unchanged object', async () => {
    const { headers } = await expectSame('/openapi/v3/api/v1');
    const again = await expectSame('/openapi/v3/api/v1', { headers: { 'if-none-match': String(headers['etag']) } });
    expect(again).toMatchObject({ status: 304, body: '' });
  });

  test.each(['HEAD', 'OPTIONS'])('the gateway and kube-apiserver return the same bytes for %s', async (method) => {
    await expectSame('/api/v1/nodes/node-1', { method });
  });

  test.each<[string, string, string, Record<string, string>]>([
    ['POST', configMaps, '{"metadata":', json],
    ['POST', configMaps, '{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}', json],
    ['POST', configMaps, '{"metadata":{"name":"NO"}}', json],
    ['POST', configMaps, '{"metadata":{"name":"a"}}', { 'content-type': 'text/csv' }],
    // kube-apiserver would close the connection before it has read a much longer body.
    ['POST', configMaps, 'x'.repeat(3_200_000), json],
    ['POST', '/api/v1/nodes', '{"metadata":{"name":"mine"}}', json],
    ['PUT', `${configMaps}/none`, '{"metadata":{"name":"none"}}', json],
    ['PATCH', `${configMaps}/none`, '{}', { 'content-type': 'application/merge-patch+json' }],
    ['PATCH', `${configMaps}/none`, '{}', json],
    ['DELETE', `${configMaps}/none`, '{"propagationPolicy":"Background"}', json],
    ['DELETE', '/api/v1/nodes/node-1', '', {}],
    ['DELETE', '/api/v1/namespaces/kube-system/pods', '', {}],
    [
      'POST',
      '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
      '{"spec":{"resourceAttributes":{"verb":"list","resource":"nodes"}}}',
      json,
    ],
    ['POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', '{}', json],
  ])('the gateway and kube-apiserver return the same bytes for %s %s', async (method, path, body, headers) => {
    const { body: response, ...rest } = await received(through(gwen, path, { method, headers, body }));
    const beside = await received(direct(gwen, path, { method, headers, body }));
    expect({ ...rest, body: timeless(response) }).toEqual({ ...beside, body: timeless(beside.body) });
  });
});

/** Removes parts that differ between runs. */
const normalized = ({ status, headers, body }: Received): unknown => {
  const { 'content-length': _, ...rest } = headers;
  return {
    status,
    headers: rest,
    body: body
      .replaceAll(
        /"(resourceVersion|creationTimestamp|continue|time|lastTransitionTime|lastUpdateTime)":"[^"]*"/g,
        '"$1":""',
      )
      .replaceAll(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g, 'uid')
      .replaceAll(/"remainingItemCount":\d+/g, ''),
  };
};

interface Deployment extends KubeObject {
  readonly metadata: KubeObject['metadata'] & { readonly generation: number };
  readonly status?: { readonly observedGeneration?: number };
}

/** Creates, changes and deletes objects and returns each response. */
async function lifetimes(way: Way): Promise<unknown[]> {
  const steps: unknown[] = [];
  const step = async (method: string, path: string, body?: object, type = 'application/json'): Promise<Received> => {
    const headers = { 'content-type': type, accept: 'application/json' };
    const response = await received(
      way(gwen, path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }),
    );
    steps.push([method, path, normalized(response)]);
    return response;
  };
  const one = `${configMaps}/one`;
  const labels = { of: 'lives' };
  await step('POST', `${configMaps}?dryRun=All`, { metadata: { name: 'dry', labels } });
  const made = await step('POST', `${configMaps}?fieldManager=test`, {
    metadata: { name: 'one', labels },
    data: { a: '1' },
  });
  await step('POST', configMaps, { metadata: { name: 'one' } });
  const object = JSON.parse(made.body) as { metadata: object };
  await step('PUT', one, { ...object, data: { a: '2' } });
  await step('PUT', one, { ...object, data: { a: '3' } });
  await step('PATCH', one, { data: { b: '1' } }, 'application/merge-patch+json');
  await step('PATCH', one, [{ op: 'remove', path: '/data/b' }], 'application/json-patch+json');
  await step('PATCH', one, [{ op: 'remove', path: '/data/b' }], 'application/json-patch+json');
  const applied = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one' }, data: { a: '9', c: '1' } };
  const apply = 'application/apply-patch+yaml';
  await step('PATCH', `${one}?fieldManager=applier`, applied, apply);
  await step('PATCH', `${one}?fieldManager=applier&force=true`, applied, apply);
  const containers = [{ name: 'c', image: 'none' }];
  await step('POST', deployments, {
    metadata: { name: 'd', labels },
    spec: {
      paused: true,
      replicas: 0,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers } },
    },
  });
  await step('PATCH', `${deployments}/d/scale`, { spec: { replicas: 0 } }, 'application/merge-patch+json');
  await eventually('the controller has finished with the object', async () => {
    const { metadata, status } = await read<Deployment>(`${deployments}/d`);
    expect(status?.observedGeneration).toBe(metadata.generation);
  });
  const added = { spec: { template: { spec: { containers: [{ name: 'second', image: 'none' }] } } } };
  await step('PATCH', `${deployments}/d?dryRun=All`, added, 'application/strategic-merge-patch+json');
  await step('DELETE', `${deployments}/d`, { propagationPolicy: 'Background' });
  await step('DELETE', one, { preconditions: { uid: 'another' } });
  await step('DELETE', one);
  await step('GET', one);
  for (const name of ['x', 'y']) await step('POST', configMaps, { metadata: { name, labels } });
  await step('DELETE', `${configMaps}?labelSelector=of%3Dlives&limit=1`);
  await step('DELETE', `${configMaps}?labelSelector=of%3Dlives`);
  return steps;
}

test('creating, changing, applying and deleting objects has the same results at the gateway and kube-apiserver', async () => {
  const beside = await lifetimes(direct);
  expect(await lifetimes(through)).toEqual(beside);
});

test.each<[string, Record<string, string>]>([
  ['', {}],
  ['&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan', {}],
  ['', { accept: tables }],
  ['&labelSelector=nobody%3Dhas', {}],
])(
  'a watch with the parameters "%s" and headers %j sends the same events at the gateway and kube-apiserver, without delay',
  async (query, headers) => {
    const name = 'watched';
    const { metadata } = await nodes();
    const since = query.includes('sendInitialEvents') ? '' : `&resourceVersion=${metadata.resourceVersion}`;
    const path = `${configMaps}?watch=1&timeoutSeconds=3${since}${query}`;
    const responses = await Promise.all([direct, through].map((way) => way(gwen, path, { headers })));
    const watches = responses.map((response) => received(Promise.resolve(response)));
    await create(configMaps, { metadata: { name, labels: { a: 'b' } } });
    await patch(`${configMaps}/${name}`, { data: { x: 'y' } });
    await remove(`${configMaps}/${name}`);
    const [one, other] = (await Promise.all(watches)).map(({ body, ...rest }) => ({
      ...rest,
      body: body
        .replaceAll(/^\{"type":"BOOKMARK".*\n/gm, '')
        // kube-apiserver sends the column definitions once or twice in a watch that requests Tables.
        .replaceAll(/"columnDefinitions":.*?,"rows"/g, '"rows"'),
    }));
    expect(other).toEqual(one);
    expect(other?.status).toBe(200);
  },
);

describe('a ServiceAccount at the gateway', () => {
  const name = 'through-the-gateway';
  let token: string;
  beforeAll(async () => {
    await createServiceAccount(name);
    token = await serviceAccountToken(name);
    remember(token);
  });
  afterAll(() => removeServiceAccount(name));

  test('a ServiceAccount at the gateway keeps its identity with all extra fields', async () => {
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
    const options = { method: 'POST', headers: json, body: '{}', token };
    const response = await call(`${gateway()}${path}`, options);
    const { status } = response.json as { status: { userInfo: { username: string; groups: string[]; extra: object } } };
    expect(status.userInfo.username).toBe(`system:serviceaccount:default:${name}`);
    expect(status.userInfo.groups).toEqual([
      'system:serviceaccounts',
      'system:serviceaccounts:default',
      'system:authenticated',
    ]);
    expect(status.userInfo.extra).toHaveProperty(['authentication.kubernetes.io/credential-id']);
  });

  test('a ServiceAccount at the gateway has the same rights as at kube-apiserver', async () => {
    expect((await call(`${gateway()}/api/v1/secrets`, { token })).status).toBe(403);
  });
});

const raw = async (bytes: string): Promise<{ status: number; body: string }[]> => {
  const socket = connect(secureGateway(), 'http/1.1');
  const text = drain(socket);
  socket.write(bytes);
  return responsesIn(await text);
};

const get = (target: string, lines = ''): string =>
  `GET ${target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${gwen.token}\r\n${lines}Connection: close\r\n\r\n`;

describe("the gateway gives no access beyond the caller's rights", () => {
  const secret = '/api/v1/namespaces/kube-system/secrets';

  test.each([
    `/api/v1/nodes/..%2f..%2f..${secret}`,
    `/api/v1/nodes/../namespaces/kube-system/secrets`,
    `/api/v1/nodes/%2e%2e/namespaces/kube-system/secrets`,
    `/api/v1/nodes/..;/namespaces/kube-system/secrets`,
    `/api/v1/nodes/.%2e/namespaces/kube-system/secrets`,
    `//api/v1/namespaces/kube-system/secrets`,
    `/api/v1//namespaces/kube-system/secrets`,
    `/api/v1/namespaces/${namespace}/../kube-system/secrets`,
    `/api/v1/namespaces/${namespace}%2f..%2fkube-system/secrets`,
    `/api/v1/namespaces\\kube-system\\secrets`,
    `/api/v1/namespaces/kube-system/secrets%20`,
    `/api/v1/namespaces/kube-system/secrets%00`,
    `/api/v1/namespaces/kube-system/secrets;.json`,
    `/%61pi/v1/namespaces/kube-system/secrets`,
    `/API/v1/namespaces/kube-system/secrets`,
    `/kapis/../api/v1/namespaces/kube-system/secrets`,
    `/livez/..${secret}`,
    `/oauth/..${secret}`,
    `http://kubernetes.default.svc${secret}`,
    `https://127.0.0.1:1${secret}`,
    `/api/v1/proxy/namespaces/kube-system/services/x`,
    `/api/v1/nodes/node-1/proxy/pods`,
    `/api/v1/namespaces/${namespace}/services/x/proxy/../../../../../namespaces/kube-system/secrets`,
    `/api/v1/watch/namespaces/kube-system/secrets`,
    '/metrics',
    '/logs/',
    '/debug/pprof/',
    '/configz',
  ])("the gateway gives no access beyond the caller's rights for the path %s", async (target) => {
    const responses = await raw(get(target));
    expect(responses).toHaveLength(1);
    for (const { status, body } of responses) {
      expect(status).toBeGreaterThanOrEqual(300);
      expect(body).not.toMatch(/SecretList/);
    }
  });

  test.each([
    'Impersonate-User: admin\r\n',
    'Impersonate-User: system:admin\r\nImpersonate-Group: system:masters\r\n',
    'Impersonate-Group: system:masters\r\n',
    'impersonate-extra-scopes: all\r\n',
    'X-Remote-User: system:admin\r\nX-Remote-Group: system:masters\r\n',
    'Impersonate_User: system:admin\r\n',
    'Connection: Impersonate-User, Impersonate-Group, Impersonate-Uid\r\n',
    'Connection: Authorization\r\nConnection: impersonate-user\r\n',
    'X-HTTP-Method-Override: GET\r\nX-Original-URL: /api/v1/namespaces/kube-system/secrets\r\n',
    'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n',
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n',
    'X: y\r\n Impersonate-User: system:admin\r\n',
    'X: y\nImpersonate-User: system:admin\r\n',
  ])("the gateway gives no access beyond the caller's rights for the headers %j", async (lines) => {
    for (const { status, body } of await raw(get(secret, lines))) {
      expect([400, 403]).toContain(status);
      expect(body).not.toMatch(/SecretList/);
    }
  });
});

const review = (headers: Call['headers']): Promise<Received> =>
  received(
    through(gwen, '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
      method: 'POST',
      body: '{}',
      headers: { ...json, ...headers },
    }),
  );

describe('a user with the right to impersonate', () => {
  test('a user with the right to impersonate can act only as the users whom they are allowed to impersonate', async () => {
    await create('/apis/rbac.authorization.k8s.io/v1/clusterroles', {
      metadata: { name: 'may-be-heidi' },
      rules: [{ apiGroups: [''], resources: ['users'], verbs: ['impersonate'], resourceNames: ['heidi'] }],
    });
    await create('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
      metadata: { name: 'may-be-heidi' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'may-be-heidi' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: group }],
    });
    const { body } = await eventually('gwen is allowed to impersonate heidi', async () => {
      const response = await review({ 'impersonate-user': 'heidi' });
      expect(response.status).toBe(201);
      return response;
    });
    expect(JSON.parse(body)).toMatchObject({
      status: { userInfo: { username: 'heidi', groups: ['system:authenticated'] } },
    });
    for (const headers of [
      { 'impersonate-user': 'admin' },
      { 'impersonate-user': 'heidi', 'impersonate-group': 'platform:admins' },
      { 'impersonate-user': 'heidi', 'impersonate-group': 'system:masters' },
      { 'impersonate-user': 'heidi', 'impersonate-uid': '1' },
    ])
      expect((await review(headers)).status).toBe(403);
    await remove('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/may-be-heidi');
    await remove('/apis/rbac.authorization.k8s.io/v1/clusterroles/may-be-heidi');
  });
});

test("kube-apiserver's audit log names the user who sent a request through the gateway", async () => {
  const response = await through(gwen, `${configMaps}?limit=1`, { headers: { 'user-agent': 'audited' } });
  response.resume();
  const auditID = response.headers['audit-id'];
  const event = await eventually('the request is in the audit log', () => {
    const lines = readFileSync(join(lab().dir, 'audit.log'), 'utf8').split('\n');
    const line = lines.find((one) => one.includes(`"auditID":"${String(auditID)}"`));
    if (line === undefined) throw new Error(`no ${String(auditID)} in the audit log`);
    return JSON.parse(line) as object;
  });
  expect(event).toMatchObject({
    verb: 'list',
    user: { username: 'system:serviceaccount:platform-system:platform-apiserver' },
    impersonatedUser: { username: 'gwen', uid: gwen.uid, groups: gwen.groups },
    sourceIPs: expect.arrayContaining(['127.0.0.1']),
    userAgent: 'audited',
  });
});

const kubeconfigFile = (): string => {
  const path = join(lab().dir, 'gwen.kubeconfig');
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: secureGateway(), 'certificate-authority': lab().authorityFile } }],
    users: [{ name: 'u', user: { token: gwen.token } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u', namespace } }],
    'current-context': 'c',
  };
  writeFileSync(path, stringify(content), { mode: 0o600 });
  return path;
};

/** Runs kubectl as gwen, through the gateway and directly. */
const kubectls = (program: () => string): ((...args: readonly string[]) => Promise<Executed[]>) => {
  return async (...args) => {
    const ways = [
      [
        '--kubeconfig',
        lab().kubeconfig,
        '-n',
        namespace,
        '--as',
        'gwen',
        '--as-group',
        group,
        '--as-group',
        'system:authenticated',
      ],
      ['--kubeconfig', kubeconfigFile()],
    ];
    const responses: Executed[] = [];
    for (const [at, way] of ways.entries())
      responses.push(
        await execute(program(), [...way, ...args], {
          env: { HOME: lab().dir, KUBECACHEDIR: join(lab().dir, `cache-${at}`) },
          timeout: 60_000,
        }),
      );
    return responses;
  };
};

const manifest = (): string => {
  const path = join(lab().dir, 'gwen.yaml');
  const labels = { app: 'web' };
  const spec = { containers: [{ name: 'c', image: 'none' }] };
  const documents = [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' }, data: { a: '1' } },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web' },
      spec: { replicas: 0, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    },
  ];
  writeFileSync(path, documents.map((one) => stringify(one)).join('---\n'));
  return path;
};

describe.each([
  ["the cluster's version", () => lab().kubectl],
  ['another version', () => foundPath(lab().otherKubectl)],
])('kubectl in %s', (_, program) => {
  const run = kubectls(program);
  test.each<[string, string[]]>([
    ['reads nodes', ['get', 'nodes']],
    ['reads wide tables', ['get', 'nodes', '-o', 'wide', '--show-labels']],
    ['reads whole objects', ['get', 'nodes', '-o', 'json']],
    ['reads a list in pages', ['get', 'nodes', '--chunk-size=2', '-o', 'name']],
    ['sorts a list', ['get', 'nodes', '--sort-by=.metadata.uid']],
    ['describes a node', ['describe', 'node', 'node-1']],
    ['explains a field', ['explain', 'deployment.spec.strategy']],
    ['lists the API resources', ['api-resources', '--sort-by=name']],
    ['lists the API versions', ['api-versions']],
    ['reads an aggregated resource', ['get', 'nodes.resources.platform.io']],
    ['reads Secrets without the right', ['get', 'secrets', '-n', 'kube-system']],
    ['finds no object', ['get', 'configmap', 'none']],
    ['lists the rights of the caller', ['auth', 'can-i', '--list']],
    ['checks a missing right', ['auth', 'can-i', 'delete', 'nodes']],
    ['sends a raw request', ['get', '--raw', '/api/v1/nodes/node-2']],
    ['applies manifests', ['apply', '-f', '@']],
    ['applies the same manifests again', ['apply', '-f', '@']],
    ['uses server-side apply', ['apply', '--server-side', '--force-conflicts', '-f', '@']],
    ['compares manifests', ['diff', '-f', '@']],
    ['patches an object', ['patch', 'configmap', 'settings', '-p', '{"data":{"b":"2"}}']],
    ['labels an object', ['label', '--overwrite', 'configmap', 'settings', 'x=y']],
    ['scales a Deployment', ['scale', 'deployment', 'web', '--replicas=0']],
    ['sets an image', ['set', 'image', 'deployment/web', 'c=other', '--dry-run=server', '-o', 'name']],
    ['waits for a rollout', ['rollout', 'status', 'deployment/web', '--timeout=30s']],
    ['shows the rollout history', ['rollout', 'history', 'deployment/web']],
    ['exposes a Deployment', ['expose', 'deployment', 'web', '--port=80', '--dry-run=server', '-o', 'name']],
    ['deletes objects', ['delete', 'service,deployment,configmap', '-l', 'none=such']],
    ['deletes and recreates objects', ['replace', '--force', '-f', '@']],
  ])('kubectl prints the same output at the gateway and kube-apiserver when kubectl %s', async (_what, args) => {
    const path = manifest();
    const given = args.map((arg) => (arg === '@' ? path : arg));
    // An additional first run makes the change, so that both compared runs find the same objects.
    if (['apply', 'patch', 'label'].includes(args[0] ?? '')) await run(...given);
    await eventually(`both print the same for ${args.join(' ')}`, async () => {
      const [one, other] = (await run(...given)).map(({ code, stdout, stderr }) => ({
        code,
        stdout: untimed(stdout),
        stderr,
      }));
      expect(other).toEqual(one);
    });
  });

  test('kubectl auth whoami prints the same user at the gateway and kube-apiserver', async () => {
    const [, { code, stdout } = { code: 0, stdout: '' }] = await run('auth', 'whoami', '-o', 'json');
    // Older versions of kubectl lack this command.
    expect(code === 0 ? stdout : '"username": "gwen"').toContain('"username": "gwen"');
  });
});

/** Removes ages, which grow between two runs. */
const untimed = (text: string): string =>
  text.replaceAll(/\b(?:\d+d)?(?:\d+h)?(?:\d+m)?(?:\d+s)?\b/g, '').replaceAll(/ +/g, ' ');

test('a stream through the gateway ends when the session of its token is revoked', async () => {
  const { access_token: token } = await login('gwen', secureGateway(), passwords.alice);
  const response = await through({ ...gwen, token }, `${configMaps}?watch=1`);
  const ended = new Promise((resolve) => response.resume().once('close', resolve));
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  await call(`${secureGateway(1)}/oauth/revoke`, { method: 'POST', headers, body: encode({ token, ...platform }) });
  await ended;
  expect((await received(through({ ...gwen, token }, '/version'))).status).toBe(401);
});

test('the gateway returns an error while kube-apiserver is unavailable, and forwards requests again afterwards', async () => {
  expect((await received(through(gwen, '/version'))).status).toBe(200);
  const start = await stopApiserver();
  try {
    const { status, body, headers } = await received(through(gwen, '/api/v1/nodes'));
    expect([status, headers['retry-after']]).toEqual([503, '1']);
    expect(JSON.parse(body)).toMatchObject({ kind: 'Status', reason: 'ServiceUnavailable' });
  } finally {
    await start();
  }
  await eventually('the gateway works again', async () => {
    expect((await received(through(gwen, '/api/v1/nodes'))).status).toBe(200);
  });
});
