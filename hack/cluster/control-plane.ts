/** A real control plane on this machine: etcd, kube-apiserver with the aggregator on, kube-controller-manager, and kwok for its nodes. */
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { existsSync } from 'node:fs';
import { createKubeClient, type KubeClient } from '../../src/kube/client.ts';
import { writeKubeconfig } from './kubeconfig.ts';
import { withLock } from './lock.ts';
import { addressBlock, closeBlock, openBlock, type Block } from './network.ts';
import { setNodes } from './nodes.ts';
import { createAuthority, signingKey, type Pair } from './pki.ts';
import { choosePorts } from './ports.ts';
import { assertAlive, find, findAll, start, stop, type Command, type Running } from './processes.ts';
import { kwokStages, programs } from './programs.ts';
import { until } from './until.ts';

export interface ControlPlaneOptions {
  /** Holds all of its state; two control planes at a time need two folders. */
  readonly dir: string;
  /** How many nodes it shall have; left out, those that it has, three at first. */
  readonly nodes?: number | undefined;
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

/** Starts what is not running yet and waits until it answers. */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const dir = resolve(options.dir);
  const paths = await programs(['etcd', 'kube-apiserver', 'kube-controller-manager', 'kwok']);
  return withLock(dir, async () => {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const block = await addressBlock(dir);
    await openBlock(block);
    const pki = await writePki(join(dir, 'pki'), block);
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
      await ready(kube, () => assertAlive(dir, [etcd, apiserver]));
      const controllerManager = await ensure(dir, 'kube-controller-manager', [
        paths['kube-controller-manager'],
        `--secure-port=${port['kube-controller-manager']}`,
        ...controllerManagerFlags(join(dir, 'pki'), controllers),
      ]);
      const kwok = await ensure(dir, 'kwok', [
        paths.kwok,
        `--kubeconfig=${kubeconfig}`,
        ...kwokFlags(await kwokStages(), block),
      ]);
      const processes = [etcd, apiserver, controllerManager, kwok];
      const check = (): Promise<void> => assertAlive(dir, processes);
      await setNodes(kube, block, options.nodes, check);
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

interface Pki {
  readonly authority: string;
  readonly admin: Pair;
  readonly controllerManager: Pair;
}

/** Makes every key once; a folder without `complete.json` is the rest of an interrupted start. */
async function writePki(folder: string, block: Block): Promise<Pki> {
  const complete = join(folder, 'complete.json');
  if (existsSync(complete)) return JSON.parse(await readFile(complete, 'utf8')) as Pki;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const write = (name: string, text: string): Promise<void> => writeFile(join(folder, name), text, { mode: 0o600 });
  const writePair = async (name: string, pair: Pair): Promise<void> => {
    await write(`${name}.crt`, pair.certificate);
    await write(`${name}.key`, pair.key);
  };
  const authority = await createAuthority('kubernetes-ca');
  const frontProxy = await createAuthority('front-proxy-ca');
  const service = [
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    'kubernetes.default.svc.cluster.local',
  ];
  const names = ['localhost', ...service, '127.0.0.1', block.firstService];
  const serviceAccount = await signingKey();
  await writePair('ca', authority);
  await writePair('front-proxy-ca', frontProxy);
  await writePair('apiserver', await authority.issue({ commonName: 'kube-apiserver', server: names }));
  await writePair('front-proxy-client', await frontProxy.issue({ commonName: 'front-proxy-client' }));
  await write('service-account.key', serviceAccount.key);
  await write('service-account.pub', serviceAccount.publicKey);
  const pki: Pki = {
    authority: authority.certificate,
    admin: await authority.issue({ commonName: 'kubernetes-admin', organization: 'system:masters' }),
    controllerManager: await authority.issue({ commonName: 'system:kube-controller-manager' }),
  };
  await write('complete.json', JSON.stringify(pki));
  return pki;
}

const etcdFlags = (dir: string, port: number, peerPort: number): string[] => [
  '--name=platform',
  `--data-dir=${join(dir, 'etcd')}`,
  `--listen-client-urls=http://127.0.0.1:${port}`,
  `--advertise-client-urls=http://127.0.0.1:${port}`,
  `--listen-peer-urls=http://127.0.0.1:${peerPort}`,
  `--initial-advertise-peer-urls=http://127.0.0.1:${peerPort}`,
  `--initial-cluster=platform=http://127.0.0.1:${peerPort}`,
  '--unsafe-no-fsync', // its data need not survive the machine
  `--quota-backend-bytes=${8 * 2 ** 30}`,
  '--log-level=warn',
];

const apiserverFlags = (pki: string, block: Block): string[] => [
  '--bind-address=127.0.0.1',
  `--tls-cert-file=${pki}/apiserver.crt`,
  `--tls-private-key-file=${pki}/apiserver.key`,
  `--client-ca-file=${pki}/ca.crt`,
  '--authorization-mode=Node,RBAC',
  '--enable-admission-plugins=NodeRestriction',
  // It taints every new node as not ready, and kube-controller-manager takes that away by a third write of each node.
  '--disable-admission-plugins=TaintNodesByCondition',
  '--allow-privileged',
  '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
  `--service-account-key-file=${pki}/service-account.pub`,
  `--service-account-signing-key-file=${pki}/service-account.key`,
  `--service-cluster-ip-range=${block.services}`,
  `--requestheader-client-ca-file=${pki}/front-proxy-ca.crt`,
  '--requestheader-allowed-names=front-proxy-client',
  '--requestheader-username-headers=X-Remote-User',
  '--requestheader-uid-headers=X-Remote-Uid',
  '--requestheader-group-headers=X-Remote-Group',
  '--requestheader-extra-headers-prefix=X-Remote-Extra-',
  `--proxy-client-cert-file=${pki}/front-proxy-client.crt`,
  `--proxy-client-key-file=${pki}/front-proxy-client.key`,
  '--enable-aggregator-routing', // to endpoints: nothing here routes ClusterIPs
];

const controllerManagerFlags = (pki: string, kubeconfig: string): string[] => [
  `--kubeconfig=${kubeconfig}`,
  `--authentication-kubeconfig=${kubeconfig}`,
  `--authorization-kubeconfig=${kubeconfig}`,
  '--bind-address=127.0.0.1',
  '--leader-elect=false',
  '--use-service-account-credentials',
  `--service-account-private-key-file=${pki}/service-account.key`,
  `--root-ca-file=${pki}/ca.crt`,
  `--client-ca-file=${pki}/ca.crt`,
  `--requestheader-client-ca-file=${pki}/front-proxy-ca.crt`,
  `--cluster-signing-cert-file=${pki}/ca.crt`,
  `--cluster-signing-key-file=${pki}/ca.key`,
  // ttl-controller writes every node again each time the cluster outgrows a size; our nodes have its annotation from the start.
  '--controllers=*,-ttl-controller',
  // No kubelet renews a lease, so silence is no sign of a dead node.
  '--node-monitor-grace-period=8760h',
  '--node-startup-grace-period=8760h',
  '--kube-api-qps=1000',
  '--kube-api-burst=2000',
];

const kwokFlags = (stages: string, block: Block): string[] => [
  `--config=${stages}`,
  '--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake',
  // No leases: a kwok started anew would leave the nodes alone until those of its predecessor expire.
  '--node-lease-duration-seconds=0',
  `--cidr=${block.pods}`,
  `--node-ip=${block.address}`,
  '--v=WARN',
];

async function ready(kube: KubeClient, check: () => Promise<void>): Promise<void> {
  await until('kube-apiserver is ready', check, async () => {
    const { status, body } = await kube.stream('/readyz');
    body.resume();
    return status === 200;
  });
}

async function found(kube: KubeClient, path: string, check: () => Promise<void>): Promise<void> {
  await until(`${path} exists`, check, async () => (await kube.json(path)) !== undefined);
}
