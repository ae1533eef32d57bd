/** A pod that stands for the server, so that there are logs in the cluster: what it logs is what the pod logs. */
import { appendFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { KubeClient } from '../../src/cluster/client/client.ts';
import { ensure } from '../../src/cluster/objects.ts';
import { logLine, startLogNode } from '../cluster/log-node.ts';
import { release } from './chart.ts';

/** Of its node, whose kubelet is on this machine. */
const node = 'this-machine';
const pod = 'this-server';
const container = 'apiserver';

export interface OwnPodOptions {
  /** The state folder of the control plane. */
  readonly dir: string;
  readonly kube: KubeClient;
  readonly kubeconfig: string;
  readonly address: string;
}

/** Answers what is to be told the lines that the server logs. */
export async function startOwnPod({
  dir,
  ...options
}: OwnPodOptions): Promise<(lines: readonly string[]) => Promise<void>> {
  const log = join(dir, `${pod}.log`);
  await writeFile(log, '', { mode: 0o600 });
  const { namespace } = release;
  await startLogNode({ ...options, dir, name: node, files: { [namespace]: { [container]: log } } });
  await ensure(options.kube, `/api/v1/namespaces/${namespace}/pods`, pod, () => ({
    metadata: { name: pod },
    // The Service has its endpoint already, so no label that it selects.
    spec: {
      nodeName: node,
      automountServiceAccountToken: false,
      containers: [{ name: container, image: 'none' }],
    },
  }));
  return async (lines) => {
    const now = new Date().toISOString();
    await appendFile(log, lines.map((line) => logLine(timeOf(line) ?? now, line)).join(''));
  };
}

/** As the server stamps its lines, and audit events theirs. */
const timeOf = (line: string): string | undefined => /"(?:time|stageTimestamp)":"([-\d]{10}T[\d:.]+Z)"/.exec(line)?.[1];
