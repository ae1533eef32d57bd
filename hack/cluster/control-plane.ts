/**
 * Runs a real control plane on this machine: etcd, kube-apiserver with aggregation, kube-controller-manager, and kwok
 * for its nodes.
 */
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { existsSync } from 'node:fs';
import { createKubeClient, type KubeClient } from '../../src/cluster/client/client.ts';
import { clusterPki } from './cluster-pki.ts';
import { apiserverFlags, controllerManagerFlags, etcdFlags, kwokFlags } from './flags.ts';
import { kwokStages } from './go-modules.ts';
import { writeKubeconfig } from './kubeconfig.ts';
import { kubernetesMinor } from './kubernetes-version.ts';
import { withLock } from './lock.ts';
import { addressBlock, closeBlock, openBlock } from './network.ts';
import { setNodes } from './nodes.ts';
import { choosePorts } from './ports.ts';
import { assertAlive, find, findAll, start, stop, type Command, type Running } from './processes.ts';
import { programs } from './programs.ts';
import { until } from './until.ts';

export interface ControlPlaneOptions {
  /** Folder that contains all files of the control plane. Each control plane needs a dedicated folder. */
  readonly dir: string;
  /** Number of nodes. Default: the current number, or three in a new cluster. */
  readonly nodes?: number | undefined;
  /** True to leave nodes and pods unchanged and not to run kwok, because the caller has put etcd's data into `dir`. */
  readonly withoutKwok?: boolean;
  /** Flags of kube-apiserver, appended to the default ones. */
  readonly apiserverFlags?: readonly string[];
}

export interface ControlPlane {
  readonly dir: string;
  /** Path of a kubeconfig whose user is in group system:masters. */
  readonly kubeconfig: string;
  readonly server: string;
  /**
   * Address at which kube-apiserver reaches an aggregated server on this machine. Only root can assign this address.
   */
  readonly address: string;
  readonly processes: readonly Running[];
  /** Stops every process and removes the files of the control plane. */
  stop(): Promise<void>;
}

/**
 * Milliseconds to wait for a large cluster: reading 150,000 objects from etcd takes over a minute on a busy machine.
 */
export const largeClusterTimeout = 600_000;

/** Starts the processes that are not running yet and waits until kube-apiserver is ready. */
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
      ...apiserverFlags(join(dir, 'pki'), block, await kubernetesMinor()),
      ...(options.apiserverFlags ?? []),
    ]);
    const kube = await createKubeClient({ kubeconfig });
    try {
      await waitForReady(
        kube,
        () => assertAlive(dir, [etcd, apiserver]),
        options.withoutKwok === true ? largeClusterTimeout : undefined,
      );
      const controllerManager = await ensure(dir, 'kube-controller-manager', [
        paths['kube-controller-manager'],
        `--secure-port=${port['kube-controller-manager']}`,
        ...controllerManagerFlags(join(dir, 'pki'), controllers),
      ]);
      const processes = [etcd, apiserver, controllerManager];
      const check = (): Promise<void> => assertAlive(dir, processes);
      if (options.withoutKwok !== true) {
        const flags = [`--kubeconfig=${kubeconfig}`, ...kwokFlags(await kwokStages(), block)];
        processes.push(await ensure(dir, 'kwok', [paths.kwok, ...flags]));
        await setNodes(kube, block, options.nodes, check);
      }
      // Pods need this ServiceAccount, which kube-controller-manager creates last in a new cluster.
      await waitForObject(kube, '/api/v1/namespaces/default/serviceaccounts/default', check);
      return { dir, kubeconfig, server, address: block.address, processes, stop: () => stopControlPlane(dir) };
    } finally {
      await kube.close();
    }
  });
}

/** Stops all processes of `dir` and removes its files, except those that the next start uses again. */
export async function stopControlPlane(dir: string): Promise<void> {
  const folder = resolve(dir);
  if (!existsSync(join(folder, 'chosen.json'))) return; // No control plane was started in this folder.
  await withLock(folder, async () => {
    for (const running of findAll(folder)) {
      // The server drains its connections. The control plane needs no graceful stop, because its data is removed.
      await stop(folder, running, isControlPlane(running) ? 'SIGKILL' : 'SIGTERM');
    }
    await closeBlock(await addressBlock(folder));
    for (const part of await readdir(folder))
      if (!kept.includes(part)) await rm(join(folder, part), { recursive: true, force: true });
  });
}

/** Files that are not removed: the chosen ports and addresses, and links to programs. */
const kept = ['chosen.json', 'bin'];

const isControlPlane = ({ name }: Running): boolean => name === 'etcd' || name === 'kwok' || name.startsWith('kube-');

/** Returns the running process, or starts it. Restarts a process whose flags have changed. */
async function ensure(dir: string, name: string, command: Command): Promise<Running> {
  const running = find(dir, name);
  if (running !== undefined && JSON.stringify(running.command) === JSON.stringify(command)) return running;
  if (running !== undefined) await stop(dir, running, 'SIGTERM');
  return start(dir, name, command);
}

async function waitForReady(kube: KubeClient, check: () => Promise<void>, timeout?: number): Promise<void> {
  const isReady = async (): Promise<boolean> => {
    const { status, body } = await kube.stream('/readyz');
    body.resume();
    return status === 200;
  };
  await until('kube-apiserver is ready', check, isReady, timeout);
}

async function waitForObject(kube: KubeClient, path: string, check: () => Promise<void>): Promise<void> {
  await until(`${path} exists`, check, async () => (await kube.json(path)) !== undefined);
}
