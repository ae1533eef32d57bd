/** Log queries of the gateway (docs/guides/logs.md) with the store `pods`. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import * as consumers from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Message } from '../client/message.ts';
import type { AppResponse } from '../fakes/request.ts';
import { login, startLab, type LabRequest, type Lab } from '../labs/conformance/lab.ts';
import {
  as,
  at,
  begin,
  bind,
  line,
  prepareLogs,
  putNamespace,
  putPod,
  type Rights,
} from '../labs/conformance/logging-lab.ts';
import { expectFailure } from '../labs/conformance/status.ts';

const path = '/kapis/logging.platform.io/v1alpha2/logs';
const tenant = '/kapis/tenant.platform.io/v1alpha2/logs';
const aggregated = '/apis/logging.platform.io/v1alpha2/logs';

let lab: Lab;
const rights: Rights = new Map([['bob', new Set(['shop', 'bank'])]]);

beforeAll(async () => {
  lab = await startLab({
    prepare: (cluster) => {
      prepareLogs(cluster, rights);
      putPod(cluster, {
        namespace: 'shop',
        name: 'web-7d8f9c-x2x4z',
        containers: ['web', 'proxy'],
        owner: { kind: 'ReplicaSet', name: 'web-7d8f9c' },
        labels: { 'pod-template-hash': '7d8f9c' },
      });
      putPod(cluster, { namespace: 'shop', name: 'db-0', owner: { kind: 'StatefulSet', name: 'db' }, restarted: true });
      putPod(cluster, { namespace: 'bank', name: 'till' });
      putPod(cluster, { namespace: 'other', name: 'secret' });
      const { podLogs } = cluster;
      podLogs.put(
        'shop/web-7d8f9c-x2x4z/web',
        line(1, 'GET /'),
        line(2, 'Error: no'),
        line(2, 'again'),
        line(3, '\u001B[31mred\u001B[0m'),
      );
      podLogs.put('shop/web-7d8f9c-x2x4z/proxy', line(2, 'proxied', '500000000'));
      podLogs.logs.set('shop/db-0/main', { lines: [line(5, 'started')], previous: [line(4, 'panic: ERROR')] });
      podLogs.put('other/secret/main', line(2, 'hidden'));
    },
  });
  putTill();
});
afterAll(() => lab.stop());

const largeLines = 40_000;

/** Adds a log of 80 MB. */
function putLarge(): void {
  putPod(lab.cluster, { namespace: 'shop', name: 'large' });
  const lines = Array.from({ length: largeLines }, (_, index) => line(10, `${index} ${'x'.repeat(2_000)}`));
  lab.cluster.podLogs.put('shop/large/main', ...lines);
}

function removeLarge(): void {
  lab.cluster.delete('/api/v1/pods', 'large');
  lab.cluster.podLogs.logs.delete('shop/large/main');
}

const putTill = (): unknown =>
  lab.cluster.podLogs.put('bank/till/main', line(6, Buffer.from([0x61, 0xff, 0x62])), line(7, 'sum 1.5 (ok) "quoted"'));

const get = (text: string, options: LabRequest = as('alice'), base = path): Promise<AppResponse> =>
  lab.gateway(`${base}?${text}`, options);

interface Records {
  readonly total: number;
  readonly records: readonly { log: string; time: string; namespace: string; pod: string; container: string }[];
  readonly partial?: { readonly reason: string };
}

async function query(text: string, options?: LabRequest): Promise<Records> {
  const response = await get(text, options);
  expect([response.status, response.text]).toEqual([200, expect.any(String)]);
  return (response.json() as unknown as { query: Records }).query;
}

const logs = async (text: string, options?: LabRequest): Promise<string[]> =>
  (await query(`sort=asc&size=100&start_time=${begin}&${text}`, options)).records.map(({ log }) => log);

const all = [
  'GET /',
  'Error: no',
  'again',
  'hidden',
  'proxied',
  '\u001B[31mred\u001B[0m',
  'panic: ERROR',
  'started',
  'a\uFFFDb',
  'sum 1.5 (ok) "quoted"',
];

describe('a log query', () => {
  test('a log query returns records in the format of the API, from newest to oldest', async () => {
    expect(await query(`start_time=${begin}&size=2`)).toEqual({
      total: 10,
      records: [
        { log: 'sum 1.5 (ok) "quoted"', time: at(7), namespace: 'bank', pod: 'till', container: 'main' },
        { log: 'a\uFFFDb', time: at(6), namespace: 'bank', pod: 'till', container: 'main' },
      ],
    });
  });

  test('a log query merges the logs of all containers by time, including logs before a container restart', async () => {
    expect((await logs('')).toSorted()).toEqual(all.toSorted());
    expect(await logs('namespaces=shop')).toEqual([
      'GET /',
      'Error: no',
      'again',
      'proxied',
      '\u001B[31mred\u001B[0m',
      'panic: ERROR',
      'started',
    ]);
  });

  test('a log query returns pages in one consistent order, even for equal times', async () => {
    for (const sort of ['asc', 'desc']) {
      const whole = (await query(`start_time=${begin}&size=100&sort=${sort}`)).records;
      const pages = [];
      for (let from = 0; from < 12; from += 3)
        pages.push(...(await query(`start_time=${begin}&size=3&from=${from}&sort=${sort}`)).records);
      expect(pages).toEqual(whole);
    }
  });

  test.each([
    ['namespaces=bank,nowhere', ['a\uFFFDb', 'sum 1.5 (ok) "quoted"']],
    ['namespace_query=BAN', ['a\uFFFDb', 'sum 1.5 (ok) "quoted"']],
    ['pods=db-0', ['panic: ERROR', 'started']],
    ['pod_query=DB', ['panic: ERROR', 'started']],
    ['containers=proxy', ['proxied']],
    ['container_query=PRO,nothing', ['proxied']],
    ['log_query=error', ['Error: no', 'panic: ERROR']],
    ['log_query=error,proxied', ['Error: no', 'proxied', 'panic: ERROR']],
    ['log_query=1.5%20(ok)%20%22', ['sum 1.5 (ok) "quoted"']],
    ['log_query=.*', []],
    ['workloads=web', ['GET /', 'Error: no', 'again', 'proxied', '\u001B[31mred\u001B[0m']],
    ['workloads=db&log_query=start', ['started']],
    ['workload_query=EB', ['GET /', 'Error: no', 'again', 'proxied', '\u001B[31mred\u001B[0m']],
    ['workloads=nobody', []],
    ['namespaces=bank&pods=db-0', []],
    [`end_time=${begin + 2}&containers=web`, ['GET /', 'Error: no', 'again']],
    [`end_time=${begin + 2}&containers=proxy`, []],
  ])('a log query selects records by %s', async (text, expected) => {
    expect(await logs(text)).toEqual(expected);
  });

  test('a log query includes all records in the seconds that start_time and end_time name', async () => {
    expect((await query(`start_time=${begin + 2}&end_time=${begin + 2}&namespaces=shop`)).total).toBe(2);
    expect((await query(`start_time=${begin + 3}&end_time=${begin + 3}&namespaces=shop`)).total).toBe(1);
  });

  test('a log query with size 0 returns only the total', async () => {
    expect(await query(`start_time=${begin}&size=0`)).toEqual({ total: 10, records: [] });
  });

  test('a log query reports nonexistent pods, and reports the omission of records older than an hour if start_time is missing', async () => {
    expect((await query('pods=db-0')).partial).toBeUndefined();
    expect((await query(`pods=db-0&end_time=${begin + 3_602}`)).partial?.reason).toMatch(/60 minutes .*start_time/);
    expect((await query(`pods=db-0,gone&start_time=${begin}`)).partial?.reason).toMatch(/pod gone does not exist/);
  });

  test('a log query returns the same records from the tenant API, and indented JSON if requested', async () => {
    const text = `start_time=${begin}&end_time=${begin + 100}`;
    expect((await get(text, as('alice'), tenant)).text).toBe((await get(text)).text);
    expect((await get(`${text}&pretty=true`)).text).toMatch(/^\{\n {2}"query": \{/);
  });

  test('a log query reads logs with the identity of the caller', async () => {
    const { podLogs } = lab.cluster;
    podLogs.seen.length = 0;
    await query(`namespaces=bank&start_time=${begin}`, as('bob'));
    expect(podLogs.seen.map(({ headers }) => headers?.['impersonate-user'])).toEqual(['bob']);
    expect(podLogs.seen[0]?.query['sinceTime']).toMatch(/:\d\dZ$/);
  });
});

test('log statistics count containers and records', async () => {
  expect((await get(`operation=statistics&start_time=${begin}`)).json()).toEqual({
    statistics: { containers: 5, logs: 10 },
  });
  expect((await get(`operation=statistics&start_time=${begin}&log_query=error`)).json()).toEqual({
    statistics: { containers: 2, logs: 2 },
  });
});

test('a log histogram counts records per interval', async () => {
  const from = begin + 2;
  const { histogram } = (await get(`operation=histogram&interval=1s&start_time=${from}&namespaces=shop`)).json();
  expect(histogram).toEqual({
    total: 6,
    histograms: [
      { time: from * 1_000, count: 3 },
      { time: (from + 1) * 1_000, count: 1 },
      { time: (from + 2) * 1_000, count: 1 },
      { time: (from + 3) * 1_000, count: 1 },
    ],
  });
});

describe('a log export', () => {
  test('a log export is a text file of lines', async () => {
    const response = await get(`operation=export&sort=asc&namespaces=shop&start_time=${begin}`);
    expect(response.headers).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'content-disposition': expect.stringMatching(/^attachment; filename="logs-\d+-\d+\.txt"$/),
    });
    expect(response.text).toBe('GET /\nError: no\nagain\nproxied\n\u001B[31mred\u001B[0m\npanic: ERROR\nstarted\n');
  });

  test('a log export reports missing records in its last line', async () => {
    const { text } = await get(`operation=export&pods=db-0&end_time=${begin + 3_602}`);
    expect(text).toMatch(/started\npanic: ERROR\n# partial: only the last 60 /);
  });

  test('a log export aborts its requests to kube-apiserver when the client disconnects', async () => {
    const { podLogs } = lab.cluster;
    putLarge();
    const response = await lab.open('http', `${path}?operation=export&pods=large&start_time=${begin}`, as('alice'));
    await once(response, 'readable');
    response.destroy();
    while (podLogs.open > 0) await sleep(10);
    expect(podLogs.open).toBe(0);
    removeLarge();
  });
});

describe('access to logs', () => {
  test('access to logs is limited to namespaces in which the caller is allowed to get pods/log', async () => {
    expect(await logs('', as('bob'))).toEqual(all.filter((log) => log !== 'hidden'));
    expect(await logs('namespaces=other,bank', as('bob'))).toEqual(['a\uFFFDb', 'sum 1.5 (ok) "quoted"']);
  });

  test('a caller without any right to logs gets empty results from each operation, and no log is read', async () => {
    const { podLogs } = lab.cluster;
    podLogs.seen.length = 0;
    expect(await query('', as('carol'))).toEqual({ total: 0, records: [] });
    expect(await query('namespaces=other', as('bob'))).toEqual({ total: 0, records: [] });
    expect((await get('operation=statistics', as('carol'))).json()).toEqual({ statistics: { containers: 0, logs: 0 } });
    expect((await get('operation=histogram', as('carol'))).json()).toEqual({ histogram: { total: 0, histograms: [] } });
    expect((await get('operation=export', as('carol'))).text).toBe('');
    expect(podLogs.seen).toEqual([]);
  });

  test('access to logs excludes records older than their namespace, unless the caller is allowed to read logs in all namespaces', async () => {
    putNamespace(lab.cluster, 'again', begin + 100);
    bind(lab.cluster, 'again', 'dora');
    rights.set('dora', new Set(['again']));
    putPod(lab.cluster, { namespace: 'again', name: 'reborn' });
    lab.cluster.podLogs.put('again/reborn/main', line(99, 'of another', '999999999'), line(100, 'ours'));
    await sleep(50);
    expect(await logs('namespaces=again', as('dora'))).toEqual(['ours']);
    expect(await logs('namespaces=again')).toEqual(['of another', 'ours']);
    lab.cluster.delete('/api/v1/pods', 'reborn');
  });

  test('access to logs includes all namespaces of a caller with rights in thousands of namespaces', async () => {
    const names = Array.from({ length: 3_000 }, (_, i) => `many-${i}`);
    rights.set('dave', new Set(names));
    for (const name of names) {
      putNamespace(lab.cluster, name);
      bind(lab.cluster, name, 'dave');
    }
    putPod(lab.cluster, { namespace: 'many-2999', name: 'last' });
    lab.cluster.podLogs.put('many-2999/last/main', line(1, 'far away'));
    await sleep(100);
    expect(await logs('', as('dave'))).toEqual(['far away']);
    expect(await logs('namespace_query=-2999', as('dave'))).toEqual(['far away']);
    expect(await logs(`namespaces=${names.join(',')}`, as('dave'))).toEqual(['far away']);
    lab.cluster.delete('/api/v1/pods', 'last');
  });

  test('a log query that names more than 200 namespaces in which the caller has no RoleBinding is rejected', async () => {
    const names = Array.from({ length: 201 }, (_, index) => `random-${index}`);
    expect((await get(`namespaces=${names.slice(1).join(',')}`, as('bob'))).status).toBe(200);
    const refused = await get(`namespaces=${names.join(',')}`, as('bob'));
    expectFailure(refused, 400, 'BadRequest');
    expect(refused.json()['message']).toMatch(/^namespaces: 201 .*at most 200/);
    expect((await get(`namespaces=${names.join(',')}`)).status).toBe(200);
  });

  test('an anonymous request for logs gets 401', async () => {
    expectFailure(await lab.gateway(path), 401, 'Unauthorized');
  });
});

describe('an invalid log query', () => {
  test.each([
    ['operation=search', /operation: must be one of query, statistics, histogram, export/],
    ['start_time=1700000000000', /start_time: .*milliseconds\? try 1700000000\)$/],
    ['end_time=1e9', /end_time: expected Unix seconds/],
    ['start_time=5&end_time=4', /start_time: 5 is after end_time \(4\)/],
    ['size=10001', /size: .*0 to 10000.*export/],
    ['from=99991&size=10', /from and size together .*export/],
    ['interval=15', /interval: /],
    ['sort=up', /sort: must be one of desc, asc/],
    ['nonsense=1', /nonsense: unknown parameter; known parameters include operation, /],
    ['size=1&size=1', /size: is given more than once/],
    ['follow=true&size=5', /size: is not supported with follow/],
    ['operation=histogram&interval=1s&start_time=1', /more than 10000 buckets/],
  ])('an invalid log query is rejected: %s', async (text, message) => {
    const response = await get(text);
    expectFailure(response, 400, 'BadRequest');
    expect(response.json()['message']).toMatch(message);
  });

  test('an invalid log query gets an error that lists all invalid parameters', async () => {
    const { details } = (await get('start_time=&size=-1&from=x&sort=&a=b')).json() as {
      details: { causes: { field: string }[] };
    };
    expect(details.causes.map(({ field }) => field).toSorted()).toEqual(['a', 'from', 'size', 'sort', 'start_time']);
  });

  test.each([
    ['in pages', 'limit', '?limit=500', 'application/json'],
    ['as a table', 'Accept', '', 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'],
  ])(
    'a log query of kubectl get %s gets 400 with a working command in the message',
    async (_, field, pages, accept) => {
      const response = await lab.aggregated(`${aggregated}${pages}`, { headers: { accept } });
      expectFailure(response, 400, 'BadRequest');
      expect(response.json()).toMatchObject({
        message: expect.stringMatching(/^use kubectl get --raw '\/apis\/logging\.platform\.io\/v1alpha2\/logs\?/),
        details: { causes: [{ field }] },
      });
    },
  );

  test('a log query for an unsupported media type gets 406', async () => {
    expectFailure(await get('', as('alice', { accept: 'text/html' })), 406, 'NotAcceptable');
    expectFailure(await get('operation=export', as('alice', { accept: 'application/json' })), 406, 'NotAcceptable');
  });
});

describe('a log query while nodes do not respond', () => {
  const key = 'bank/till/main';

  test('a log query reports the missing logs of a pod whose node does not respond, without the address of the node', async () => {
    const log = lab.cluster.podLogs.logs.get(key);
    if (log !== undefined) log.refusal = { code: 500, reason: 'InternalError' };
    const found = await query(`start_time=${begin}`);
    expect(found.total).toBe(8);
    expect(found.partial?.reason).toBe('the logs of bank/till/main are not available from the nodes');
    expectFailure(await get(`start_time=${begin}&pods=till`), 503, 'ServiceUnavailable');
    expectFailure(await get(`operation=export&start_time=${begin}&pods=till`), 503, 'ServiceUnavailable');
    delete log?.refusal;
  });
});

describe('log queries through the aggregator', () => {
  test('log queries through the aggregator return Kubernetes objects', async () => {
    const response = await lab.aggregated(`${aggregated}?start_time=${begin}&pods=db-0&size=1`);
    expect(response.json()).toEqual({
      kind: 'LogQuery',
      apiVersion: 'logging.platform.io/v1alpha2',
      query: { total: 2, records: [expect.objectContaining({ log: 'started' })] },
    });
  });

  test('log queries through the aggregator also require the right to the aggregated resource', async () => {
    expectFailure(await lab.aggregated(aggregated, { headers: { 'x-remote-user': 'carol' } }), 403, 'Forbidden');
    const response = await lab.aggregated(`${aggregated}?start_time=${begin}&size=0`, {
      headers: { 'x-remote-user': 'bob' },
    });
    expect(response.json()).toMatchObject({ query: { total: 9 } });
  });

  test.each([
    ['/kapis/logging.platform.io/v1alpha2', (target: string) => lab.gateway(target, as('carol'))],
    ['/kapis/tenant.platform.io/v1alpha2', (target: string) => lab.gateway(target, as('carol'))],
    ['/apis/logging.platform.io/v1alpha2', (target: string) => lab.aggregated(target)],
  ])('the discovery of %s lists log queries', async (target, send) => {
    expect((await send(target)).json()).toMatchObject({
      kind: 'APIResourceList',
      resources: [{ name: 'logs', kind: 'LogQuery', namespaced: false, verbs: ['get'] }],
    });
  });

  test('OpenAPI describes log queries through the aggregator with their parameters', async () => {
    const { paths } = (await lab.aggregated('/openapi/v3/apis/logging.platform.io/v1alpha2')).json() as {
      paths: Record<string, { get: { parameters: { name: string }[] } }>;
    };
    expect(paths[aggregated]?.get.parameters.map(({ name }) => name)).toContain('log_query');
    expect((await lab.aggregated('/openapi/v3')).json()).toMatchObject({
      paths: { 'apis/logging.platform.io/v1alpha2': {}, 'apis/resources.platform.io/v1alpha3': {} },
    });
  });
});

const openAggregated = (parameters: string, user = 'alice'): Promise<Message> =>
  lab.open('aggregated', `${aggregated}?${parameters}`, { headers: { 'x-remote-user': user } });

describe('a log stream through the aggregator', () => {
  test('a log tail through the aggregator ends before kube-apiserver would abort it, and its last message names a path that bypasses kube-apiserver', async () => {
    const response = await openAggregated('follow=true&pods=db-0&timeout=1s');
    await write('shop/db-0/main', 'before the end');
    const lines = (await consumers.text(response)).split('\n').filter((one) => one !== '');
    expect(lines.map((one) => JSON.parse(one) as unknown)).toEqual([
      expect.objectContaining({ log: 'before the end' }),
      expect.objectContaining({ kind: 'Status', code: 504, message: expect.stringContaining(path) }),
    ]);
    while (lab.cluster.podLogs.open > 0) await sleep(5);
  });

  test('a log tail through the aggregator ends before kube-apiserver would abort it, even if the caller can read no logs', async () => {
    lab.cluster.podLogs.seen.length = 0;
    const response = await openAggregated('follow=true&timeout=1s', 'nobody');
    expect(JSON.parse(await consumers.text(response))).toMatchObject({ kind: 'Status', code: 504 });
    expect(lab.cluster.podLogs.seen).toEqual([]);
  });

  test('a log export through the aggregator ends with a whole line before kube-apiserver would abort it, and reports the truncation', async () => {
    putLarge();
    const parameters = `operation=export&pods=large&start_time=${begin}`;
    const response = await openAggregated(`${parameters}&timeout=2s`);
    const [first] = (await once(response, 'data')) as [Buffer];
    response.pause();
    await sleep(2_000);
    const lines = `${first.toString()}${await consumers.text(response)}`.split('\n');
    expect(lines.at(-2)).toMatch(/^# partial: kube-apiserver .*\/kapis\/logging/);
    expect(lines.slice(0, -2).filter((one) => !/^\d+ x{2000}$/.test(one))).toEqual([]);
    expect(lines.length).toBeLessThan(largeLines);
    removeLarge();
  }, 30_000);

  test('a log export through the aggregator gets 504 if it sends no data before kube-apiserver would abort it', async () => {
    lab.cluster.podLogs.put('bank/till/main').hangs = true;
    const response = await openAggregated(`operation=export&pods=till&start_time=${begin}&timeout=200ms`);
    expect([response.status, JSON.parse(await consumers.text(response))]).toEqual([
      504,
      expect.objectContaining({ message: expect.stringContaining(path) }),
    ]);
    putTill();
  });
});

describe('a log stream with a timeout', () => {
  test('a log tail ends with a Status when its timeout expires', async () => {
    const lines = (await get('follow=true&pods=db-0&timeout=1s')).text.split('\n').filter((one) => one !== '');
    expect(lines.map((one) => JSON.parse(one) as unknown)).toEqual([
      expect.objectContaining({
        kind: 'Status',
        code: 504,
        message: 'the request exceeded its timeout of 1s',
      }),
    ]);
  });

  test('a log export gets 504 if it has not started before its timeout expires', async () => {
    lab.cluster.podLogs.put('bank/till/main').hangs = true;
    const response = await get(`operation=export&pods=till&start_time=${begin}&timeout=200ms`);
    expectFailure(response, 504, 'Timeout');
    expect(response.json()['message']).toMatch(/exceeded its timeout of 200ms/);
    putTill();
  });

  test.each(['follow=true', 'operation=export', 'operation=query'])(
    'a request for logs with an invalid timeout is rejected: %s',
    async (parameters) => {
      const response = await get(`${parameters}&timeout=soon`);
      expectFailure(response, 400, 'BadRequest');
      expect(response.json()['message']).toMatch(/timeout.*"soon" is not a duration such as "32s"/);
    },
  );

  test('a log stream accepts timeouts that are longer than the maximum of a JavaScript timer', async () => {
    expect((await get('operation=export&pods=till&timeout=10000h')).status).toBe(200);
  });
});

describe('a removed log endpoint', () => {
  test.each([
    ['GET', 'v1alpha2/workspaces/w', /v1alpha2\/logs\?namespaces=/],
    ['GET', 'v1alpha2/namespaces/shop', /v1alpha2\/logs\?namespaces=shop$/],
    ['GET', 'v1alpha3/namespaces/shop/workloads/web', /v1alpha2\/logs\?namespaces=shop&workloads=web$/],
    ['GET', 'v1alpha2/namespaces/shop/pods/db-0', /v1alpha2\/logs\?namespaces=shop&pods=db-0$/],
    ['GET', 'v1alpha2/fluentbit/outputs', /"logging" in the ConfigMap platform-config/],
    ['POST', 'v1alpha2/fluentbit/outputs', /"logging"/],
    ['DELETE', 'v1alpha2/fluentbit/outputs/es', /"logging"/],
    ['PUT', 'v1alpha2/fluentbit/outputs/es/x/y', /"logging"/],
  ])('a removed log endpoint returns an error that names its replacement: %s %s', async (method, removed, message) => {
    const response = await lab.gateway(`/kapis/logging.platform.io/${removed}`, { ...as('carol'), method });
    expectFailure(response, 404, 'NotFound');
    expect(response.json()['message']).toMatch(message);
  });
});

async function follow(text: string, options: LabRequest): Promise<{ response: Message; next: () => Promise<string> }> {
  const response = await lab.open('http', `${path}?follow=true&${text}`, options);
  expect(response.status).toBe(200);
  const lines = createInterface({ input: response })[Symbol.asyncIterator]();
  return { response, next: async () => String((await lines.next()).value) };
}

const write = async (key: string, log: string): Promise<void> => {
  // Only lines written after the server has started listening count as new.
  while (lab.cluster.podLogs.open === 0) await sleep(5);
  lab.cluster.podLogs.write(key, { time: new Date().toISOString(), log });
};

const bot = (namespace: string, index: number): LabRequest => as(`system:serviceaccount:${namespace}:bot-${index}`);

const leave = async (response: Message): Promise<void> => {
  response.destroy();
  while (lab.cluster.podLogs.open > 0) await sleep(5);
};

describe('a log tail', () => {
  test('a log tail sends new lines as JSON, and aborts its requests to kube-apiserver when the client disconnects', async () => {
    const { response, next } = await follow('pods=db-0', as('bob'));
    await write('shop/db-0/main', 'new');
    expect(JSON.parse(await next())).toEqual({
      time: expect.stringMatching(/\.\d{9}Z$/),
      namespace: 'shop',
      pod: 'db-0',
      container: 'main',
      log: 'new',
    });
    await leave(response);
  });

  test('a log tail can be sent as server-sent events and filtered by keywords', async () => {
    const { response, next } = await follow('pods=db-0&log_query=WANTED', as('bob', { accept: 'text/event-stream' }));
    expect(response.headers['content-type']).toBe('text/event-stream');
    await write('shop/db-0/main', 'other');
    await write('shop/db-0/main', 'the wanted one');
    expect(await next()).toMatch(/^data: \{.*"log":"the wanted one"/);
    expect(await next()).toBe('');
    await leave(response);
  });

  test('a log tail sends the logs of new pods from the beginning', async () => {
    const { response, next } = await follow('namespaces=bank', as('bob'));
    while (lab.cluster.podLogs.open === 0) await sleep(5);
    lab.cluster.podLogs.put('bank/late/main', line(500, 'first words'));
    putPod(lab.cluster, { namespace: 'bank', name: 'late' });
    expect(JSON.parse(await next())).toMatchObject({ pod: 'late', log: 'first words' });
    await leave(response);
    lab.cluster.delete('/api/v1/pods', 'late');
  });

  test('a log tail ends with a message when a configuration change selects another log store', async () => {
    const { response, next } = await follow('pods=db-0', as('bob'));
    const configMaps = '/api/v1/namespaces/platform-system/configmaps';
    const configMap = lab.cluster.get(configMaps, 'platform-config') as unknown as {
      metadata: { name: string };
      data: { 'platform.yaml': string };
    };
    const configuration = JSON.parse(configMap.data['platform.yaml']) as object;
    const logging = { store: 'pods', pods: { maxBytesPerContainer: '1Mi' } };
    lab.cluster.put(configMaps, {
      ...configMap,
      data: { 'platform.yaml': JSON.stringify({ ...configuration, logging }) },
    });
    expect(JSON.parse(await next())).toMatchObject({
      kind: 'Status',
      code: 503,
      message: expect.stringMatching(/store/),
    });
    response.resume();
    expect(await logs('pods=db-0', as('bob'))).toEqual(expect.arrayContaining(['started']));
  });

  test('a log tail of one user does not occupy a slot of another user', async () => {
    const open: Message[] = [];
    for (let count = 0; count < 16; count += 1) open.push((await follow('pods=db-0', as('bob'))).response);
    expectFailure(await get('follow=true&pods=db-0', as('bob')), 429, 'TooManyRequests');
    expectFailure(await get('operation=export&pods=db-0', as('bob'), tenant), 429, 'TooManyRequests');
    expect((await get('operation=export&pods=db-0')).status).toBe(200);
    for (const response of open) response.destroy();
    while (lab.cluster.podLogs.open > 0) await sleep(5);
    expect((await get('operation=export&pods=db-0', as('bob'))).status).toBe(200);
  });

  test('all ServiceAccounts of a namespace count as one user for the limit on concurrent log tails', async () => {
    const open: Message[] = [];
    for (let count = 0; count < 16; count += 1)
      open.push((await follow('pods=db-0&namespaces=shop', bot('shop', count % 4))).response);
    expectFailure(await get('follow=true&pods=db-0', bot('shop', 4)), 429, 'TooManyRequests');
    open.push((await follow('pods=db-0&namespaces=shop', bot('bank', 0))).response);
    for (const response of open) await leave(response);
  });

  test('a log tail ends when the session of its token is revoked', async () => {
    const token = String((await lab.token(login)).json()['access_token']);
    const { response } = await follow('pods=db-0', { headers: { authorization: `Bearer ${token}` } });
    const closed = once(response.resume(), 'close');
    await lab.revoke(token);
    await closed;
    expect(response.readableEnded).toBe(true);
  });
});
