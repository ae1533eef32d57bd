/**
 * Starts the servers that the specs test: a control plane with scheduler and nodes, and one server with its gateway.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../../hack/cluster/chosen.ts';
import { startControlPlane, type ControlPlane } from '../../hack/cluster/control-plane.ts';
import { writeKubeconfig } from '../../hack/cluster/kubeconfig.ts';
import { addressBlock, assertAddress } from '../../hack/cluster/network.ts';
import { readAuthority } from '../../hack/cluster/pki.ts';
import { choosePorts } from '../../hack/cluster/ports.ts';
import { start } from '../../hack/cluster/processes.ts';
import { programs } from '../../hack/cluster/programs.ts';
import { fetchKubeconfig } from '../../hack/kubeconfig/fetch.ts';
import { installChart, release } from '../../hack/run/chart.ts';
import { serverIdentity } from '../../hack/run/identity.ts';
import { apisAvailable, setEndpoints } from '../../hack/run/registration.ts';
import { startServer } from '../../hack/run/server.ts';
import { createKubeClient, type KubeClient } from '../../src/cluster/client/client.ts';

export interface Cluster {
  /** Kubeconfig of an administrator at kube-apiserver. */
  readonly direct: string;
  /** Kubeconfig of an administrator at the gateway, with a token that is valid for two hours. */
  readonly gateway: string;
  /** Ends the processes that are not recorded in the state folder. */
  close(): Promise<void>;
}

const nodes = 10;

/** Starts the control plane and the server with the state folder `dir`. `stopControlPlane(dir)` ends the processes. */
export async function startCluster(dir: string): Promise<Cluster> {
  const controlPlane = await startControlPlane({ dir, nodes });
  assertAddress(await addressBlock(dir));
  const { kubeconfig } = controlPlane;
  const ports = await choosePorts(dir, ['kube-scheduler', 'http', 'https'], false);
  await startScheduler(controlPlane, ports['kube-scheduler']);
  const url = `https://127.0.0.1:${ports.https}`;
  await installChart(kubeconfig, { config: { authentication: { issuer: url }, gateway: { externalURL: url } } });
  const kube = await createKubeClient({ kubeconfig });
  const identity = await serverIdentity(kube, kubeconfig, dir);
  const close = async (): Promise<void> => {
    identity.close();
    await kube.close();
  };
  try {
    await startGateway(controlPlane, kube, identity.kubeconfig, ports);
    return { direct: kubeconfig, gateway: await writeGatewayKubeconfig(dir, kube, url), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startScheduler({ dir, server }: ControlPlane, port: number): Promise<void> {
  const authority = await readAuthority(dir);
  const kubeconfig = join(dir, 'scheduler.kubeconfig');
  const user = await authority.issue({ commonName: 'system:kube-scheduler' });
  await writeKubeconfig(kubeconfig, { server, authority: authority.certificate }, user);
  const { 'kube-scheduler': program } = await programs(['kube-scheduler']);
  await start(dir, 'kube-scheduler', [
    program,
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${port}`,
    '--leader-elect=false',
  ]);
}

/** Starts a server behind the chart's Service. */
async function startGateway(
  { dir, address }: ControlPlane,
  kube: KubeClient,
  kubeconfig: string,
  { http, https }: { readonly http: number; readonly https: number },
): Promise<void> {
  const ports = { http, https, aggregated: await freePort(10_250, address) };
  const server = await startServer({ dir, kubeconfig, address, ports });
  await server.ready();
  await setEndpoints(kube, [{ address, port: ports.aggregated }]);
  await apisAvailable(kube, server.check);
}

/** Writes the kubeconfig that the server issues for its admin, and returns its path. */
async function writeGatewayKubeconfig(dir: string, kube: KubeClient, url: string): Promise<string> {
  const path = `/api/v1/namespaces/${release.namespace}`;
  const ca = await kube.json<{ data: Record<string, string> }>(`${path}/configmaps/platform-apiserver-ca`);
  const admin = await kube.json<{ data: Record<string, string> }>(`${path}/secrets/platform-admin`);
  const file = join(dir, 'gateway.kubeconfig');
  const text = await fetchKubeconfig({
    url,
    authority: ca.data['ca.crt'] ?? '',
    username: 'admin',
    password: Buffer.from(admin.data['password'] ?? '', 'base64').toString('utf8'),
  });
  await writeFile(file, text, { mode: 0o600 });
  return file;
}
