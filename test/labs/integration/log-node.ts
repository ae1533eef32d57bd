/** A node that serves the logs of pods. The tests write the logs. */
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { logLine, startLogNode as start } from '../../../hack/cluster/log-node.ts';
import { stop } from '../../../hack/cluster/processes.ts';
import { eventually } from './eventually.ts';
import { create, get, kube, nodePath, remove, type KubeList } from './kube.ts';
import { lab } from './lab.ts';

const name = 'node-with-logs';

export interface LogNode {
  /** Name of the node, to which pods are bound. */
  readonly name: string;
  /** Writes lines to the log of a container in CRI format. */
  readonly write: (namespace: string, container: string, ...lines: readonly { time: Date; log: string }[]) => void;
  readonly stop: () => Promise<void>;
}

/**
 * Starts the node and creates the namespaces. Pods of a namespace share one log per container name. In pods of the namespaces `exec`,
 * `kubectl exec` runs commands on this machine.
 */
export async function startLogNode(
  containersOf: Readonly<Record<string, readonly string[]>>,
  exec: readonly string[] = [],
): Promise<LogNode> {
  const { dir, address, kubeconfig } = lab();
  const folder = join(dir, name);
  mkdirSync(folder, { recursive: true });
  const fileOf = (namespace: string, container: string): string => join(folder, `${namespace}_${container}.log`);
  const namespaces = Object.keys(containersOf);
  for (const [namespace, containers] of Object.entries(containersOf))
    for (const container of containers) writeFileSync(fileOf(namespace, container), '');
  const files = Object.fromEntries(
    Object.entries(containersOf).map(([namespace, containers]) => [
      namespace,
      Object.fromEntries(containers.map((container) => [container, fileOf(namespace, container)])),
    ]),
  );
  const running = await start({ dir, kube: kube(), kubeconfig, address, name, files, exec });
  for (const namespace of namespaces) await create('/api/v1/namespaces', { metadata: { name: namespace } });
  for (const namespace of namespaces)
    await eventually('its ServiceAccount is there', () =>
      get(`/api/v1/namespaces/${namespace}/serviceaccounts/default`),
    );
  return {
    name,
    write(namespace, container, ...lines) {
      for (const { time, log } of lines)
        appendFileSync(fileOf(namespace, container), logLine(time.toISOString().replace('Z', '000000Z'), log));
    },
    async stop() {
      for (const namespace of namespaces) await remove(`/api/v1/namespaces/${namespace}`);
      await eventually('its pods are gone', async () => {
        const { items } = await get<KubeList>(`/api/v1/pods?fieldSelector=spec.nodeName=${name}`);
        if (items.length > 0) throw new Error(`${items.length} remain`);
      });
      await remove(nodePath(name));
      await stop(dir, running, 'SIGTERM');
    },
  };
}

/** Returns the pods of a namespace once this number of pods is running. */
export const runningPods = (namespace: string, count: number): Promise<readonly string[]> =>
  eventually(`${count} pods run in ${namespace}`, async () => {
    const { items } = await get<KubeList>(`/api/v1/namespaces/${namespace}/pods`);
    const running = items.filter(({ status }) => status?.['phase'] === 'Running');
    if (running.length !== count) throw new Error(`${running.length} are running`);
    return running.map(({ metadata }) => metadata.name);
  });
