/**
 * Creates the etcd data of filled clusters. The data is created once per size and kept in the cache for the programs of
 * the cluster. Objects are written to etcd directly, because writing 50,000 nodes through kube-apiserver takes a
 * quarter of an hour. The objects are in JSON, which kube-apiserver reads as well as protobuf.
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
import { node, pod, podNamespace, type StoredAt } from './objects.ts';

export interface Size {
  readonly nodes: number;
  readonly pods: number;
}

const atOnce = 32;
/** Files from which the data is created. */
const sources = ['seed.ts', 'objects.ts', 'managed-fields.ts', '../../hack/cluster/node.ts'];

/** Copies etcd's data to the state folder `dir` of a control plane. */
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

/** Writes the objects to the etcd on this port. */
export const put = (port: number, size: Size, check: () => Promise<void>): Promise<void> =>
  putObjects(
    port,
    objects(size),
    `making ${size.nodes} nodes${size.pods === 0 ? '' : ` and ${size.pods} pods`}`,
    check,
  );

/** Writes objects by the keys that kube-apiserver uses. `what` describes them in the output. */
export async function putObjects(
  port: number,
  all: Iterable<StoredAt>,
  what: string,
  check: () => Promise<void>,
): Promise<void> {
  const url = `http://127.0.0.1:${port}`;
  await until('etcd is healthy', check, async () => (await fetch(`${url}/health`)).ok);
  const step = progress(what);
  const entries = all[Symbol.iterator]();
  let done = 0;
  const worker = async (): Promise<void> => {
    for (let next = entries.next(); next.done !== true; next = entries.next()) {
      const [key, object] = next.value;
      const body = JSON.stringify({ key: base64(key), value: base64(JSON.stringify(object)) });
      const response = await fetch(`${url}/v3/kv/put`, { method: 'POST', body });
      if (!response.ok) throw new Error(`etcd rejects ${key}: ${await response.text()}`);
      await response.arrayBuffer();
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

function* objects({ nodes, pods }: Size): Generator<StoredAt> {
  for (let index = 0; index < nodes; index++) yield [`/registry/minions/${nodeName(index)}`, node(index, nodes)];
  for (let index = 0; index < pods; index++) {
    const one = pod(index, nodes) as { metadata: { name: string } };
    yield [`/registry/pods/${podNamespace(index)}/${one.metadata.name}`, one];
  }
}
