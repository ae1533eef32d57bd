/**
 * The writer of node changes, a process of its own: RATE a second, each a heartbeat as a kubelet sends it, evenly spread.
 * Arguments: the kubeconfig, the number of nodes and a file, to which each adds a byte. Ends by itself.
 */
import { appendFileSync } from 'node:fs';
import { createKubeClient } from '../../src/kube/client.ts';
import { nodeName } from '../../hack/cluster/node.ts';
import { changesPerSecond } from './changes.ts';

const [kubeconfig = '', nodes = '', file = ''] = process.argv.slice(2);
const conditions = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'];
const mostAtOnce = 32;
const longest = 3600_000;

const kube = await createKubeClient({ kubeconfig });
const begin = Date.now();
let begun = 0;
let atOnce = 0;

/** With a time that no earlier one had: a patch that changes nothing is no change. */
async function write(index: number): Promise<void> {
  const lastHeartbeatTime = new Date(begin + index * 1000).toISOString().replace(/\.\d+/, '');
  atOnce++;
  try {
    await kube.json(`/api/v1/nodes/${nodeName(index % Number(nodes))}/status`, {
      method: 'PATCH',
      query: { fieldManager: 'kubelet' },
      contentType: 'application/strategic-merge-patch+json',
      body: { status: { conditions: conditions.map((type) => ({ type, lastHeartbeatTime })) } },
    });
    appendFileSync(file, '.');
  } finally {
    atOnce--;
  }
}

setInterval(() => {
  const elapsed = Date.now() - begin;
  if (elapsed > longest) process.exit(1);
  for (const due = (elapsed * changesPerSecond) / 1000; begun < due && atOnce < mostAtOnce;)
    write(begun++).catch((error: unknown) => console.error(error));
}, 10);
