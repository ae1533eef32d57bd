/** Starts the pod that represents the server in the lab, as `make run` does. */
import { find, stop } from '../../../hack/cluster/processes.ts';
import { serverNode, serverPod, startOwnPod } from '../../../hack/run/own-pod.ts';
import { eventually } from './eventually.ts';
import { get, kube, nodePath, releasePath, remove } from './kube.ts';
import { lab } from './lab.ts';

const podPath = `${releasePath}/pods/${serverPod}`;

/** Starts the pod. Its log contains one request. Returns a function that stops it. */
export async function startServerPod(): Promise<() => Promise<void>> {
  const { dir, address, kubeconfig } = lab();
  const write = await startOwnPod({ dir, kube: kube(), kubeconfig, address });
  await eventually('the pod is running', async () => {
    const { status } = await get(podPath);
    if (status?.['phase'] !== 'Running') throw new Error(JSON.stringify(status));
  });
  await write([JSON.stringify({ level: 'info', message: 'request', path: '/kapis/iam.platform.io/v1alpha2/whoami' })]);
  return async () => {
    await remove(podPath);
    await eventually('the pod is gone', async () => {
      const gone = await get(podPath).then(
        () => false,
        () => true,
      );
      if (!gone) throw new Error('it remains');
    });
    await remove(nodePath(serverNode));
    const running = find(dir, serverNode);
    if (running !== undefined) await stop(dir, running, 'SIGTERM');
  };
}
