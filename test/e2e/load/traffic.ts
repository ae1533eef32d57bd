/** Typical loads: logins, refreshes, lists, watches, kubectl exec, and reads and writes through the gateway. */
import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { output } from '../../../hack/cluster/exec.ts';
import { programs } from '../../../hack/cluster/programs.ts';
import { until } from '../../../hack/cluster/until.ts';
import { isKubeError } from '../../../src/cluster/client/kube-error.ts';
import type { Cluster } from '../cluster.ts';
import { nodeName } from '../node/identities.ts';
import { adminPassword, createUser, kubeconfig, nodesPath, type Tokens } from '../release.ts';
import type { Load } from './load.ts';
import { serviceClient, type ServiceClient } from './service-client.ts';

const namespace = 'default';
const counter = 'counter';
export const executions = 'executions of a command';
const configMaps = `/api/v1/namespaces/${namespace}/configmaps`;
const readConfigMaps = `/kapis/resources.platform.io/v1alpha3/namespaces/${namespace}/configmaps`;

interface ConfigMap {
  readonly metadata: { readonly resourceVersion: string };
  readonly data: { readonly n: string };
}

export interface Visitor {
  readonly username: string;
  readonly password: string;
}

const onlyVisitor: Visitor = { username: 'visitor', password: 'a visitor of 9 rooms' };

/**
 * Creates a ConfigMap and a user for the loads, after it has deleted those that a failed case left. Each login of the
 * user replaces the user's previous session.
 */
export async function prepareTraffic(cluster: Cluster): Promise<Visitor> {
  const { kube } = cluster;
  await removeTraffic(cluster);
  await createUser(kube, onlyVisitor);
  await kube.json(configMaps, { method: 'POST', body: { metadata: { name: counter }, data: { n: '0' } } });
  return onlyVisitor;
}

/** Deletes what `prepareTraffic` created. */
export async function removeTraffic({ kube }: Cluster): Promise<void> {
  for (const path of [`/apis/iam.platform.io/v1alpha2/users/${onlyVisitor.username}`, `${configMaps}/${counter}`])
    await kube.json(path, { method: 'DELETE' }).catch((error: unknown) => {
      if (!isKubeError(error, 404)) throw error;
    });
}

/**
 * Creates all loads. `retry` is the number of milliseconds for which clients repeat requests that get no response, as
 * is necessary after a replica is killed. kubectl does not repeat exec, so no load uses exec if `retry` is set.
 */
export async function traffic(cluster: Cluster, visitor: Visitor, retry = 0): Promise<Load[]> {
  const [each, one] = await Promise.all([false, true].map((keepAlive) => serviceClient(cluster, { keepAlive, retry })));
  if (each === undefined || one === undefined) throw new Error('a client is missing');
  const admin = { username: 'admin', password: await adminPassword(cluster) };
  const { access_token: token } = await grant(each, { grant_type: 'password', ...admin });
  return [
    {
      label: 'logins',
      pause: 1_000,
      act: async () => void (await grant(each, { grant_type: 'password', ...visitor })),
    },
    await refreshing(each, admin),
    listing('lists on a connection each', each, token),
    listing('lists on one connection', one, token),
    aggregatedListing(cluster, retry > 0),
    await counting(one, token),
    ...[configMaps, readConfigMaps].map((path) => watching(each, path, token, retry > 0)),
    ...(retry > 0 ? [] : [await executing(cluster, token)]),
  ];
}

async function grant(client: ServiceClient, fields: Readonly<Record<string, string>>): Promise<Tokens> {
  const body = new URLSearchParams({ ...fields, client_id: 'platform', client_secret: 'platform' }).toString();
  return client.json('/oauth/token', { method: 'POST', contentType: 'application/x-www-form-urlencoded', body });
}

async function refreshing(client: ServiceClient, user: Visitor): Promise<Load> {
  let tokens = await grant(client, { grant_type: 'password', ...user });
  return {
    label: 'refreshes',
    pause: 300,
    async act() {
      tokens = await grant(client, { grant_type: 'refresh_token', refresh_token: tokens.refresh_token });
    },
  };
}

const listing = (label: string, client: ServiceClient, token: string): Load => ({
  label,
  pause: 100,
  async act() {
    const { items } = await client.json<{ items: { metadata: { name: string } }[] }>(nodesPath, { token });
    deepStrictEqual(
      items.map(({ metadata }) => metadata.name),
      [nodeName],
    );
  },
});

/** A program of the cluster may be stopped while clients repeat requests. */
const checkNothing = (): Promise<void> => Promise.resolve();

/**
 * Lists through kube-apiserver, which returns 503 if the replica that it selected does not respond. `retries` is true
 * for clients that repeat such a request.
 */
function aggregatedListing({ kube }: Cluster, retries: boolean): Load {
  const list = async (): Promise<void> => void (await kube.json(nodesPath.replace('/kapis', '/apis')));
  return {
    label: 'lists through kube-apiserver',
    pause: 100,
    act: retries ? () => until('kube-apiserver reaches a replica', checkNothing, () => list().then(() => true)) : list,
  };
}

/** Writes the next number to the ConfigMap and reads it. */
async function counting(client: ServiceClient, token: string): Promise<Load> {
  const path = `${configMaps}/${counter}`;
  let n = Number((await client.json<ConfigMap>(path, { token })).data.n);
  return {
    label: 'writes and reads through the gateway',
    pause: 200,
    async act() {
      n += 1;
      const body = JSON.stringify({ data: { n: String(n) } });
      const contentType = 'application/merge-patch+json';
      await client.open(path, { method: 'PATCH', token, contentType, body }).then((response) => response.resume());
      strictEqual((await client.json<ConfigMap>(path, { token })).data.n, String(n));
    },
  };
}

interface WatchEvent {
  readonly type: string;
  readonly object: ConfigMap & { readonly code?: number };
}

/**
 * Repeats a one-second watch of the ConfigMap, and resumes after the last event. Throws if a number is missing. A
 * replica whose cache started after the last event sends 410. The client then reads the ConfigMap again, as client-go
 * does.
 */
function watching(client: ServiceClient, path: string, token: string, mayBreak: boolean): Load {
  let last: ConfigMap | undefined;
  const see = (line: string): void => {
    const { type, object } = JSON.parse(line) as WatchEvent;
    if (type === 'ERROR' && object.code === 410) last = undefined;
    else if (type !== 'MODIFIED') throw new Error(`the watch sent ${line.slice(0, 300)}`);
    else if (Number(object.data.n) !== Number(last?.data.n) + 1)
      throw new Error(`${object.data.n} follows ${last?.data.n}`);
    else last = object;
  };
  return {
    label: `watches of ${path.split('/')[1]} for 1 s`,
    pause: 0,
    async act(signal) {
      last ??= await client.json<ConfigMap>(`${configMaps}/${counter}`, { token });
      const { resourceVersion } = last.metadata;
      const query = `watch=true&timeoutSeconds=1&resourceVersion=${resourceVersion}&fieldSelector=metadata.name%3D${counter}`;
      try {
        const response = await client.open(`${path}?${query}`, { token, signal });
        let rest = '';
        for await (const chunk of response.setEncoding('utf8')) {
          const lines = `${rest}${String(chunk)}`.split('\n');
          rest = lines.pop() ?? '';
          for (const line of lines) see(line);
        }
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (!signal.aborted && !(mayBreak && code === 'ECONNRESET')) throw error;
      }
    },
  };
}

async function executing(cluster: Cluster, token: string): Promise<Load> {
  const { kubectl } = await programs(['kubectl']);
  const file = join(cluster.folder, 'traffic.kubeconfig');
  writeFileSync(file, await kubeconfig(cluster, token), { mode: 0o600 });
  return {
    label: executions,
    pause: 2_000,
    async act() {
      const words = ['--kubeconfig', file, 'exec', 'client', '--', 'sh', '-c', 'echo done'];
      strictEqual(await output(kubectl, words, { timeout: 20_000 }), 'done\n');
    },
  };
}
