/**
 * Every long-running request of the server, and the events that end such a request. The test reads the routes from the
 * descriptions, and tries each with every parameter and transport that could make a request long-running. It also tries
 * requests that the gateway proxies.
 */
// evidence: stream-ends
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import http, { type IncomingMessage, type RequestListener, type RequestOptions, type Server } from 'node:http';
import https from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { podStreams } from '../../src/http/filters/request-info.ts';
import type { MemoryCluster } from '../fakes/cluster.ts';
import { FakeKubeApiserver } from '../fakes/upstream.ts';
import { handshake } from '../fakes/web-socket.ts';
import { login, startLab, type Lab } from '../labs/conformance/lab.ts';
import { begin, prepareLogs, resource } from '../labs/conformance/logging-lab.ts';

/** A stream ends within this many milliseconds after its user has lost the right (docs/reference/api.md). */
const maxDelay = 15_000;

interface Row {
  readonly name: string;
  readonly path: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly isAggregated: boolean;
  /** Alice impersonates bob. */
  readonly impersonates?: boolean;
}

interface Review {
  readonly user: string;
  readonly groups?: readonly string[];
  readonly resourceAttributes?: { readonly verb: string; readonly group?: string };
}

const kube = new FakeKubeApiserver();
const open = new Set<Socket>();
let logStore: Server;
let lab: Lab;
let rows: Row[];
/** Response of the fake cluster's authorizer. */
let allows: (review: Review) => boolean;

/** Fake log store: exports find endless records, sent slowly; all other queries find none. */
async function search(...[req, res]: Parameters<RequestListener>): Promise<void> {
  const body = await text(req);
  if (req.url === '/') return void res.end('{"version":{"number":"2.19.1","distribution":"opensearch"}}');
  const { size = 0 } = (body === '' ? {} : JSON.parse(body)) as { size?: number };
  const end = (begin + 60) * 1_000;
  const isExport = body.includes(`"lte":${end}`) && !body.includes(`"gte":${end}`);
  const time = (begin + 5) * 1_000;
  const hit = (_: unknown, at: number): object => ({
    _index: 'logs',
    _id: String(at),
    sort: [time, 'logs', at],
    _source: {
      log: 'found\n',
      time: new Date(time).toISOString(),
      kubernetes: { namespace_name: 'shop', pod_name: 'web-0', container_name: 'web' },
    },
  });
  const hits = { total: { value: 1e6, relation: 'eq' }, hits: isExport ? Array.from({ length: size }, hit) : [] };
  const response = JSON.stringify({ timed_out: false, _shards: { total: 1, successful: 1, failed: 0 }, hits });
  setTimeout(() => res.end(response), body.includes('search_after') ? 3_000 : 0).unref();
}

const group = (name: string, version: string, resources: readonly object[]): object => ({
  metadata: { name },
  versions: [{ version, freshness: 'Current', resources }],
});

function prepare(cluster: MemoryCluster): void {
  prepareLogs(cluster, new Map());
  cluster.respond('/apis/authorization.k8s.io/v1/subjectaccessreviews', ({ spec }) => ({
    status: { allowed: allows(spec as Review) },
  }));
  const core = ['configmaps:ConfigMap', 'secrets:Secret', 'pods:Pod', 'namespaces:Namespace'].map((pair) => {
    const [name = '', kind = ''] = pair.split(':');
    return resource(name, kind, kind === 'Namespace' ? 'Cluster' : 'Namespaced');
  });
  const root = (name: string, items: readonly object[]): void =>
    cluster.put('', { metadata: { name }, kind: 'APIGroupDiscoveryList', items });
  root('api', [group('', 'v1', core)]);
  root('apis', [group('iam.platform.io', 'v1alpha2', [resource('users', 'User', 'Cluster')])]);
}

/** Returns the requested paths for a described path, with a cached and an uncached resource. */
function pathsOf(path: string): string[] {
  const isObject = path.endsWith('/{name}');
  const isClusterScoped = isObject && !path.includes('{namespace}');
  const resources = isClusterScoped ? ['namespaces', 'users.iam.platform.io'] : ['configmaps', 'secrets'];
  const full = path.replace('{namespace}', 'shop').replace('{name}', 'n1');
  return full.includes('{resources}') ? resources.map((name) => full.replace('{resources}', name)) : [full];
}

/** Parameters or segments of a described path that could make a request long-running, with the query to send. */
const longRunning = [
  ['watch', 'watch=true'],
  ['follow', `follow=true&namespaces=shop`],
  ['operation', `operation=export&namespaces=shop&start_time=${begin}&end_time=${begin + 60}`],
] as const;

interface Description {
  readonly paths: Readonly<
    Record<string, { readonly get?: { readonly parameters?: readonly { readonly name?: string }[] } }>
  >;
}

async function described(from: Promise<{ json: () => object }>, isAggregated: boolean): Promise<Row[]> {
  const { paths } = (await from).json() as Description;
  return Object.entries(paths).flatMap(([path, { get }]) =>
    longRunning
      .filter(
        ([parameter]) => get?.parameters?.some(({ name }) => name === parameter) || path.includes(`/${parameter}/`),
      )
      .flatMap(([, query]) => pathsOf(path).map((full) => `${full}?${query}`))
      .flatMap((full) =>
        [
          ['lines', {}],
          ['server-sent events', { accept: 'text/event-stream' }],
          ['WebSocket', handshake as Record<string, string>],
        ].map(([transport, headers]) => ({
          name: `${isAggregated ? 'aggregated ' : ''}${full.split('&')[0]} as ${transport as string}`,
          path: full,
          method: 'GET',
          headers: headers as Record<string, string>,
          isAggregated,
        })),
      ),
  );
}

async function describedRows(): Promise<Row[]> {
  const aggregated = ['resources.platform.io/v1alpha3', 'logging.platform.io/v1alpha2'];
  return [
    ...(await described(lab.gateway('/swagger/platform.v3.json'), false)),
    ...(
      await Promise.all(aggregated.map((path) => described(lab.aggregated(`/openapi/v3/apis/${path}`), true)))
    ).flat(),
  ];
}

/** Returns watches and the subresources that the server treats as streams, as plain responses and as upgrades. */
function proxiedRows(): Row[] {
  const pod = '/api/v1/namespaces/shop/pods/p';
  const paths = ['/api/v1/pods?watch=true', '/api/v1/watch/pods', ...[...podStreams].map((name) => `${pod}/${name}`)];
  return paths.flatMap((path) =>
    [{}, handshake as Record<string, string>].flatMap((transport) =>
      [false, true].map((impersonates) => ({
        name: `proxied ${path}${transport === handshake ? ' upgraded' : ''}${impersonates ? ' impersonating' : ''}`,
        path,
        method: 'GET',
        headers: transport,
        isAggregated: false,
        impersonates,
      })),
    ),
  );
}

interface Opened {
  readonly row: Row;
  /** Reports whether the stream has ended. */
  readonly hasEnded: () => boolean;
  readonly ended: Promise<void>;
}

/** Resolves with the stream, or with the status of a rejected request. */
function openRow(row: Row, token: string): Promise<Opened | number> {
  const { path, method, isAggregated } = row;
  const options: RequestOptions = {
    host: '127.0.0.1',
    port: isAggregated ? lab.ports.aggregated : lab.ports.http,
    path,
    method,
    agent: false,
    headers: {
      ...row.headers,
      ...(row.impersonates === true ? { 'impersonate-user': bob() } : {}),
      authorization: `Bearer ${token}`,
    },
  };
  const request = isAggregated ? https.request({ ...options, rejectUnauthorized: false }) : http.request(options);
  return new Promise((resolve, reject) => {
    const lasts = (socket: Socket): void => {
      open.add(socket);
      let isOver = false;
      const ended = new Promise<void>((over) => {
        socket.once('close', () => {
          isOver = true;
          over();
        });
      });
      resolve({ row, ended, hasEnded: () => isOver });
    };
    request.once('error', reject);
    request.once('upgrade', (_, socket) => {
      socket.on('error', () => undefined).on('end', () => socket.destroy());
      socket.resume();
      lasts(socket);
    });
    request.once('response', (response: IncomingMessage) => {
      const { statusCode = 0, socket } = response;
      response.on('error', () => undefined).resume();
      response.once('close', () => socket.destroy());
      if (statusCode === 200) lasts(socket);
      else resolve(statusCode);
    });
    request.end();
  });
}

const configMaps = '/api/v1/namespaces/platform-system/configmaps';

/** Changes the user alice in the configuration. */
function changeUser(changes: object): void {
  const { data } = lab.cluster.get(configMaps, 'platform-config') as unknown as { data: { 'platform.yaml': string } };
  const whole = JSON.parse(data['platform.yaml']) as { authentication: { users: object[] } };
  Object.assign(whole.authentication.users[0] as object, changes);
  lab.cluster.put(configMaps, {
    metadata: { name: 'platform-config' },
    data: { 'platform.yaml': JSON.stringify(whole) },
  });
}

/** Test counter: each test has its own identities, for which no decision is cached. */
let run = 0;
const bob = (): string => `bob-${run}`;

let token: string;
let opened: Opened[];
/** Statuses of rejected requests. */
let refusals: number[];

beforeAll(async () => {
  kube.serve = (_, res) => {
    res.writeHead(200, { 'content-type': 'application/json' });
    res.write('{}\n');
  };
  kube.grant = (_, socket) =>
    void socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  logStore = http.createServer((req, res) => void search(req, res)).listen(0, '127.0.0.1');
  await once(logStore, 'listening');
  const url = `http://127.0.0.1:${(logStore.address() as AddressInfo).port}`;
  allows = () => true;
  lab = await startLab({
    kubeApiserver: await kube.listen(),
    sections: { logging: { store: 'opensearch', opensearch: { url } } },
    prepare,
  });
  rows = [...(await describedRows()), ...proxiedRows()];
});
afterAll(() => {
  kube.close();
  logStore.closeAllConnections();
  logStore.close();
});

beforeEach(async () => {
  run += 1;
  allows = () => true;
  changeUser({ state: 'Active', groups: ['readers', `run-${run}`] });
  token = await tokenOfAlice();
  const found = await Promise.all(rows.map((row) => openRow(row, token)));
  opened = found.filter((one) => typeof one === 'object');
  refusals = found.filter((one) => typeof one === 'number');
  const over = opened.filter(({ hasEnded }) => hasEnded());
  if (over.length > 0) throw new Error(`ended without a reason: ${over.map(({ row }) => row.name).join(', ')}`);
});
afterEach(() => {
  for (const socket of open) socket.destroy();
  open.clear();
});

/** Retries the login until the server knows that the user is active again. */
async function tokenOfAlice(): Promise<string> {
  for (;;) {
    const { status, json } = await lab.token(login);
    if (status === 200) return String(json()['access_token']);
    await sleep(20);
  }
}

const lasts = (): string[] => opened.filter(({ hasEnded }) => !hasEnded()).map(({ row }) => row.name);
const isProxied = (name: string): boolean => name.startsWith('proxied ');

/** Reports whether kube-apiserver serves the stream, authorized for the groups that the user had at its start. */
const isOfKubeApiserver = ({ row: { name } }: Opened): boolean =>
  isProxied(name) || /\/(?:secrets|users\.iam\.platform\.io)\b/.test(name);

/** Returns the streams that must end, and the names of the streams that must stay open. */
function split(ends: (stream: Opened) => boolean): { other: Opened[]; others: string[] } {
  const other = opened.filter(ends);
  expect(other.length).toBeGreaterThan(0);
  return { other, others: opened.filter((one) => !ends(one)).map(({ row }) => row.name) };
}

/** Resolves with the names of the streams that are still open after the deadline. */
async function late(streams: readonly Opened[] = opened, deadline = maxDelay): Promise<string[]> {
  const over = new Promise<void>((resolve) => setTimeout(resolve, deadline).unref());
  await Promise.race([Promise.all(streams.map(({ ended }) => ended)), over]);
  return streams.filter(({ hasEnded }) => !hasEnded()).map(({ row }) => row.name);
}

test('every long-running request in the OpenAPI description opens a stream or is rejected with 400 or 406', () => {
  expect(opened.length).toBeGreaterThan(60);
  for (const status of refusals) expect([400, 406]).toContain(status);
});

describe('every stream ends within 15 s', () => {
  test.each<[string, () => unknown]>([
    ['its session is revoked', () => lab.revoke(token)],
    ['its user is disabled', () => changeUser({ state: 'Disabled' })],
    [
      'its user leaves the group that has the right',
      () => {
        allows = ({ user, groups = [] }) => user === bob() || groups.includes('readers');
        changeUser({ groups: ['writers'] });
      },
    ],
    ['its user loses the right', () => (allows = () => false)],
  ])('every stream ends within 15 s after %s', async (_, change) => {
    await change();
    expect(await late()).toEqual([]);
  });
});

test("a change of the user's groups ends only the streams that the server reads from kube-apiserver", async () => {
  const { other, others } = split(isOfKubeApiserver);
  changeUser({ groups: ['readers', 'writers', `run-${run}`] });
  expect(await late(other)).toEqual([]);
  expect(lasts()).toEqual(others);
});

test('losing the right to impersonate ends only the streams of impersonated users', async () => {
  const { other, others } = split(({ row }) => row.impersonates === true);
  allows = ({ resourceAttributes }) => resourceAttributes?.verb !== 'impersonate';
  expect(await late(other)).toEqual([]);
  expect(lasts()).toEqual(others);
});

test('only the affected streams end when an impersonated user or the caller of an aggregated path loses a right', async () => {
  const { other, others } = split(({ row }) => row.impersonates === true || row.isAggregated);
  const ours = new Set(['resources.platform.io', 'logging.platform.io']);
  allows = ({ user, resourceAttributes }) => user !== bob() && !ours.has(resourceAttributes?.group ?? '');
  expect(await late(other)).toEqual([]);
  expect(lasts()).toEqual(others);
});

test('losing the right to create pods/exec, pods/attach and pods/portforward ends only streams of these subresources', async () => {
  const { other, others } = split(({ row }) => /\/pods\/p\/(exec|attach|portforward)$/.test(row.path));
  allows = ({ resourceAttributes }) => resourceAttributes?.verb !== 'create';
  expect(await late(other)).toEqual([]);
  expect(lasts()).toEqual(others);
});

test('every stream ends when the server stops', async () => {
  const stopped = lab.stop({ announce: 0, grace: 500 });
  expect(await late()).toEqual([]);
  await stopped;
});
