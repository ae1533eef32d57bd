/** Starts, stops and finds the server processes of the lab. */
import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, seed } from '../../../hack/cluster/chosen.ts';
import { find, stop, type Running } from '../../../hack/cluster/processes.ts';
import { startServer, type Server } from '../../../hack/run/server.ts';
import { lab, type Ports } from './lab.ts';

const prefix = 'server-';

export const isServer = (name: string): boolean => name.startsWith(prefix);

/** Returns a new name for a server. Each name has its own log file, so that no log of a run is overwritten. */
function newName(dir: string): string {
  for (let number = 1; ; number += 1) {
    const name = `${prefix}${number}`;
    const log = join(dir, `${name}.log`);
    if (existsSync(log)) continue;
    writeFileSync(log, '');
    return name;
  }
}

/** Returns the logs of all servers started in this run. */
export const serverLogs = (dir: string): string[] =>
  readdirSync(dir)
    .filter((file) => isServer(file) && file.endsWith('.log'))
    .map((file) => join(dir, file));

interface StartOptions {
  readonly dir: string;
  readonly kubeconfig: string;
  readonly address: string;
  readonly ports: Ports;
  readonly flags?: readonly string[];
}

export async function startNamed(options: StartOptions): Promise<{ name: string; server: Server }> {
  const name = newName(options.dir);
  return { name, server: await startServer({ ...options, name }) };
}

const replicasFile = (dir: string): string => join(dir, 'replicas.json');

/** Records the names of the servers that are currently the two replicas. */
export const writeReplicas = (dir: string, names: readonly string[]): void =>
  writeFileSync(replicasFile(dir), JSON.stringify(names));

export const replicaNames = (dir: string): string[] => JSON.parse(readFileSync(replicasFile(dir), 'utf8')) as string[];

const presenceFile = (dir: string): string => join(dir, 'presence.log');

/** Records that a replica has become ready or is being stopped. */
export const recordPresence = (dir: string, index: number, isReady: boolean): void =>
  appendFileSync(presenceFile(dir), `${JSON.stringify({ time: Date.now(), index, isReady })}\n`);

/** Milliseconds that kube-apiserver can take to notice that a replica has restarted. */
const noticed = 60_000;

/**
 * Returns whether both replicas were ready at that time, and had been ready for long enough that kube-apiserver had
 * noticed.
 */
export function werePresent(time: number): boolean {
  const events = readFileSync(presenceFile(lab().dir), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { time: number; index: number; isReady: boolean });
  return [0, 1].every((index) => {
    const last = events.findLast((event) => event.index === index && event.time <= time);
    return last?.isReady === true && last.time + noticed <= time;
  });
}

/** Returns the processes of the two replicas; undefined for a process that has ended. */
export const replicaProcesses = (): (Running | undefined)[] =>
  replicaNames(lab().dir).map((name) => find(lab().dir, name));

/** Returns the logs of the two replicas since their last start. */
export const replicaLogs = (): string[] => replicaNames(lab().dir).map((name) => join(lab().dir, `${name}.log`));

export async function stopReplica(index: 0 | 1, signal: 'SIGTERM' | 'SIGINT' | 'SIGKILL' = 'SIGINT'): Promise<void> {
  recordPresence(lab().dir, index, false);
  const running = replicaProcesses()[index];
  if (running !== undefined) await stop(lab().dir, running, signal, 30_000);
}

/** Starts a stopped replica at its previous ports, and waits until it is ready. */
export async function startReplica(index: 0 | 1): Promise<void> {
  const { dir, serverKubeconfig: kubeconfig, address, replicas } = lab();
  const { name, server } = await startNamed({ dir, kubeconfig, address, ports: replicas[index] });
  const names = replicaNames(dir);
  names[index] = name;
  writeReplicas(dir, names);
  await server.ready();
  recordPresence(dir, index, true);
}

export interface Extra extends Server {
  readonly ports: Ports;
  /** Kills a replica with SIGKILL. */
  kill(): Promise<void>;
}

async function freePorts(dir: string, address: string): Promise<Ports> {
  const http = await freePort(28_100 + seed(dir, 4_000));
  return { http, https: await freePort(http + 1), aggregated: await freePort(11_250, address) };
}

/** Starts a server that is unknown to kube-apiserver. The caller must stop the server. */
export async function startExtra(flags: readonly string[] = [], chosen?: Ports): Promise<Extra> {
  const { dir, serverKubeconfig: kubeconfig, address } = lab();
  const ports = chosen ?? (await freePorts(dir, address));
  const { name, server } = await startNamed({ dir, kubeconfig, address, ports, flags });
  const kill = async (): Promise<void> => {
    const running = find(dir, name);
    if (running !== undefined) await stop(dir, running, 'SIGKILL', 30_000);
  };
  return { ...server, ports, kill };
}
