/** Starts a node whose kubelet is a dedicated kwok that serves files as the logs of pods (kwok's ClusterLogs). */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { KubeClient } from '../../src/cluster/client/client.ts';
import { ensure } from '../../src/cluster/objects.ts';
import { freePort } from './chosen.ts';
import { kwokStages } from './go-modules.ts';
import { readAuthority } from './pki.ts';
import { find, start, stop, type Running } from './processes.ts';
import { programs } from './programs.ts';

export interface LogNodeOptions {
  /** State folder of the control plane. */
  readonly dir: string;
  readonly kube: KubeClient;
  /** Path of an administrator's kubeconfig. */
  readonly kubeconfig: string;
  /** Address at which kube-apiserver reaches a kubelet on this machine. */
  readonly address: string;
  /** Name of the node. */
  readonly name: string;
  /** Log files by namespace and container name. All pods of a namespace share the file of a container name. */
  readonly files: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Namespaces in whose pods `kubectl exec` runs commands on this machine, as the user `execUser`. Default: none. */
  readonly exec?: readonly string[];
}

const firstPort = 21_250;
/** Id of the user and of the group without rights. */
const nobody = 65_534;
const isRoot = (): boolean => userInfo().uid === 0;

/**
 * Returns the id of the user who runs the commands of `kubectl exec`. kwok does not authenticate clients: every program
 * that reaches its port can run commands. Therefore they never run as root.
 */
export const execUser = (): number => (isRoot() ? nobody : userInfo().uid);

const annotation = 'kwok.x-k8s.io/node';

/** Returns a line of a log file as a container runtime writes it (CRI); `time` is in RFC 3339. */
export const logLine = (time: string, log: string): string => `${time} stdout F ${log}\n`;

/** Starts a log node. Restarts a running log node of the same name. */
export async function startLogNode(options: LogNodeOptions): Promise<Running> {
  const { dir, kube, kubeconfig, address, name, files, exec = [] } = options;
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
  const local = isRoot() ? { securityContext: { runAsUser: nobody, runAsGroup: nobody } } : {};
  const execs = exec.map((namespace) => ({
    apiVersion: 'kwok.x-k8s.io/v1alpha1',
    kind: 'ClusterExec',
    metadata: { name: namespace },
    spec: { selector: { matchNamespaces: [namespace] }, execs: [{ local }] },
  }));
  const config = join(folder, 'kwok.yaml');
  const stages = await readFile(await kwokStages(), 'utf8');
  await writeFile(config, [stages, ...[...logs, ...execs].map((one) => stringify(one))].join('\n---\n'));
  const authority = await readAuthority(dir);
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
    `--manage-nodes-with-annotation-selector=${annotation}=${name}`,
    '--node-lease-duration-seconds=0',
    `--node-ip=${address}`,
    `--node-port=${port}`,
    `--server-address=${address}:${port}`,
    `--tls-cert-file=${join(folder, 'tls.crt')}`,
    `--tls-private-key-file=${join(folder, 'tls.key')}`,
    '--v=WARN',
  ]);
  // kwok sets the status of the node.
  await ensure(kube, '/api/v1/nodes', name, () => ({ metadata: { name, annotations: { [annotation]: name } } }));
  return running;
}
