/** A node whose kubelet is a kwok of its own, which serves files as the logs of pods (kwok's ClusterLogs). */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { KubeClient } from '../../src/cluster/client/client.ts';
import { ensure } from '../../src/cluster/objects.ts';
import { freePort } from './chosen.ts';
import { kwokStages } from './go-modules.ts';
import { loadAuthority } from './pki.ts';
import { find, start, stop, type Running } from './processes.ts';
import { programs } from './programs.ts';

export interface LogNodeOptions {
  /** The state folder of the control plane. */
  readonly dir: string;
  readonly kube: KubeClient;
  /** The kubeconfig of an administrator. */
  readonly kubeconfig: string;
  /** Where kube-apiserver reaches a kubelet on this machine. */
  readonly address: string;
  /** Of the node. */
  readonly name: string;
  /** By namespace and container; the pods of a namespace have a file together for each name of a container. */
  readonly files: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

const firstPort = 21_250;
const mark = 'kwok.x-k8s.io/node';

/** A line as a kubelet finds it, `time` in RFC 3339. */
export const logLine = (time: string, log: string): string => `${time} stdout F ${log}\n`;

/** One of that name that runs already is started anew. */
export async function startLogNode(options: LogNodeOptions): Promise<Running> {
  const { dir, kube, kubeconfig, address, name, files } = options;
  const folder = join(dir, name);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const logs = Object.entries(files).map(([namespace, containers]) => ({
    apiVersion: 'kwok.x-k8s.io/v1alpha1',
    kind: 'ClusterLogs',
    metadata: { name: namespace },
    spec: {
      selector: { matchNamespaces: [namespace] },
      logs: Object.entries(containers).map(([container, logsFile]) => ({
        containers: [container],
        logsFile,
        follow: true,
      })),
    },
  }));
  const config = join(folder, 'kwok.yaml');
  const stages = await readFile(await kwokStages(), 'utf8');
  await writeFile(config, [stages, ...logs.map((one) => stringify(one))].join('\n---\n'));
  const [certificate, key] = await Promise.all(
    ['ca.crt', 'ca.key'].map((file) => readFile(join(dir, 'pki', file), 'utf8')),
  );
  const authority = await loadAuthority({ certificate: certificate ?? '', key: key ?? '' });
  const serving = await authority.issue({ commonName: name, server: [address] });
  await writeFile(join(folder, 'tls.crt'), serving.certificate);
  await writeFile(join(folder, 'tls.key'), serving.key, { mode: 0o600 });
  const before = find(dir, name);
  if (before !== undefined) await stop(dir, before, 'SIGTERM');
  const port = await freePort(firstPort, address);
  const { kwok } = await programs(['kwok']);
  const running = await start(dir, name, [
    kwok,
    `--kubeconfig=${kubeconfig}`,
    `--config=${config}`,
    `--manage-nodes-with-annotation-selector=${mark}=${name}`,
    '--node-lease-duration-seconds=0',
    `--node-ip=${address}`,
    `--node-port=${port}`,
    `--server-address=${address}:${port}`,
    `--tls-cert-file=${join(folder, 'tls.crt')}`,
    `--tls-private-key-file=${join(folder, 'tls.key')}`,
    '--v=WARN',
  ]);
  // kwok writes its status.
  await ensure(kube, '/api/v1/nodes', name, () => ({ metadata: { name, annotations: { [mark]: name } } }));
  return running;
}
