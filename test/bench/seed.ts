/**
 * Clusters that are full from their start: etcd's data is made once a size and kept in the cache of the cluster's programs. The objects
 * are put into etcd as kube-apiserver would (as JSON, which it reads as well as protobuf): through kube-apiserver 50,000 nodes take
 * a quarter of an hour.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { nodeName } from '../../hack/cluster/node.ts';
import { etcdFlags } from '../../hack/cluster/flags.ts';
import { cacheFolder } from '../../hack/cluster/go-modules.ts';
import { choosePorts } from '../../hack/cluster/ports.ts';
import { assertAlive, start, stop } from '../../hack/cluster/processes.ts';
import { programs } from '../../hack/cluster/programs.ts';
import { progress } from '../../hack/cluster/progress.ts';
import { until } from '../../hack/cluster/until.ts';
import { node, pod, podNamespace } from './objects.ts';

export interface Size {
  readonly nodes: number;
  readonly pods: number;
}

const atOnce = 32;
/** What makes the data. */
const sources = ['seed.ts', 'objects.ts', 'managed-fields.ts', '../../hack/cluster/node.ts'];

/** Puts etcd's data where a control plane of the state folder `dir` looks for it. */
export async function seed(dir: string, size: Size): Promise<void> {
  const hash = createHash('sha256');
  for (const file of sources) hash.update(await readFile(join(import.meta.dirname, file)));
  const cache = join(await cacheFolder(), 'bench');
  const kept = join(cache, `${hash.digest('hex').slice(0, 12)}-${size.nodes}-${size.pods}`);
  if (!existsSync(kept)) {
    const folder = join(cache, `.${process.pid}`);
    await mkdir(folder, { recursive: true });
    try {
      await fill(folder, size);
      await rename(join(folder, 'etcd'), kept);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
  await cp(kept, join(dir, 'etcd'), { recursive: true });
}

async function fill(folder: string, size: Size): Promise<void> {
  const { etcd } = await programs(['etcd']);
  const ports = await choosePorts(folder, ['etcd', 'etcd-peer'], false);
  const running = await start(folder, 'etcd', [etcd, ...etcdFlags(folder, ports.etcd, ports['etcd-peer'])]);
  try {
    await put(ports.etcd, size, () => assertAlive(folder, [running]));
  } finally {
    await stop(folder, running, 'SIGTERM');
  }
}

/** Puts the objects into the etcd that listens there. */
export async function put(port: number, size: Size, check: () => Promise<void>): Promise<void> {
  const url = `http://127.0.0.1:${port}`;
  await until('etcd is healthy', check, async () => (await fetch(`${url}/health`)).ok);
  const step = progress(`making ${size.nodes} nodes${size.pods === 0 ? '' : ` and ${size.pods} pods`}`);
  const all = objects(size);
  let done = 0;
  const worker = async (): Promise<void> => {
    for (const [key, object] of all) {
      const body = JSON.stringify({ key: base64(key), value: base64(JSON.stringify(object)) });
      const answer = await fetch(`${url}/v3/kv/put`, { method: 'POST', body });
      if (!answer.ok) throw new Error(`etcd refuses ${key}: ${await answer.text()}`);
      await answer.arrayBuffer();
      step.detail(String(++done));
    }
  };
  try {
    await Promise.all(Array.from({ length: atOnce }, worker));
    step.end(true);
  } catch (error) {
    step.end(false);
    throw error;
  }
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** By the keys under which kube-apiserver keeps them. */
function* objects({ nodes, pods }: Size): Generator<[key: string, object: object]> {
  for (let index = 0; index < nodes; index++) yield [`/registry/minions/${nodeName(index)}`, node(index, nodes)];
  for (let index = 0; index < pods; index++) {
    const one = pod(index, nodes) as { metadata: { name: string } };
    yield [`/registry/pods/${podNamespace(index)}/${one.metadata.name}`, one];
  }
}
