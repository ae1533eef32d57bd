/** A node whose kubelet is a kwok of its own, which serves files as the logs of pods (kwok's ClusterLogs). */
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { freePort } from '../../../hack/cluster/chosen.ts';
import { kwokStages } from '../../../hack/cluster/go-modules.ts';
import { start, stop } from '../../../hack/cluster/processes.ts';
import { programs } from '../../../hack/cluster/programs.ts';
import { clientAuthority } from './certificates.ts';
import { eventually } from './eventually.ts';
import { create, get, nodePath, remove, type KubeList } from './kube.ts';
import { lab } from './lab.ts';

const name = 'node-with-logs';
const firstPort = 21_250;

export interface LogNode {
  /** For pods that are bound to it. */
  readonly name: string;
  /** Puts lines into the log of a container, in the form of the CRI. */
  readonly write: (namespace: string, container: string, ...lines: readonly { time: Date; log: string }[]) => void;
  readonly stop: () => Promise<void>;
}

/** Makes the namespaces too. The pods of one have a log together for each name of a container. */
export async function startLogNode(containersOf: Readonly<Record<string, readonly string[]>>): Promise<LogNode> {
  const { dir, address, kubeconfig } = lab();
  const folder = join(dir, name);
  mkdirSync(folder, { recursive: true });
  const fileOf = (namespace: string, container: string): string => join(folder, `${namespace}_${container}.log`);
  const namespaces = Object.keys(containersOf);
  const logs = Object.entries(containersOf).map(([namespace, containers]) => ({
    apiVersion: 'kwok.x-k8s.io/v1alpha1',
    kind: 'ClusterLogs',
    metadata: { name: namespace },
    spec: {
      selector: { matchNamespaces: [namespace] },
      logs: containers.map((container) => ({
        containers: [container],
        logsFile: fileOf(namespace, container),
        follow: true,
      })),
    },
  }));
  for (const [namespace, containers] of Object.entries(containersOf))
    for (const container of containers) writeFileSync(fileOf(namespace, container), '');
  const config = join(folder, 'kwok.yaml');
  writeFileSync(
    config,
    [readFileSync(await kwokStages(), 'utf8'), ...logs.map((one) => stringify(one))].join('\n---\n'),
  );
  const authority = await clientAuthority();
  const serving = await authority.issue({ commonName: name, server: [address] });
  writeFileSync(join(folder, 'tls.crt'), serving.certificate);
  writeFileSync(join(folder, 'tls.key'), serving.key, { mode: 0o600 });
  const port = await freePort(firstPort, address);
  const { kwok } = await programs(['kwok']);
  const running = await start(dir, name, [
    kwok,
    `--kubeconfig=${kubeconfig}`,
    `--config=${config}`,
    '--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=with-logs',
    '--node-lease-duration-seconds=0',
    `--node-ip=${address}`,
    `--node-port=${port}`,
    `--server-address=${address}:${port}`,
    `--tls-cert-file=${join(folder, 'tls.crt')}`,
    `--tls-private-key-file=${join(folder, 'tls.key')}`,
    '--v=WARN',
  ]);
  // kwok writes its status.
  await create('/api/v1/nodes', { metadata: { name, annotations: { 'kwok.x-k8s.io/node': 'with-logs' } } });
  for (const namespace of namespaces) await create('/api/v1/namespaces', { metadata: { name: namespace } });
  for (const namespace of namespaces)
    await eventually('its ServiceAccount is there', () =>
      get(`/api/v1/namespaces/${namespace}/serviceaccounts/default`),
    );
  return {
    name,
    write(namespace, container, ...lines) {
      for (const { time, log } of lines)
        appendFileSync(fileOf(namespace, container), `${time.toISOString().replace('Z', '000000Z')} stdout F ${log}\n`);
    },
    async stop() {
      for (const namespace of namespaces) await remove(`/api/v1/namespaces/${namespace}`);
      await eventually('its pods are gone', async () => {
        const { items } = await get<KubeList>(`/api/v1/pods?fieldSelector=spec.nodeName=${name}`);
        if (items.length > 0) throw new Error(`${items.length} are left`);
      });
      await remove(nodePath(name));
      await stop(dir, running, 'SIGTERM');
    },
  };
}

/** The pods of a namespace, once so many run. */
export const runningPods = (namespace: string, count: number): Promise<readonly string[]> =>
  eventually(`${count} pods run in ${namespace}`, async () => {
    const { items } = await get<KubeList>(`/api/v1/namespaces/${namespace}/pods`);
    const running = items.filter(({ status }) => status?.['phase'] === 'Running');
    if (running.length !== count) throw new Error(`${running.length} do`);
    return running.map(({ metadata }) => metadata.name);
  });
