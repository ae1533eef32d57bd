/**
 * Health check before each test file. If the check fails, the run is aborted with the reason, because all further files
 * would fail.
 */
import { find, logEnd } from '../../../hack/cluster/processes.ts';
import { until } from '../../../hack/cluster/until.ts';
import { abortMark } from '../../reporter.ts';
import { call, gateway } from './http.ts';
import { kube } from './kube.ts';
import { lab } from './lab.ts';
import { replicaNames } from './servers.ts';

const controlPlane = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kwok'];

async function assertRunning(): Promise<void> {
  const { dir } = lab();
  for (const name of [...controlPlane, ...replicaNames(dir)])
    if (find(dir, name) === undefined)
      throw new Error(`${name} is not running. The end of its log:\n${await logEnd(dir, name)}`);
}

async function statusOfApiserver(): Promise<number> {
  const { status, body } = await kube().stream('/readyz');
  body.resume();
  return status;
}

/**
 * Aborts the run by an error unless the control plane and both replicas are running and become ready within a minute.
 */
export async function assertHealthy(): Promise<void> {
  const probes = [
    ['kube-apiserver is ready', statusOfApiserver],
    ...([0, 1] as const).map((index) => [
      `replica ${index} is ready`,
      async () => (await call(`${gateway(index)}/readyz`)).status,
    ]),
  ] as [string, () => Promise<number>][];
  try {
    for (const [what, status] of probes) await until(what, assertRunning, async () => (await status()) === 200);
  } catch (error) {
    throw new Error(`${abortMark}${(error as Error).message}`, { cause: error });
  }
}
