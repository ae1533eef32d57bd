/** A real control plane on this machine: etcd, kube-apiserver with the aggregator on, kube-controller-manager, and kwok for its nodes. */
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { existsSync } from 'node:fs';
import { createKubeClient, type KubeClient } from '../../src/cluster/client/client.ts';
import { clusterPki } from './cluster-pki.ts';
import { apiserverFlags, controllerManagerFlags, etcdFlags, kwokFlags } from './flags.ts';
import { kwokStages } from './go-modules.ts';
import { writeKubeconfig } from './kubeconfig.ts';
import { withLock } from './lock.ts';
import { addressBlock, closeBlock, openBlock } from './network.ts';
import { setNodes } from './nodes.ts';
import { choosePorts } from './ports.ts';
import { assertAlive, find, findAll, start, stop, type Command, type Running } from './processes.ts';
import { programs } from './programs.ts';
import { until } from './until.ts';

export interface ControlPlaneOptions {
  /** Holds all of its state; two control planes at a time need two folders. */
  readonly dir: string;
  /** How many nodes it shall have; left out, those that it has, three at first. */
  readonly nodes?: number | undefined;
  /** Leaves nodes and pods to the caller, who may have put etcd's data into `dir`: they are as they are, and kwok does not run. */
  readonly untended?: boolean;
  /** For kube-apiserver, after our own. */
  readonly apiserverFlags?: readonly string[];
}

export interface ControlPlane {
  readonly dir: string;
  /** A kubeconfig in group system:masters. */
  readonly kubeconfig: string;
  readonly server: string;
  /** Where kube-apiserver reaches an aggregated server on this machine; it is ours only if we are root. */
  readonly address: string;
  readonly processes: readonly Running[];
  /** Ends every process and removes the state. */
  stop(): Promise<void>;
}

/** Milliseconds: a busy machine reads 150,000 objects of etcd in more than a minute. */
export const readingTime = 600_000;

/** Starts what is not running yet and waits until it answers. */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const dir = resolve(options.dir);
  const paths = await programs(['etcd', 'kube-apiserver', 'kube-controller-manager', 'kwok']);
  return withLock(dir, async () => {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const block = await addressBlock(dir);
    await openBlock(block);
    const pki = await clusterPki(join(dir, 'pki'), block);
    const running = findAll(dir).length > 0;
    const port = await choosePorts(dir, ['etcd', 'etcd-peer', 'kube-apiserver', 'kube-controller-manager'], running);
    const server = `https://127.0.0.1:${port['kube-apiserver']}`;
    const cluster = { server, authority: pki.authority };
    const kubeconfig = join(dir, 'kubeconfig');
    await writeKubeconfig(kubeconfig, cluster, pki.admin);
    const controllers = join(dir, 'controller-manager.kubeconfig');
    await writeKubeconfig(controllers, cluster, pki.controllerManager);

    const etcd = await ensure(dir, 'etcd', [paths.etcd, ...etcdFlags(dir, port.etcd, port['etcd-peer'])]);
    const apiserver = await ensure(dir, 'kube-apiserver', [
      paths['kube-apiserver'],
      `--etcd-servers=http://127.0.0.1:${port.etcd}`,
      `--secure-port=${port['kube-apiserver']}`,
      ...apiserverFlags(join(dir, 'pki'), block),
      ...(options.apiserverFlags ?? []),
    ]);
    const kube = await createKubeClient({ kubeconfig });
    try {
      await ready(kube, () => assertAlive(dir, [etcd, apiserver]), options.untended === true ? readingTime : undefined);
      const controllerManager = await ensure(dir, 'kube-controller-manager', [
        paths['kube-controller-manager'],
        `--secure-port=${port['kube-controller-manager']}`,
        ...controllerManagerFlags(join(dir, 'pki'), controllers),
      ]);
      const processes = [etcd, apiserver, controllerManager];
      const check = (): Promise<void> => assertAlive(dir, processes);
      if (options.untended !== true) {
        const flags = [`--kubeconfig=${kubeconfig}`, ...kwokFlags(await kwokStages(), block)];
        processes.push(await ensure(dir, 'kwok', [paths.kwok, ...flags]));
        await setNodes(kube, block, options.nodes, check);
      }
      // The last thing that kube-controller-manager does for a new cluster; pods need it.
      await found(kube, '/api/v1/namespaces/default/serviceaccounts/default', check);
      return { dir, kubeconfig, server, address: block.address, processes, stop: () => stopControlPlane(dir) };
    } finally {
      await kube.close();
    }
  });
}

/** Ends everything that was started with `dir` and removes its state, but for what the next start uses again. */
export async function stopControlPlane(dir: string): Promise<void> {
  const folder = resolve(dir);
  if (!existsSync(join(folder, 'chosen.json'))) return; // not a folder of ours
  await withLock(folder, async () => {
    for (const running of findAll(folder)) {
      // A server of ours says goodbye to its clients; of the control plane nothing is kept, so it need not tidy up.
      await stop(folder, running, isControlPlane(running) ? 'SIGKILL' : 'SIGTERM');
    }
    await closeBlock(await addressBlock(folder));
    for (const part of await readdir(folder))
      if (!kept.includes(part)) await rm(join(folder, part), { recursive: true, force: true });
  });
}

/** The numbers chosen (ports, addresses), and links to programs. */
const kept = ['chosen.json', 'bin'];

const isControlPlane = ({ name }: Running): boolean => name === 'etcd' || name === 'kwok' || name.startsWith('kube-');

/** The process as it runs, or started; one that runs with other flags is started anew. */
async function ensure(dir: string, name: string, command: Command): Promise<Running> {
  const running = find(dir, name);
  if (running !== undefined && JSON.stringify(running.command) === JSON.stringify(command)) return running;
  if (running !== undefined) await stop(dir, running, 'SIGTERM');
  return start(dir, name, command);
}

async function ready(kube: KubeClient, check: () => Promise<void>, patience?: number): Promise<void> {
  const isReady = async (): Promise<boolean> => {
    const { status, body } = await kube.stream('/readyz');
    body.resume();
    return status === 200;
  };
  await until('kube-apiserver is ready', check, isReady, patience);
}

async function found(kube: KubeClient, path: string, check: () => Promise<void>): Promise<void> {
  await until(`${path} exists`, check, async () => (await kube.json(path)) !== undefined);
}
