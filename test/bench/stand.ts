/** Everything that is measured, started: control plane with nodes, our server as make run starts it, nginx, and the changes. */
import { join } from 'node:path';
import { createKubeClient, type KubeClient } from '../../src/kube/client.ts';
import { freePort } from '../../hack/cluster/chosen.ts';
import { startControlPlane } from '../../hack/cluster/control-plane.ts';
import { output } from '../../hack/cluster/exec.ts';
import { addressBlock, assertAddress, openBlock } from '../../hack/cluster/network.ts';
import { choosePorts } from '../../hack/cluster/ports.ts';
import { until } from '../../hack/cluster/until.ts';
import { installChart, release } from '../../hack/run/chart.ts';
import { serverIdentity } from '../../hack/run/identity.ts';
import { apisAvailable, setEndpoints } from '../../hack/run/registration.ts';
import { startServer } from '../../hack/run/server.ts';
import { startChanges } from './changes.ts';
import { Connection, type Target } from './connection.ts';
import { findNginx, startNginx, type Nginx } from './nginx.ts';
import { paths } from './paths.ts';
import { allowReaders, callers, makeUsers, platformTokens, serviceAccountTokens, type Users } from './readers.ts';
import { problemOf, request } from './requests.ts';

export interface Stand {
  readonly nodes: number;
  readonly users: Users;
  readonly ours: {
    readonly plain: Target;
    readonly tls: Target;
    readonly aggregated: Target;
    readonly pids: readonly number[];
    /** One a reader, for each of the three. */
    readonly tokens: Readonly<Record<'plain' | 'tls' | 'aggregated', readonly string[]>>;
  };
  readonly etcd: { readonly pids: readonly number[] };
  readonly kubeApiserver: {
    readonly tls: Target;
    readonly pids: readonly number[];
    readonly tokens: readonly string[];
  };
  readonly nginx: Nginx;
  /** The file that says how many changes there have been. */
  readonly changes: string;
  /** Ends what stopping the processes of the state folder does not. */
  close(): Promise<void>;
}

const root = join(import.meta.dirname, '../..');

/** Every process is on record in the folder `dir`, and ends with its control plane. */
export async function startStand(dir: string, nodes: number): Promise<Stand> {
  const nginxProgram = await findNginx();
  await output(process.execPath, ['node_modules/.bin/tsc', '-p', 'tsconfig.build.json'], { cwd: root });
  const controlPlane = await startControlPlane({ dir, nodes });
  const { kubeconfig } = controlPlane;
  const block = await addressBlock(dir);
  await openBlock(block);
  assertAddress(block);
  const users = await makeUsers();
  await installChart(kubeconfig, { ...users.values });
  const kube = await createKubeClient({ kubeconfig });
  const identity = await serverIdentity(kube, kubeconfig, dir);
  const close = async (): Promise<void> => {
    identity.close();
    await kube.close();
  };
  try {
    const chosen = await choosePorts(dir, ['http', 'https', 'nginx', 'nginx-tls'], false);
    const { address } = block;
    const ports = { http: chosen.http, https: chosen.https, aggregated: await freePort(10_250, address) };
    const server = await startServer({ dir, kubeconfig: identity.kubeconfig, address, ports });
    await server.ready();
    await setEndpoints(kube, [{ address, port: ports.aggregated }]);
    await apisAvailable(kube, server.check);
    await allowReaders(kube);

    const host = '127.0.0.1';
    const tls = { ca: await authority(kube), servername: `${release.name}.${release.namespace}.svc` };
    const plain = { host, port: ports.http };
    const tokens = await platformTokens(plain, users.readers);
    const files = await filesOf(plain, tokens[0], server.check);
    const share = (part: number): string[] => tokens.slice(part * callers, (part + 1) * callers);
    const nginx = await startNginx({
      program: nginxProgram,
      dir,
      ports: { plain: chosen.nginx, tls: chosen['nginx-tls'] },
      files,
    });
    const pidsOf = (program: string): number[] =>
      controlPlane.processes.filter(({ name }) => name === program).map(({ pid }) => pid);
    const kubeApiserver = {
      tls: {
        host,
        port: Number(new URL(controlPlane.server).port),
        tls: { ca: await rootAuthority(kube), servername: 'kubernetes' },
      },
      pids: pidsOf('kube-apiserver'),
      tokens: await serviceAccountTokens(kube),
    };
    const changes = await startChanges(dir, kubeconfig, nodes);
    return {
      nodes,
      users,
      ours: {
        plain,
        tls: { host, port: ports.https, tls },
        aggregated: { host: address, port: ports.aggregated, tls },
        pids: [server.pid],
        tokens: { plain: share(0), tls: share(1), aggregated: share(2) },
      },
      etcd: { pids: pidsOf('etcd') },
      kubeApiserver,
      nginx,
      changes,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

const configMap = async (kube: KubeClient, namespace: string, name: string): Promise<string> => {
  const path = `/api/v1/namespaces/${namespace}/configmaps/${name}`;
  const { data } = await kube.json<{ data: Record<string, string> }>(path);
  return data['ca.crt'] ?? '';
};

const authority = (kube: KubeClient): Promise<string> => configMap(kube, release.namespace, 'platform-apiserver-ca');

const rootAuthority = (kube: KubeClient): Promise<string> => configMap(kube, 'default', 'kube-root-ca.crt');

/** For nginx: the bytes that our server answers; gzipped ones as well. */
async function filesOf(
  target: Target,
  token: string | undefined,
  check: () => Promise<void>,
): Promise<Record<string, Buffer>> {
  const files: Record<string, Buffer> = {};
  const sources = {
    health: { path: paths.health },
    node: { path: paths.node(1) },
    page: { path: paths.page(1) },
    list: { path: paths.list },
    'list.gz': { path: paths.list, gzip: true },
  };
  const connection = new Connection(target);
  try {
    for (const [name, { path, ...expected }] of Object.entries(sources))
      await until(`${path} is answered`, check, async () => {
        const answer = await connection.send(Buffer.from(request(path, expected, { token }).text), true);
        const problem = problemOf(answer, expected);
        if (problem !== undefined) throw new Error(problem);
        files[name] = answer.body ?? Buffer.alloc(0);
        return true;
      });
  } finally {
    connection.close();
  }
  return files;
}
