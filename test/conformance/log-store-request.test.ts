/** Log queries of the gateway with an external log store. */
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect, open } from '../client/http1.ts';
import type { AppResponse } from '../fakes/request.ts';
import { startLab, type LabRequest, type Lab } from '../labs/conformance/lab.ts';
import { as, begin, prepareLogs } from '../labs/conformance/logging-lab.ts';
import { expectFailure } from '../labs/conformance/status.ts';

const secrets = '/api/v1/namespaces/platform-system/secrets';
const password = 'reads logs 3317';

let lab: Lab;
let server: Server;
let response: RequestListener;
let port: number;

/** The only record of the store, returned for every query. */
let served: object;
/** Bodies of the requests to the store. */
const requests: string[] = [];
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
  requests.push(body);
  const isLast = body.includes(`"gte":${(begin + 60) * 1_000},"lte":${(begin + 60) * 1_000}`);
  const hits = { total: { value: 1, relation: 'eq' }, hits: isLast || body.includes('"size":0') ? [] : [served] };
  const found = { timed_out: false, _shards: { total: 1, successful: 1, failed: 0 }, hits };
  res.end(JSON.stringify(req.url === '/' ? { version: { number: '2.19.1', distribution: 'opensearch' } } : found));
}

const opensearch: RequestListener = (req, res) => void serve(req, res);

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));

let logging: { readonly store: string; readonly opensearch: object };

/** Replaces the logging section of the configuration. */
function configure(section: object): void {
  const configMaps = '/api/v1/namespaces/platform-system/configmaps';
  const { data } = lab.cluster.get(configMaps, 'platform-config') as unknown as { data: { 'platform.yaml': string } };
  const whole = JSON.stringify({ ...(JSON.parse(data['platform.yaml']) as object), logging: section });
  lab.cluster.put(configMaps, { metadata: { name: 'platform-config' }, data: { 'platform.yaml': whole } });
}

beforeAll(async () => {
  server = createServer((req, res) => response(req, res));
  response = opensearch;
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
  response = opensearch;
  served = record;
  requests.length = 0;
});

const time = `start_time=${begin}&end_time=${begin + 60}`;
const get = (query: string, options: LabRequest = as('alice')): Promise<AppResponse> =>
  lab.gateway(`/kapis/logging.platform.io/v1alpha2/logs?${time}&${query}`, options);

/** Returns the number of records dropped so far. */
const dropped = async (): Promise<number> => {
  const { text: metrics } = await lab.gateway('/metrics', as('alice'));
  return Number(/^platform_apiserver_log_records_dropped_total\{store="opensearch"\} (\d+)$/m.exec(metrics)?.[1] ?? 0);
};

test.each<[string, string, string, LabRequest]>([
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

test('records of a log store are returned in the format of the API', async () => {
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

test('the log store is queried only for namespaces that the caller is allowed to see', async () => {
  expect((await get('', as('bob'))).status).toBe(200);
  expect(requests.length).toBeGreaterThan(0);
  for (const body of requests)
    expect(JSON.parse(body)).toMatchObject({
      query: {
        bool: {
          filter: expect.arrayContaining([
            { terms: { 'kubernetes.namespace_name.keyword': expect.arrayContaining(['shop', 'bank']) } },
          ]),
        },
      },
    });
  requests.length = 0;
  expect((await get('', as('carol'))).json()).toEqual({ query: { total: 0, records: [] } });
  expect(requests).toEqual([]);
});

test.each<[string, number, string, RequestListener]>([
  ['is down', 503, 'ServiceUnavailable', (req) => void req.socket.destroy()],
  ['returns nonsense', 502, 'BadGateway', (_req, res) => void res.end('<html>')],
  ['rejects the password', 502, 'BadGateway', (_req, res) => void res.writeHead(401).end()],
])(
  'a query to a log store that %s gets a Status with the code %i, without the address of the store',
  async (_what, code, reason, fault) => {
    response = fault;
    for (const operation of ['query', 'statistics', 'export']) {
      const failed = await get(`operation=${operation}`);
      expectFailure(failed, code, reason);
      for (const secret of [String(port), '127.0.0.1', 'reader', password]) expect(failed.text).not.toContain(secret);
    }
  },
);

test('a log query is aborted at the log store when the client disconnects', async () => {
  const started = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<void>();
  response = (req) => {
    req.socket.once('close', gone.resolve);
    started.resolve();
  };
  const socket = connect({ host: '127.0.0.1', port: lab.ports.http });
  const leaving = open(socket, {
    path: `/kapis/logging.platform.io/v1alpha2/logs?${time}`,
    headers: as('alice').headers ?? {},
  });
  await started.promise;
  socket.destroy();
  await expect(leaving).rejects.toThrow('in the head');
  await gone.promise;
});

test('a log store that is down causes a warning in /readyz and does not make the server unready', async () => {
  const verbose = async (): Promise<string> => (await lab.gateway('/readyz?verbose', as('alice'))).text;
  expect(await verbose()).toContain('[+]logs ok\n');
  response = (req) => void req.socket.destroy();
  // A changed store is checked immediately.
  configure({ ...logging, opensearch: { ...logging.opensearch, indexPrefix: 'other' } });
  while (!(await verbose()).includes('[+]logs ok (warning: the log store "opensearch" cannot be reached)'))
    await pause();
  expect((await lab.gateway('/readyz')).status).toBe(200);
  response = opensearch;
  configure(logging);
  while (!(await verbose()).includes('[+]logs ok\n')) await pause();
});

test('a metric reports the duration of requests to the log store by operation and result', async () => {
  await get('operation=statistics');
  const { text: metrics } = await lab.gateway('/metrics', as('alice'));
  expect(metrics).toContain('platform_apiserver_log_store_duration_seconds_count{operation="query",result="ok"}');
  expect(metrics).toContain('operation="query",result="503"');
});
