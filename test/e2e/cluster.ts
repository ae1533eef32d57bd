/** The cluster in which the cases run. */
import { join } from 'node:path';
import { startControlPlane } from '../../hack/cluster/control-plane.ts';
import { execute, output } from '../../hack/cluster/exec.ts';
import { addressBlock } from '../../hack/cluster/network.ts';
import { assertAlive, start, stop, type Command, type Running } from '../../hack/cluster/processes.ts';
import { programs } from '../../hack/cluster/programs.ts';
import { progress } from '../../hack/cluster/progress.ts';
import { until } from '../../hack/cluster/until.ts';
import { createKubeClient, type KubeClient } from '../../src/cluster/client/client.ts';
import { curl, type Client } from './curl.ts';
import { clientImage, corednsImage, names, serverImage, tag } from './images/all.ts';
import { coverMachine } from './machine/mounts.ts';
import { fromOutside, makeNetwork, nodeAddress } from './machine/network.ts';
import { importImage, startContainerd } from './node/containerd.ts';
import { corednsObjects } from './node/coredns.ts';
import { proxyCertificateLog, serverAuditFlags } from './node/apiserver-logs.ts';
import { nodeName, writeKubeletPki } from './node/identities.ts';
import { startNode } from './node/kubernetes.ts';

export interface Cluster {
  /** Folder for files, removed at the end. */
  readonly folder: string;
  /** Client with cluster-admin rights. */
  readonly kube: KubeClient;
  /** Environment variables that give kubectl and helm cluster-admin rights. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * Standard output of kubectl and helm with cluster-admin rights. `words` are split at spaces, `more` are not. Throws
   * on failure or timeout.
   */
  readonly kubectl: (words: string, ...more: readonly string[]) => Promise<string>;
  readonly helm: (words: string) => Promise<string>;
  readonly apply: (items: readonly object[]) => Promise<void>;
  /** Clients within a pod, and on a machine outside the cluster. */
  readonly inside: Client;
  readonly outside: Client;
  readonly nodeAddress: string;
  readonly image: { readonly repository: string; readonly tag: string };
  /** Waits up to a minute until a condition holds; `false` and exceptions mean that it does not hold. */
  readonly until: (what: string, holds: () => Promise<boolean | void>) => Promise<void>;
  /** Throws if a program of the cluster has ended. */
  readonly check: () => Promise<void>;
  /** Restarts a program of the cluster with the same flags. */
  readonly restart: (name: 'kubelet') => Promise<void>;
}

export async function startCluster(folder: string, controlGroup: string): Promise<Cluster> {
  const step = progress('a cluster of one node');
  await coverMachine(folder);
  const block = await addressBlock(folder);
  await makeNetwork(block);
  const address = nodeAddress(block);
  const kubeletFlags = await writeKubeletPki(folder, address);
  const [controlPlane] = await Promise.all([
    startControlPlane({
      dir: folder,
      nodes: 0,
      apiserverFlags: [
        '--bind-address=0.0.0.0',
        `--advertise-address=${address}`,
        // kube-apiserver reaches aggregated servers by their ClusterIP, as in most clusters.
        '--enable-aggregator-routing=false',
        ...proxyCertificateLog,
        ...serverAuditFlags(folder),
        ...kubeletFlags,
      ],
    }),
    startContainerd(folder, block).then(() => importImages()),
  ]);
  step.detail('has its control plane and its images');
  const { kubeconfig, server } = controlPlane;
  const processes: Running[] = [
    ...controlPlane.processes,
    ...(await startNode({ folder, server, block, controlGroup })),
  ];
  const check = (): Promise<void> => assertAlive(folder, processes);
  const restart: Cluster['restart'] = async (name) => {
    const index = processes.findIndex((running) => running.name === name);
    const { command } = processes[index] as Running;
    await stop(folder, processes[index] as Running, 'SIGTERM');
    processes[index] = await start(folder, name, command as Command, 'a');
  };
  const kube = await createKubeClient({ kubeconfig });
  const paths = await programs(['kubectl', 'helm']);
  const options = {
    timeout: 150_000,
    env: { KUBECONFIG: kubeconfig, ...helmFolders(folder) },
  };
  const kubectl: Cluster['kubectl'] = (words, ...more) =>
    output(paths.kubectl, [...words.split(' '), ...more], options);
  const pod = [paths.kubectl, '--kubeconfig', kubeconfig, '--namespace', 'default', 'exec', '-i', client, '--'];
  const cluster: Cluster = {
    folder,
    kube,
    env: options.env,
    kubectl,
    helm: (words) => output(paths.helm, words.split(' '), options),
    apply: (items) => apply(paths.kubectl, options, items),
    inside: curl(pod),
    outside: curl(fromOutside()),
    nodeAddress: address,
    image: { repository: names.server, tag },
    until: (what, holds) => until(what, check, async () => (await holds()) !== false),
    check,
    restart,
  };
  await cluster.apply([...corednsObjects(block), clientPod]);
  const ready = { kind: 'Ready', nodes: `/api/v1/nodes/${nodeName}`, pod: `/api/v1/namespaces/default/pods/${client}` };
  for (const path of [ready.nodes, ready.pod])
    await cluster.until(`${path} is ready`, async () => {
      const { status } = await kube.json<{ status: { conditions?: { type: string; status: string }[] } }>(path);
      return status.conditions?.some(({ type, status: value }) => type === ready.kind && value === 'True') ?? false;
    });
  await kubectl('--namespace kube-system rollout status deployment/coredns --timeout=60s');
  step.end(true);
  const { gitVersion } = await kube.json<{ gitVersion: string }>('/version');
  console.log(`Kubernetes ${gitVersion}`);
  return cluster;
}

async function importImages(): Promise<void> {
  const images = [clientImage(), corednsImage(), serverImage()];
  await Promise.all(images.map(async (image) => importImage(await image)));
}

const client = 'client';

const clientPod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: client, namespace: 'default' },
  spec: { terminationGracePeriodSeconds: 0, containers: [{ name: client, image: `${names.client}:${tag}` }] },
};

async function apply(
  kubectl: string,
  options: { readonly timeout: number; readonly env: Readonly<Record<string, string>> },
  items: readonly object[],
): Promise<void> {
  const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  const { code, stderr } = await execute(kubectl, ['apply', '-f', '-'], { ...options, input });
  if (code !== 0) throw new Error(`kubectl apply failed: ${stderr}`);
}

const helmFolders = (folder: string): Record<string, string> =>
  Object.fromEntries(['CACHE', 'CONFIG', 'DATA'].map((name) => [`HELM_${name}_HOME`, join(folder, 'helm')]));
