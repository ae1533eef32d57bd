/** Container logs through a real kube-apiserver, as nodes serve them (docs/guides/logs.md). */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createInterface } from 'node:readline';
import * as consumers from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../labs/integration/eventually.ts';
import { call, gateway, open, type HttpResponse } from '../labs/integration/http.ts';
import { create, kube, remove } from '../labs/integration/kube.ts';
import { kubectl, succeed } from '../labs/integration/kubectl.ts';
import { runningPods, startLogNode, type LogNode } from '../labs/integration/log-node.ts';
import { adminToken } from '../labs/integration/login.ts';
import { expectStatus } from '../labs/integration/status.ts';
import { addUsers, tokenOf } from '../labs/integration/users.ts';

const path = '/kapis/logging.platform.io/v1alpha2/logs';
const aggregated = '/apis/logging.platform.io/v1alpha2/logs';
const shop = 'logs-shop';
const bank = 'logs-bank';

let node: LogNode;
let removeUsers: () => Promise<void>;
// Whole seconds after all namespaces were created.
let begin = 0;

const after = (milliseconds: number): Date => new Date(begin * 1_000 + milliseconds);

const rbac = (namespace: string, what: string): string =>
  `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/${what}`;

beforeAll(async () => {
  removeUsers = await addUsers({ 'logs-reader': [], 'logs-nobody': [] });
  node = await startLogNode({ [shop]: ['web', 'proxy'], [bank]: ['till'] });
  const spec = (...containers: string[]): object => ({
    nodeName: node.name,
    containers: containers.map((name) => ({ name, image: 'none' })),
  });
  const labels = { app: 'web' };
  await create(`/apis/apps/v1/namespaces/${shop}/deployments`, {
    metadata: { name: 'web' },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: spec('web', 'proxy') } },
  });
  await create(`/api/v1/namespaces/${bank}/pods`, { metadata: { name: 'till' }, spec: spec('till') });
  for (const namespace of [shop, bank]) await runningPods(namespace, 1);
  begin = Math.ceil(Date.now() / 1_000);
  await create(rbac(shop, 'roles'), {
    metadata: { name: 'logs' },
    rules: [{ apiGroups: [''], resources: ['pods/log'], verbs: ['get'] }],
  });
  await create(rbac(shop, 'rolebindings'), {
    metadata: { name: 'logs' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'logs' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'logs-reader' }],
  });
  while (Date.now() < (begin + 4) * 1_000) await sleep(50);
  node.write(
    shop,
    'web',
    { time: after(0), log: 'GET / "1.5"' },
    { time: after(1_000), log: 'Error: no' },
    { time: after(1_001), log: 'again' },
  );
  node.write(shop, 'proxy', { time: after(500), log: 'proxied' });
  node.write(bank, 'till', { time: after(2_000), log: 'sum' });
});
afterAll(async () => {
  await node.stop();
  await removeUsers();
});

const fetchLogs = async (query: string, token?: string): Promise<HttpResponse> =>
  call(`${gateway()}${path}?${query}`, { token: token ?? (await adminToken()) });

interface Found {
  readonly query: { readonly total: number; readonly records: readonly { log: string }[] };
}

async function logs(query: string, token?: string): Promise<string[]> {
  const response = await fetchLogs(`start_time=${begin}&sort=asc&size=100&${query}`, token);
  expect([response.status, response.text]).toEqual([200, expect.any(String)]);
  return (response.json as Found).query.records.map(({ log }) => log);
}

const ours = `namespaces=${shop},${bank}`;

describe('logs through kube-apiserver', () => {
  test.each([
    [ours, ['GET / "1.5"', 'proxied', 'Error: no', 'again', 'sum']],
    [`${ours}&end_time=BEGIN+1`, ['GET / "1.5"', 'proxied', 'Error: no']],
    [`${ours}&log_query=ERROR,sum`, ['Error: no', 'sum']],
    [`${ours}&workloads=web`, ['GET / "1.5"', 'proxied', 'Error: no', 'again']],
    [`namespaces=${bank}`, ['sum']],
    ['pods=till', ['sum']],
  ])('logs through kube-apiserver are selected by the query %s', async (query, expected) => {
    await eventually('both replicas have cached the pods', async () =>
      expect(await logs(query.replace('BEGIN+1', String(begin + 1)))).toEqual(expected),
    );
  });

  test('logs through kube-apiserver have timestamps with nanoseconds', async () => {
    const { query } = (await fetchLogs(`start_time=${begin}&${ours}&size=1`)).json as Found;
    expect(query.records).toEqual([
      {
        log: 'sum',
        time: after(2_000).toISOString().replace('Z', '000000Z'),
        namespace: bank,
        pod: 'till',
        container: 'till',
      },
    ]);
  });

  test('logs through kube-apiserver can be counted and exported', async () => {
    expect((await fetchLogs(`operation=statistics&start_time=${begin}&${ours}`)).json).toEqual({
      statistics: { containers: 3, logs: 5 },
    });
    expect((await fetchLogs(`operation=export&sort=asc&start_time=${begin}&${ours}`)).text).toBe(
      'GET / "1.5"\nproxied\nError: no\nagain\nsum\n',
    );
  });

  test('logs through kube-apiserver are returned only where RBAC allows the caller to read them', async () => {
    const token = await tokenOf('logs-reader');
    await eventually('the role binding is in effect', async () =>
      expect(await logs('', token)).toEqual(['GET / "1.5"', 'proxied', 'Error: no', 'again']),
    );
    expect(await logs(`namespaces=${bank}`, token)).toEqual([]);
    expect(await logs('', await tokenOf('logs-nobody'))).toEqual([]);
  });

  test('logs through kube-apiserver can be followed', async () => {
    const response = await open(`${gateway()}${path}?follow=true&pods=till`, { token: await adminToken() });
    const lines = createInterface({ input: response })[Symbol.asyncIterator]();
    const next = lines.next();
    let count = 0;
    const writing = setInterval(() => node.write(bank, 'till', { time: new Date(), log: `new ${(count += 1)}` }), 500);
    try {
      expect(JSON.parse(String((await next).value))).toMatchObject({
        pod: 'till',
        log: expect.stringMatching(/^new \d/),
      });
    } finally {
      clearInterval(writing);
      response.destroy();
    }
  });
});

describe('logs through the aggregator', () => {
  test('logs through the aggregator can be read with kubectl get --raw', async () => {
    const text = await succeed(kubectl, 'get', '--raw', `${aggregated}?namespaces=${shop}&start_time=${begin}&size=1`);
    expect(JSON.parse(text)).toMatchObject({
      kind: 'LogQuery',
      apiVersion: 'logging.platform.io/v1alpha2',
      query: { total: 4, records: [{ log: 'again' }] },
    });
  });

  test.each([[[]], [['--chunk-size=0']], [['--output=wide']]])(
    'kubectl get logs %j returns an error with instructions',
    async (options) => {
      const { code, stdout, stderr } = await kubectl('get', 'logs.logging.platform.io', ...options);
      expect([code === 0, stdout]).toEqual([false, '']);
      expect(stderr).toMatch(/kubectl get --raw '\/apis\/logging\.platform\.io\/v1alpha2\/logs\?/);
    },
  );

  test('logs through the aggregator require the right to the resource, and are limited by RBAC', async () => {
    const asReader = ['get', '--raw', `${aggregated}?start_time=${begin}&size=0`, '--as', 'logs-reader'];
    expect((await kubectl(...asReader)).stderr).toMatch(
      /cannot list resource "logs" in API group "logging.platform.io"/,
    );
    const binding = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings';
    await create(binding, {
      metadata: { name: 'logs-reader' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'platform-log-reader' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'logs-reader' }],
    });
    await eventually('kube-apiserver allows the user to read', async () =>
      expect(JSON.parse(await succeed(kubectl, ...asReader))).toMatchObject({ query: { total: 4 } }),
    );
    await remove(`${binding}/logs-reader`);
  });

  test('a log tail through the aggregator ends before kube-apiserver would abort it, and its last message names a path that bypasses kube-apiserver', async () => {
    const { status, body } = await kube().stream(`${aggregated}?follow=true&pods=till&timeout=4s`);
    expect(status).toBe(200);
    let count = 0;
    const writing = setInterval(() => node.write(bank, 'till', { time: new Date(), log: `tail ${(count += 1)}` }), 200);
    const lines = (await consumers.text(body)).split('\n').filter((line) => line !== '');
    clearInterval(writing);
    expect(lines.slice(0, -1).map((line) => (JSON.parse(line) as { log: string }).log)).toContain('tail 5');
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({
      kind: 'Status',
      code: 504,
      message: expect.stringContaining(`aborts proxied requests after 4 s; the gateway has no such limit: use ${path}`),
    });
  });

  test('logs through the aggregator report an invalid time as a Status', async () => {
    expectStatus(await fetchLogs('start_time=1700000000000'), 400, 'BadRequest');
    const { stderr } = await kubectl('get', '--raw', `${aggregated}?start_time=1700000000000`);
    expect(stderr).toContain('try 1700000000');
  });
});
