/**
 * Process that changes nodes by heartbeats like those of kubelets, at a constant rate. Arguments: the kubeconfig, the
 * number of nodes, the changes per second, and the file for the records. The process exits by itself after two hours.
 */
import { appendFileSync } from 'node:fs';
import { createKubeClient } from '../../src/cluster/client/client.ts';
import { nodeName } from '../../hack/cluster/node.ts';
import { now, record } from './changes.ts';

const [kubeconfig = '', nodes = '', rate = '', file = ''] = process.argv.slice(2);
const conditions = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'];
const epoch = Date.parse('2026-01-01T00:00:00Z');
const maxConcurrent = 32;
const maxDuration = 2 * 3600_000;

const kube = await createKubeClient({ kubeconfig });
const begin = Date.now();
let started = 0;
let atOnce = 0;

/**
 * Sends a patch with a new time, because an unchanged object causes no event. The time advances by one second per
 * millisecond.
 */
async function write(index: number): Promise<void> {
  const lastHeartbeatTime = new Date(epoch + (Date.now() - epoch) * 1000).toISOString().replace(/\.\d+/, '');
  atOnce++;
  try {
    const { metadata } = await kube.json<{ metadata: { resourceVersion: string } }>(
      `/api/v1/nodes/${nodeName(index % Number(nodes))}/status`,
      {
        method: 'PATCH',
        query: { fieldManager: 'kubelet' },
        headers: { accept: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1' },
        contentType: 'application/strategic-merge-patch+json',
        body: { status: { conditions: conditions.map((type) => ({ type, lastHeartbeatTime })) } },
      },
    );
    appendFileSync(file, record({ resourceVersion: Number(metadata.resourceVersion), time: now() }));
  } finally {
    atOnce--;
  }
}

setInterval(() => {
  const elapsed = Date.now() - begin;
  if (elapsed > maxDuration) process.exit(1);
  for (const due = (elapsed * Number(rate)) / 1000; started < due && atOnce < maxConcurrent;)
    write(started++).catch((error: unknown) => console.error(error));
}, 10);
