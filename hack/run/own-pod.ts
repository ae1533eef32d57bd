/** Creates a pod that represents the server, so that the cluster has logs: the pod's log is the server's log. */
import { appendFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { KubeClient } from '../../src/cluster/client/client.ts';
import { ensure } from '../../src/cluster/objects.ts';
import { logLine, startLogNode } from '../cluster/log-node.ts';
import { release } from './chart.ts';
import { quote } from './env-file.ts';

/** Name of the pod's node, whose kubelet runs on this machine. */
export const serverNode = 'this-machine';
export const serverPod = 'this-server';
const container = 'apiserver';

export interface OwnPodOptions {
  /** State folder of the control plane. */
  readonly dir: string;
  readonly kube: KubeClient;
  readonly kubeconfig: string;
  readonly address: string;
}

/** Starts the pod. Returns a function that receives the lines that the server logs. */
export async function startOwnPod({
  dir,
  ...options
}: OwnPodOptions): Promise<(lines: readonly string[]) => Promise<void>> {
  const log = join(dir, `${serverPod}.log`);
  await writeFile(log, '', { mode: 0o600 });
  const { namespace } = release;
  await startLogNode({ ...options, dir, name: serverNode, files: { [namespace]: { [container]: log } } });
  await ensure(options.kube, `/api/v1/namespaces/${namespace}/pods`, serverPod, () => ({
    metadata: { name: serverPod },
    // Without labels the Service does not select this pod: the Service already has an endpoint for the server.
    spec: {
      nodeName: serverNode,
      automountServiceAccountToken: false,
      containers: [{ name: container, image: 'none' }],
    },
  }));
  return async (lines) => {
    await appendFile(log, lines.map(podLine).join(''));
  };
}

/**
 * Returns a line of the server as a line of the pod. JSON would be escaped once more in every response that contains
 * the line.
 */
function podLine(line: string): string {
  const { time = new Date().toISOString(), level, message, ...fields }: Entry = parse(line) ?? { message: line };
  const texts = Object.entries(fields).map(([name, value]) => `${name}=${textOf(value)}`);
  return logLine(time, [level, message, ...texts].filter((one) => one !== undefined).join(' '));
}

interface Entry extends Readonly<Record<string, unknown>> {
  readonly time?: string;
  readonly level?: string;
  readonly message: string;
}

function parse(line: string): Entry | undefined {
  try {
    return JSON.parse(line) as Entry;
  } catch {
    return undefined;
  }
}

/** Formats a value of a log line. An error is formatted as its message. */
function textOf(value: unknown): string {
  const { message = value } = (value ?? {}) as { readonly message?: unknown };
  const text = typeof message === 'string' ? message : JSON.stringify(message);
  return quote(text.replaceAll('\n', ' '));
}
