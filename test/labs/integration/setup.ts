/**
 * Setup before the first test file: compiles the server, starts a control plane, installs the chart, and starts two
 * servers behind the chart's Service.
 */
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, seed } from '../../../hack/cluster/chosen.ts';
import { startControlPlane } from '../../../hack/cluster/control-plane.ts';
import { addressBlock, assertAddress } from '../../../hack/cluster/network.ts';
import { programs } from '../../../hack/cluster/programs.ts';
import { installChart, release } from '../../../hack/run/chart.ts';
import { serverIdentity } from '../../../hack/run/identity.ts';
import { apisAvailable, setEndpoints } from '../../../hack/run/registration.ts';
import { createKubeClient, type KubeClient } from '../../../src/cluster/client/client.ts';
import { auditFlags } from './audit.ts';
import { buildOnce } from './build.ts';
import { buildGoClients, obtainChromium, obtainOtherKubectl, obtainPythonPackages } from './clients.ts';
import { labFile, labVariable, type Lab, type Ports } from './lab.ts';
import { configuration, secrets } from './people.ts';
import { reap, startReaper } from './reaper.ts';
import { recordPresence, startNamed, writeReplicas } from './servers.ts';

const nodes = 7;

let reaper: ChildProcess | undefined;

/** Value of Jest's `--shard`. */
interface Sharded {
  readonly shard?: { readonly shardIndex: number };
}

export default async function setup({ shard }: Sharded): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'platform-apiserver-integration-'));
  reaper = startReaper(dir, String(shard?.shardIndex ?? ''));
  try {
    writeFileSync(labFile(dir), JSON.stringify(await startLab(dir)), { mode: 0o600 });
    process.env[labVariable] = dir;
  } catch (error) {
    await endLab();
    throw error;
  }
}

/** Teardown after the last test file. */
export async function endLab(): Promise<void> {
  if (reaper !== undefined) await reap(reaper);
}

async function startLab(dir: string): Promise<Lab> {
  const [controlPlane, { kubectl }, otherKubectl, go, pythonPackages, chromium] = await Promise.all([
    startControlPlane({ dir, nodes, apiserverFlags: auditFlags(dir) }),
    programs(['kubectl', 'helm']),
    obtainOtherKubectl(),
    buildGoClients(dir),
    obtainPythonPackages('python'),
    obtainChromium(),
    buildOnce(),
  ]);
  const { kubeconfig, address } = controlPlane;
  assertAddress(await addressBlock(dir));
  await installChart(kubeconfig, { config: await configuration() });
  const kube = await createKubeClient({ kubeconfig });
  try {
    await writeSecrets(kube);
    const identity = await serverIdentity(kube, kubeconfig, dir);
    // Tokens are not renewed, because the first token is valid for longer than the tests take.
    identity.close();
    const replicas = await startReplicas(kube, { dir, address, kubeconfig: identity.kubeconfig });
    const core = `/api/v1/namespaces/${release.namespace}`;
    const ca = await kube.json<{ data: Record<string, string> }>(`${core}/configmaps/platform-apiserver-ca`);
    const authority = ca.data['ca.crt'] ?? '';
    const authorityFile = join(dir, 'ca.crt');
    writeFileSync(authorityFile, authority);
    const admin = await kube.json<{ data: Record<string, string> }>(`${core}/secrets/platform-admin`);
    return {
      dir,
      kubeconfig,
      serverKubeconfig: identity.kubeconfig,
      address,
      authority,
      authorityFile,
      adminPassword: Buffer.from(admin.data['password'] ?? '', 'base64').toString('utf8'),
      kubectl,
      otherKubectl,
      go,
      pythonPackages,
      chromium,
      replicas,
    };
  } finally {
    await kube.close();
  }
}

async function writeSecrets(kube: KubeClient): Promise<void> {
  for (const [name, stringData] of Object.entries(await secrets()))
    await kube.json(`/api/v1/namespaces/${release.namespace}/secrets`, {
      method: 'POST',
      body: { apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData },
    });
}

async function startReplicas(
  kube: KubeClient,
  options: { readonly dir: string; readonly address: string; readonly kubeconfig: string },
): Promise<[Ports, Ports]> {
  const { address } = options;
  // Parallel runs start their search for free ports at different ports, because a port stays free until its server has
  // started.
  const http = await freePort(20_000 + seed(options.dir, 8_000));
  const https = await freePort(http + 2);
  const first = { http, https, aggregated: await freePort(10_250, address) };
  const second = {
    http: await freePort(http + 1, '127.0.0.1', [https]),
    https: await freePort(https + 1),
    aggregated: await freePort(first.aggregated + 1, address),
  };
  const started = await Promise.all([
    startNamed({ ...options, ports: first }),
    startNamed({ ...options, ports: second }),
  ]);
  writeReplicas(
    options.dir,
    started.map(({ name }) => name),
  );
  for (const { server } of started) await server.ready();
  await setEndpoints(
    kube,
    [first, second].map(({ aggregated }) => ({ address, port: aggregated })),
  );
  await apisAvailable(kube, async () => {
    for (const { server } of started) await server.check();
  });
  for (const index of started.keys()) recordPresence(options.dir, index, true);
  return [first, second];
}
