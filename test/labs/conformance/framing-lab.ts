/** Starts the server with clients for every protocol. The cluster has a given number of objects of every list. */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { ConnectionOptions } from 'node:tls';
import { sessionsPath, loginHistoriesPath, usersPath } from '../../../src/config/names.ts';
import type { KubeObject } from '../../../src/cluster/client/kube-object.ts';
import type { Route } from '../../../src/http/route.ts';
import { connect, Connection, open, type Target } from '../../client/http1.ts';
import { connectHTTP2, openHTTP2 } from '../../client/http2.ts';
import { whole, type Message, type Request } from '../../client/message.ts';
import type { MemoryCluster } from '../../fakes/cluster.ts';
import { login, type Lab } from './lab.ts';
import { line, resource, serveResources } from './logging-lab.ts';

/** Name of the first object of each list, and name of the namespace of all objects. */
export const one = 'one';
const release = 'platform-system';

export const protocols = ['HTTP/1.1', 'HTTP/1.1 over TLS', 'HTTP/2'] as const;
export type Protocol = (typeof protocols)[number];
export type Open = (request: Request) => Promise<Message>;

interface Client {
  readonly open: Open;
  /** Closes the client. Throws FramingError if data followed the last response. */
  readonly close: () => Promise<void>;
}

/** Routes of one listener: of the gateway, or of the aggregated API. */
export interface Face {
  readonly routes: readonly Route[];
  /** Headers of the caller. */
  readonly headers: NonNullable<Request['headers']>;
  readonly client: (protocol: Protocol) => Client;
}

export interface FramingLab {
  readonly gateway: Face;
  readonly aggregated: Face;
  /** Creates objects until each list has this number of objects. The number of objects never decreases. */
  readonly grow: (size: number) => Promise<void>;
  readonly stop: () => Promise<void>;
}

interface List {
  readonly items: readonly unknown[];
  readonly totalItems?: number;
}

interface Listener {
  readonly plain: Target;
  readonly secure: Target & { readonly tls: ConnectionOptions };
}

function clientOf({ plain, secure }: Listener, protocol: Protocol): Client {
  if (protocol === 'HTTP/2') {
    const session = connectHTTP2(`https://${secure.host}:${secure.port}`, secure.tls);
    return { open: (request) => openHTTP2(session, request), close: async () => session.close() };
  }
  const connection = new Connection(connect(protocol === 'HTTP/1.1' ? plain : secure));
  return { open: (request) => connection.request(request), close: () => connection.close() };
}

/**
 * Creates the lab. `first` contains the routes of the gateway, and `second` the routes of the listener for
 * kube-apiserver.
 */
export async function framingLab(
  lab: Lab,
  [first = [], second = []]: readonly (readonly Route[])[],
): Promise<FramingLab> {
  const host = '127.0.0.1';
  const { ports, cluster, frontProxy } = lab;
  const headers = { authorization: `Bearer ${String((await lab.token(login)).json()['access_token'])}` };
  const tls = { rejectUnauthorized: false };
  const secure = { host, port: ports.https, tls };
  const forProxy = { host, port: ports.aggregated, tls: { ...tls, ...frontProxy } };
  const gateway = {
    routes: first,
    headers,
    client: (protocol: Protocol) => clientOf({ plain: { host, port: ports.http }, secure }, protocol),
  };
  const aggregated = {
    routes: second,
    headers: { 'x-remote-user': 'alice' },
    client: (protocol: Protocol) => clientOf({ plain: forProxy, secure: forProxy }, protocol),
  };
  const history = await firstOf(cluster, loginHistoriesPath(release));
  const session = await firstOf(cluster, sessionsPath(release));
  let present = 0;
  const has = async (path: string, size: number): Promise<boolean> => {
    const { status, content } = await whole(await open(connect(secure), { path, headers }));
    if (status !== 200) return false;
    const { items, totalItems = items.length } = JSON.parse(content.toString()) as List;
    return totalItems === countIn(path, size);
  };
  return {
    gateway,
    aggregated,
    async grow(size) {
      for (let n = present + 1; n <= size; n += 1) {
        putOneOfEach(cluster, n);
        const name = `${session.metadata.name}-${n}`;
        if (n > 1) cluster.put(sessionsPath(release), { ...session, metadata: { ...session.metadata, name } });
        // The server runs in this process and needs time to read the stored objects.
        if (n % 100 === 0) await nextTurn();
      }
      present = size;
      const [record] = (history as unknown as { status: { records: object[] } }).status.records;
      const records = Array.from({ length: size }, (_, n) => ({
        ...record,
        time: new Date(Date.now() - n * 1_000).toISOString(),
      }));
      cluster.put(loginHistoriesPath(release), { ...history, status: { records } });
      cluster.podLogs.put('other/writer/main', ...Array.from({ length: size }, (_, n) => line(1, `line ${n}`)));
      for (const path of lists) while (!(await has(path, size))) await sleep(20);
    },
    stop: () => lab.stop(),
  };
}

const resources = '/kapis/resources.platform.io/v1alpha3';
const users = '/kapis/iam.platform.io/v1alpha2/users';
/** Collections that the server caches. */
const lists = [
  ...['nodes', 'pods', 'namespaces'].map((plural) => `${resources}/${plural}?limit=0`),
  `${resources}/components`,
  users,
  `${users}/alice/sessions`,
];

/** Returns the expected length of a collection. The user alice and the session of her requests always exist. */
export const countIn = (path: string, size: number): number => (path.startsWith(users) ? Math.max(size, 1) : size);

async function firstOf(cluster: MemoryCluster, collection: string): Promise<ReturnType<MemoryCluster['list']>[number]> {
  for (;;) {
    const [first] = cluster.list(collection);
    if (first !== undefined) return first;
    await sleep(20);
  }
}

const metadataOf = (
  letter: string,
  n: number,
  namespace?: string,
): KubeObject['metadata'] & Record<string, unknown> => ({
  name: n === 1 ? one : `${letter}${n}`,
  ...(namespace === undefined ? {} : { namespace }),
  // With this filling, a list of a thousand objects is written in several batches. Longer lists need no filling.
  annotations: { 'platform.io/alias-name': `Alias ${n}`, filling: 'x'.repeat(n > 1_000 ? 0 : 600) },
  labels: { 'app.kubernetes.io/part-of': 'platform' },
  managedFields: [{ manager: 'test', operation: 'Update', fieldsV1: { 'f:metadata': { 'f:annotations': {} } } }],
});

/** Prepares an empty cluster for the start of the server. */
export function prepare(cluster: MemoryCluster): void {
  serveResources(cluster, {
    core: [resource('secrets', 'Secret', 'Namespaced'), resource('services', 'Service', 'Namespaced')],
    apps: ['Deployment', 'StatefulSet', 'DaemonSet'].map((kind) =>
      resource(`${kind.toLowerCase()}s`, kind, 'Namespaced'),
    ),
  });
  for (const name of ['n1', 'n2', 'n3']) cluster.delete('/api/v1/nodes', name);
}

function putOneOfEach(cluster: MemoryCluster, n: number): void {
  const put = (collection: string, kind: string, letter: string, namespace?: string): void =>
    cluster.put(collection, {
      kind,
      apiVersion: 'v1',
      metadata: metadataOf(letter, n, namespace),
      spec: {},
      status: {},
    });
  put('/api/v1/nodes', 'Node', 'n');
  put('/api/v1/pods', 'Pod', 'p', one);
  put('/api/v1/namespaces', 'Namespace', 'ns');
  put('/api/v1/secrets', 'Secret', 's', one);
  put(`/api/v1/namespaces/${one}/secrets`, 'Secret', 's');
  put('/apis/apps/v1/deployments', 'Deployment', 'd', release);
  if (n > 1) put(usersPath, 'User', 'u');
}
