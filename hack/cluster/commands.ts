import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createKubeClient } from '../../src/cluster/client/client.ts';
import { startControlPlane, stopControlPlane } from './control-plane.ts';
import { output } from './exec.ts';
import { findAll } from './processes.ts';
import { programs } from './programs.ts';
import { seconds } from './progress.ts';

/**
 * Starts the local cluster and writes `<dir>/kubeconfig` for it. With CLUSTER=current, writes the kubeconfig for the
 * current context of kubectl instead.
 */
export async function clusterUp(dir: string): Promise<{ readonly kubeconfig: string }> {
  const startedAt = performance.now();
  if (usesCurrent()) {
    const kubeconfig = await adoptCurrent(dir);
    console.log(`using the current context of kubectl: export KUBECONFIG=${kubeconfig}`);
    return { kubeconfig };
  }
  const { kubeconfig, server } = await startControlPlane({ dir, nodes: requestedNodes() });
  console.log(`control plane ready at ${server} after ${seconds(startedAt)}: export KUBECONFIG=${kubeconfig}`);
  return { kubeconfig };
}

export async function clusterDown(dir: string): Promise<void> {
  await stopControlPlane(dir);
  console.log('control plane stopped');
}

/**
 * Prints the running processes and the version of the cluster. Returns false if the cluster is missing or does not
 * respond.
 */
export async function clusterStatus(dir: string): Promise<boolean> {
  for (const { name, pid } of findAll(dir).toReversed()) console.log(`${name.padEnd(24)} pid ${pid}`);
  const kubeconfig = join(dir, 'kubeconfig');
  if (!existsSync(kubeconfig)) {
    console.log('no cluster: run make cluster-up');
    return false;
  }
  const kube = await createKubeClient({ kubeconfig });
  try {
    const version = await kube.json<{ gitVersion: string }>('/version');
    const query = { limit: 1 };
    const nodes = await kube.json<{ items: unknown[]; metadata: { remainingItemCount?: number } }>('/api/v1/nodes', {
      query,
    });
    const count = nodes.items.length + (nodes.metadata.remainingItemCount ?? 0);
    console.log(`Kubernetes ${version.gitVersion}, ${count} nodes: export KUBECONFIG=${kubeconfig}`);
    return true;
  } catch (error) {
    console.log(`${kubeconfig}: ${(error as Error).message}`);
    return false;
  } finally {
    await kube.close();
  }
}

/** Returns true if CLUSTER=current selects the current context of kubectl instead of the local cluster. */
export function usesCurrent(): boolean {
  const cluster = process.env['CLUSTER'] ?? '';
  if (!['', 'current'].includes(cluster))
    throw new Error(`CLUSTER: expected "current" or no value, got ${JSON.stringify(cluster)}`);
  return cluster === 'current';
}

/** Copies only the current context, with its credentials, so that the copy cannot reach another cluster. */
async function adoptCurrent(dir: string): Promise<string> {
  if (findAll(dir).length > 0) throw new Error('the local control plane is running: run make cluster-down first');
  const { kubectl } = await programs(['kubectl']);
  const text = await output(kubectl, ['config', 'view', '--minify', '--flatten', '--raw']);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const file = join(dir, 'kubeconfig');
  await writeFile(file, text, { mode: 0o600 });
  return file;
}

function requestedNodes(): number | undefined {
  const text = process.env['NODES'] ?? '';
  if (text === '') return undefined;
  if (!/^\d{1,6}$/.test(text))
    throw new Error(`NODES: expected a number of at most 6 digits, got ${JSON.stringify(text)}`);
  return Number(text);
}
