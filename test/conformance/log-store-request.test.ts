/** The log queries of the gateway over a store elsewhere, as far as the store has a part in them. */
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect, open } from '../client/http1.ts';
import type { Answer } from '../fakes/ask.ts';
import { startLab, type Ask, type Lab } from '../labs/conformance/lab.ts';
import { as, begin, prepareLogs } from '../labs/conformance/logging-lab.ts';
import { expectFailure } from '../labs/conformance/status.ts';

const secrets = '/api/v1/namespaces/platform-system/secrets';
const password = 'reads logs 3317';

let lab: Lab;
let server: Server;
let answer: RequestListener;
let port: number;

/** The one record that it has, whatever it is asked. */
let served: object;
/** Of what it was asked, the bodies. */
const asked: string[] = [];
const recordOf = (namespace: string): object => ({
  _index: 'ks-whizard-logging-2026.03.01',
  _id: '1',
  sort: [(begin + 5) * 1_000, 'ks-whizard-logging-2026.03.01', 1],
  _source: {
    log: 'found\n',
    time: new Date((begin + 5) * 1_000).toISOString(),
    kubernetes: { namespace_name: namespace, pod_name: 'web-0', container_name: 'web' },
  },
});
const record = recordOf('shop');

async function serve(...[req, res]: Parameters<RequestListener>): Promise<void> {
  if (req.headers.authorization !== `Basic ${Buffer.from(`reader:${password}`).toString('base64')}`) {
    res.writeHead(401).end();
    return;
  }
  const body = await text(req);
  asked.push(body);
  const isLast = body.includes(`"gte":${(begin + 60) * 1_000},"lte":${(begin + 60) * 1_000}`);
  const hits = { total: { value: 1, relation: 'eq' }, hits: isLast || body.includes('"size":0') ? [] : [served] };
  const found = { timed_out: false, _shards: { total: 1, successful: 1, failed: 0 }, hits };
  res.end(JSON.stringify(req.url === '/' ? { version: { number: '2.19.1', distribution: 'opensearch' } } : found));
}

const opensearch: RequestListener = (req, res) => void serve(req, res);

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));

let logging: { readonly store: string; readonly opensearch: object };

/** Puts another section into the configuration. */
function configure(section: object): void {
  const configMaps = '/api/v1/namespaces/platform-system/configmaps';
  const { data } = lab.cluster.get(configMaps, 'platform-config') as unknown as { data: { 'platform.yaml': string } };
  const whole = JSON.stringify({ ...(JSON.parse(data['platform.yaml']) as object), logging: section });
  lab.cluster.put(configMaps, { metadata: { name: 'platform-config' }, data: { 'platform.yaml': whole } });
}

beforeAll(async () => {
  server = createServer((req, res) => answer(req, res));
  answer = opensearch;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
  logging = {
    store: 'opensearch',
    opensearch: {
      url: `http://127.0.0.1:${port}`,
      basicAuth: { username: 'reader', passwordRef: { name: 'log-store', key: 'password' } },
    },
  };
  lab = await startLab({
    sections: { logging },
    prepare(cluster) {
      prepareLogs(cluster, new Map([['bob', new Set(['shop', 'bank'])]]));
      cluster.put(secrets, {
        metadata: { name: 'log-store' },
        type: 'Opaque',
        data: { password: Buffer.from(`${password}\n`).toString('base64') },
      });
    },
  });
});
afterAll(async () => {
  await lab.stop();
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  answer = opensearch;
  served = record;
  asked.length = 0;
});

const time = `start_time=${begin}&end_time=${begin + 60}`;
const get = (query: string, options: Ask = as('alice')): Promise<Answer> =>
  lab.gateway(`/kapis/logging.platform.io/v1alpha2/logs?${time}&${query}`, options);

/** Records that were dropped so far. */
const dropped = async (): Promise<number> => {
  const { text: metrics } = await lab.gateway('/metrics', as('alice'));
  return Number(/^platform_apiserver_log_records_dropped_total\{store="opensearch"\} (\d+)$/m.exec(metrics)?.[1] ?? 0);
};

test.each<[string, string, string, Ask]>([
  ['a query', 'namespaces=bank', '"total":0,"records":[]', as('alice')],
  ['an export', 'operation=export&namespaces=bank', '', as('alice')],
  ['a query of all namespaces that the caller is allowed to see', '', '"total":0,"records":[]', as('bob')],
])('%s drops and counts records that the store returns from another namespace', async (_, query, expected, user) => {
  served = recordOf('other');
  const before = await dropped();
  const { status, text: found } = await get(query, user);
  expect([status, found.includes('found')]).toEqual([200, false]);
  expect(found).toContain(expected);
  expect(await dropped()).toBeGreaterThan(before);
});

test('records of the store have the shape of the API', async () => {
  expect((await get('')).json()).toEqual({
    query: {
      total: 1,
      records: [
        {
          log: 'found',
          time: `${new Date((begin + 5) * 1_000).toISOString().slice(0, 19)}.000000000Z`,
          namespace: 'shop',
          pod: 'web-0',
          container: 'web',
        },
      ],
    },
  });
});

test('the store is asked for what the caller may see alone', async () => {
  expect((await get('', as('bob'))).status).toBe(200);
  expect(asked.length).toBeGreaterThan(0);
  for (const body of asked)
    expect(JSON.parse(body)).toMatchObject({
      query: {
        bool: {
          filter: expect.arrayContaining([
            { terms: { 'kubernetes.namespace_name.keyword': expect.arrayContaining(['shop', 'bank']) } },
          ]),
        },
      },
    });
  asked.length = 0;
  expect((await get('', as('carol'))).json()).toEqual({ query: { total: 0, records: [] } });
  expect(asked).toEqual([]);
});

test.each<[string, number, string, RequestListener]>([
  ['is down', 503, 'ServiceUnavailable', (req) => void req.socket.destroy()],
  ['answers nonsense', 502, 'BadGateway', (_req, res) => void res.end('<html>')],
  ['has another password', 502, 'BadGateway', (_req, res) => void res.writeHead(401).end()],
])('a store that %s is %i as a Status, and its address is nobody else’s', async (_what, code, reason, fault) => {
  answer = fault;
  for (const operation of ['query', 'statistics', 'export']) {
    const failed = await get(`operation=${operation}`);
    expectFailure(failed, code, reason);
    for (const secret of [String(port), '127.0.0.1', 'reader', password]) expect(failed.text).not.toContain(secret);
  }
});

test('a client that goes ends what the store was asked', async () => {
  const begun = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<void>();
  answer = (req) => {
    req.socket.once('close', gone.resolve);
    begun.resolve();
  };
  const socket = connect({ host: '127.0.0.1', port: lab.ports.http });
  const leaving = open(socket, {
    path: `/kapis/logging.platform.io/v1alpha2/logs?${time}`,
    headers: as('alice').headers ?? {},
  });
  await begun.promise;
  socket.destroy();
  await expect(leaving).rejects.toThrow('in the head');
  await gone.promise;
});

test('a store that is down makes nothing unready, and is a warning', async () => {
  const verbose = async (): Promise<string> => (await lab.gateway('/readyz?verbose', as('alice'))).text;
  expect(await verbose()).toContain('[+]logs ok\n');
  answer = (req) => void req.socket.destroy();
  // Another one is looked at at once.
  configure({ ...logging, opensearch: { ...logging.opensearch, indexPrefix: 'other' } });
  while (!(await verbose()).includes('[+]logs ok (warning: the log store "opensearch" cannot be reached)'))
    await pause();
  expect((await lab.gateway('/readyz')).status).toBe(200);
  answer = opensearch;
  configure(logging);
  while (!(await verbose()).includes('[+]logs ok\n')) await pause();
});

test('the time it takes is measured by operation and result', async () => {
  await get('operation=statistics');
  const { text: metrics } = await lab.gateway('/metrics', as('alice'));
  expect(metrics).toContain('platform_apiserver_log_store_duration_seconds_count{operation="query",result="ok"}');
  expect(metrics).toContain('operation="query",result="503"');
});
