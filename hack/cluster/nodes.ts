/**
 * Creates and deletes nodes until the cluster has the requested number. kwok simulates these nodes; no container runs
 * on a node.
 */
import type { KubeClient } from '../../src/cluster/client/client.ts';
import { isKubeError } from '../../src/cluster/client/kube-error.ts';
import { mapConcurrent } from '../../src/runtime/promises.ts';
import type { Block } from './network.ts';
import { nodeName, registration, statusReport } from './node.ts';
import { progress } from './progress.ts';
import { until } from './until.ts';

interface Node {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly unschedulable?: boolean; readonly taints?: readonly { readonly key: string }[] };
  readonly status: { readonly images?: readonly unknown[] };
}

interface NodeList {
  readonly metadata: { readonly continue?: string };
  readonly items: readonly Node[];
}

/** Number of concurrent requests. More requests would not make kube-apiserver faster. */
const parallel = 16;

/**
 * Creates the first `count` nodes and deletes the other nodes that this module created. Without `count`, creates three
 * nodes if the cluster has none. `check` throws if a process of the control plane has exited.
 */
export async function setNodes(
  kube: KubeClient,
  block: Block,
  count: number | undefined,
  check: () => Promise<void>,
): Promise<void> {
  const complete = new Set<string>();
  const present = new Set<string>();
  for await (const { metadata, status } of createdNodes(kube)) {
    present.add(metadata.name);
    if (status.images !== undefined) complete.add(metadata.name);
  }
  if (count === undefined && present.size > 0) return;
  const wanted = Array.from({ length: count ?? 3 }, (_, index) => index);
  const names = new Set(wanted.map((index) => nodeName(index)));
  const surplus = [...present].filter((name) => !names.has(name));
  const missing = wanted.filter((index) => !complete.has(nodeName(index)));
  await inParallel(`deleting ${surplus.length} nodes`, surplus, (name) => remove(kube, name));
  await inParallel(`creating ${missing.length} nodes`, missing, (index) => create(kube, block, index));
  if (missing.length > 0) await until('the new nodes have their taints', check, () => allSettled(kube), 300_000);
}

async function* createdNodes(kube: KubeClient): AsyncGenerator<Node> {
  let token: string | undefined;
  do {
    const list: NodeList = await kube.json('/api/v1/nodes', {
      query: { limit: 500, continue: token },
      timeout: 60_000,
    });
    yield* list.items.filter(({ metadata }) => /^node-\d+$/.test(metadata.name));
    token = list.metadata.continue;
  } while (token !== undefined && token !== '');
}

/** Creates a node in two writes, as a kubelet does, so that managedFields look like a kubelet's. */
async function create(kube: KubeClient, block: Block, index: number): Promise<void> {
  const query = { fieldManager: 'kubelet' };
  try {
    await kube.json('/api/v1/nodes', { method: 'POST', query, body: registration(index, block), timeout: 60_000 });
  } catch (error) {
    if (!isKubeError(error, 409)) throw error;
  }
  await kube.json(`/api/v1/nodes/${nodeName(index)}/status`, {
    method: 'PATCH',
    query,
    contentType: 'application/strategic-merge-patch+json',
    body: statusReport(index),
    timeout: 60_000,
  });
}

const remove = (kube: KubeClient, name: string): Promise<unknown> =>
  kube.json(`/api/v1/nodes/${name}`, { method: 'DELETE', timeout: 60_000 });

/**
 * Returns true once every node has its final taints. kube-controller-manager taints cordoned nodes; no later write
 * follows.
 */
async function allSettled(kube: KubeClient): Promise<boolean> {
  for await (const { spec } of createdNodes(kube)) {
    const has = (taint: string): boolean =>
      (spec.taints ?? []).some(({ key }) => key === `node.kubernetes.io/${taint}`);
    if (has('not-ready') || has('unschedulable') !== (spec.unschedulable ?? false)) return false;
  }
  return true;
}

async function inParallel<T>(title: string, items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  if (items.length === 0) return;
  const step = progress(title);
  let started = 0;
  try {
    await mapConcurrent(items, parallel, async (item) => {
      started += 1;
      step.detail(String(started));
      await work(item);
    });
    step.end(true);
  } catch (error) {
    step.end(false);
    throw error;
  }
}
