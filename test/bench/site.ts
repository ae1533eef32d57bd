/** A control plane of a given size with our server as started by make run, readers, and a writer of changes. */
import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { createKubeClient, type KubeClient } from '../../src/cluster/client/client.ts';
import { freePort } from '../../hack/cluster/chosen.ts';
import { largeClusterTimeout, startControlPlane } from '../../hack/cluster/control-plane.ts';
import { addressBlock, assertAddress, openBlock } from '../../hack/cluster/network.ts';
import { choosePorts } from '../../hack/cluster/ports.ts';
import { until } from '../../hack/cluster/until.ts';
import { installChart, release } from '../../hack/run/chart.ts';
import { serverIdentity } from '../../hack/run/identity.ts';
import { apisAvailable, setEndpoints } from '../../hack/run/registration.ts';
import { startServer, type Server, type ServerOptions } from '../../hack/run/server.ts';
import type { Target } from './connection.ts';
import { paths } from './paths.ts';
import { memory } from './processes.ts';
import { allowReaders, callers, platformTokens, serviceAccountTokens, type Users } from './readers.ts';
import { seed, type Size } from './seed.ts';

export type Face = 'plain' | 'tls' | 'aggregated';

export interface Site {
  readonly dir: string;
  readonly size: Size;
  readonly kubeconfig: string;
  readonly ours: Readonly<Record<Face, Target>> & {
    readonly pids: readonly number[];
    /** Tokens of the readers of each listener. Each listener has different readers. */
    readonly tokens: Readonly<Record<Face, readonly string[]>>;
    readonly check: Server['check'];
  };
  readonly kubeApiserver: {
    readonly tls: Target;
    readonly pids: readonly number[];
    readonly tokens: readonly string[];
  };
  readonly etcd: { readonly pids: readonly number[] };
  /** Memory of our server in megabytes, after it has cached all objects and before its first request. */
  readonly freshRss: number;
  /** Starts another server on its own ports, in addition to the first server. */
  another(name: string, options?: ServerChoice): Promise<Server & { readonly faces: Readonly<Record<Face, Target>> }>;
  /** Ends processes that are not recorded in the state folder. */
  close(): Promise<void>;
}

/** Flags and build of another server. */
export type ServerChoice = Pick<ServerOptions, 'flags' | 'build'>;

const host = '127.0.0.1';
/** Milliseconds to wait until the garbage of the start has been collected. */
const settle = 5_000;

/** Records every process in the folder `dir`, so that all processes end with their control plane. */
export async function startSite(dir: string, size: Size, users: Users): Promise<Site> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await seed(dir, size);
  const controlPlane = await startControlPlane({ dir, withoutKwok: true });
  const { kubeconfig } = controlPlane;
  const block = await addressBlock(dir);
  await openBlock(block);
  assertAddress(block);
  await installChart(kubeconfig, { ...users.values });
  const kube = await createKubeClient({ kubeconfig });
  const identity = await serverIdentity(kube, kubeconfig, dir);
  const close = async (): Promise<void> => {
    identity.close();
    await kube.close();
  };
  try {
    const { address } = block;
    const begin = async (name: string, choice: ServerChoice = {}): Promise<Server & { ports: Ports }> => {
      const chosen = await choosePorts(dir, [`${name}-http`, `${name}-https`], false);
      const ports = {
        http: chosen[`${name}-http`] ?? 0,
        https: chosen[`${name}-https`] ?? 0,
        aggregated: await freePort(10_250, address),
      };
      return {
        ...(await startServer({ dir, name, kubeconfig: identity.kubeconfig, address, ports, ...choice })),
        ports,
      };
    };
    const server = await begin('server');
    await until(
      'the server is ready',
      server.check,
      async () => (await fetch(`${server.baseURL}/readyz`)).ok,
      largeClusterTimeout,
    );
    const { ports } = server;
    await until('the nodes are listed', server.check, async () => listedAt(server.log) > 0, largeClusterTimeout);
    await sleep(settle);
    const freshRss = memory([server.pid]).rss;
    await setEndpoints(kube, [{ address, port: ports.aggregated }]);
    await apisAvailable(kube, server.check);
    await allowReaders(kube);

    const tls = { ca: await authority(kube), servername: `${release.name}.${release.namespace}.svc` };
    const facesOf = ({ http, https, aggregated }: Ports): Record<Face, Target> => ({
      plain: { host, port: http },
      tls: { host, port: https, tls },
      aggregated: { host: address, port: aggregated, tls },
    });
    const faces = facesOf(ports);
    const tokens = await platformTokens(faces.plain, users.readers);
    const share = (part: number): string[] => tokens.slice(part * callers, (part + 1) * callers);
    const pidsOf = (program: string): number[] =>
      controlPlane.processes.filter(({ name }) => name === program).map(({ pid }) => pid);
    return {
      dir,
      size,
      kubeconfig,
      ours: {
        ...faces,
        pids: [server.pid],
        tokens: { plain: share(0), tls: share(1), aggregated: share(2) },
        check: server.check,
      },
      kubeApiserver: {
        tls: {
          host,
          port: Number(new URL(controlPlane.server).port),
          tls: { ca: await rootAuthority(kube), servername: 'kubernetes' },
        },
        pids: pidsOf('kube-apiserver'),
        tokens: await serviceAccountTokens(kube),
      },
      etcd: { pids: pidsOf('etcd') },
      freshRss,
      another: async (name, choice) => {
        const started = await begin(name, choice);
        return { ...started, faces: facesOf(started.ports) };
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * Returns the time at which a server logged that it had all nodes, in milliseconds since the epoch; NaN if the log
 * contains no such line.
 */
export function listedAt(log: string): number {
  const line = readFileSync(log, 'utf8')
    .split('\n')
    .find((one) => one.includes('"message":"listed"') && one.includes(`"path":"${paths.core}"`));
  return Date.parse((JSON.parse(line ?? '{}') as { time?: string }).time ?? '');
}

interface Ports {
  readonly http: number;
  readonly https: number;
  readonly aggregated: number;
}

const configMap = async (kube: KubeClient, namespace: string, name: string): Promise<string> => {
  const path = `/api/v1/namespaces/${namespace}/configmaps/${name}`;
  const { data } = await kube.json<{ data: Record<string, string> }>(path);
  return data['ca.crt'] ?? '';
};

const authority = (kube: KubeClient): Promise<string> => configMap(kube, release.namespace, 'platform-apiserver-ca');

const rootAuthority = (kube: KubeClient): Promise<string> => configMap(kube, 'default', 'kube-root-ca.crt');
