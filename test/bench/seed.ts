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
import { accountObjects } from './account-objects.ts';
import { node, pod, podNamespace, type StoredAt } from './objects.ts';

export interface Size {
  readonly nodes: number;
  readonly pods: number;
  readonly users?: number;
  readonly sessions?: number;
}

const concurrency = 8;
/**
 * Number of objects in a transaction before kube-apiserver starts. One write at a time takes minutes for 150,000
 * objects.
 */
const objectsPerTransaction = 50;
/** Files from which the data is created. */
const sources = ['seed.ts', 'objects.ts', 'account-objects.ts', 'managed-fields.ts', '../../hack/cluster/node.ts'];

/** Copies etcd's data to the state folder `dir` of a control plane. */
export async function seed(dir: string, size: Size): Promise<void> {
  const hash = createHash('sha256');
  for (const file of sources) hash.update(await readFile(join(import.meta.dirname, file)));
  const cache = join(await cacheFolder(), 'bench');
  const { nodes, pods, users = 0, sessions = 0 } = size;
  const kept = join(cache, [hash.digest('hex').slice(0, 12), nodes, pods, users, sessions].join('-'));
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
    const check = (): Promise<void> => assertAlive(folder, [running]);
    await put(ports.etcd, size, check, objectsPerTransaction);
  } finally {
    await stop(folder, running, 'SIGTERM');
  }
}

/** Writes the objects of a cluster of this size, see `putObjects`. */
export const put = (port: number, size: Size, check: () => Promise<void>, perTransaction = 1): Promise<void> =>
  putObjects(port, objects(size), `making ${described(size)}`, check, perTransaction);

function described(size: Size): string {
  const made = Object.entries(size).filter(([, count]) => Number(count) > 0);
  return made.map(([kind, count]) => `${count} ${kind}`).join(', ') || 'no objects';
}

/**
 * Writes objects to the etcd on this port, by the keys that kube-apiserver uses. `what` describes them in the output.
 * `perTransaction` is the number of objects per transaction. It must be 1 while kube-apiserver runs: all objects of a
 * transaction have the same resourceVersion, so a watch that resumes at one of them misses the others.
 */
export async function putObjects(
  port: number,
  all: Iterable<StoredAt>,
  what: string,
  check: () => Promise<void>,
  perTransaction = 1,
): Promise<void> {
  const url = `http://127.0.0.1:${port}`;
  await until('etcd is healthy', check, async () => (await fetch(`${url}/health`)).ok);
  const step = progress(what);
  const parts = inParts(all, perTransaction);
  let done = 0;
  const worker = async (): Promise<void> => {
    for (const part of parts) {
      const success = part.map(([key, object]) => ({
        requestPut: { key: base64(key), value: base64(JSON.stringify(object)) },
      }));
      const response = await fetch(`${url}/v3/kv/txn`, { method: 'POST', body: JSON.stringify({ success }) });
      if (!response.ok) throw new Error(`etcd rejects a transaction: ${await response.text()}`);
      await response.arrayBuffer();
      done += success.length;
      step.detail(String(done));
    }
  };
  try {
    await Promise.all(Array.from({ length: concurrency }, worker));
    step.end(true);
  } catch (error) {
    step.end(false);
    throw error;
  }
}

function* inParts<T>(items: Iterable<T>, size: number): Generator<T[]> {
  let part: T[] = [];
  for (const item of items) {
    part.push(item);
    if (part.length < size) continue;
    yield part;
    part = [];
  }
  if (part.length > 0) yield part;
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** Objects by the keys that kube-apiserver uses. */
function* objects({ nodes, pods, users = 0, sessions = 0 }: Size): Generator<StoredAt> {
  for (let index = 0; index < nodes; index++) yield [`/registry/minions/${nodeName(index)}`, node(index, nodes)];
  for (let index = 0; index < pods; index++) {
    const one = pod(index, nodes) as { metadata: { name: string } };
    yield [`/registry/pods/${podNamespace(index)}/${one.metadata.name}`, one];
  }
  yield* accountObjects(users, sessions);
}
