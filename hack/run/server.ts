import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { assertAlive, logFile, start, stop } from '../cluster/processes.ts';
import { until } from '../cluster/until.ts';
import { release } from './chart.ts';

export interface ServerOptions {
  /** State folder of the control plane. The log is `<dir>/<name>.log`. */
  readonly dir: string;
  /** Name of the server within the folder. Default: 'server'. */
  readonly name?: string;
  readonly kubeconfig: string;
  /** Address on which the aggregated port listens. */
  readonly address: string;
  readonly ports: { readonly http: number; readonly https: number; readonly aggregated: number };
  /** Flags appended to the default ones. */
  readonly flags?: readonly string[];
  /** Folder of the compiled server. Default: the output folder of this checkout. */
  readonly build?: string;
}

export interface Server {
  readonly pid: number;
  readonly baseURL: string;
  readonly tlsURL: string;
  readonly log: string;
  /** Resolves when the process exits, with its exit code, or null if a signal ended it. */
  readonly exited: Promise<number | null>;
  /** Throws an error with the end of the log if the process has exited. */
  readonly check: () => Promise<void>;
  /** Waits until the server reports that it is ready. */
  ready(): Promise<void>;
  /** Sends SIGTERM, and kills the server after 30 seconds. */
  stop(): Promise<void>;
}

/** Output folder of `make build`. */
const ownBuild = join(import.meta.dirname, '../../dist');
/** Node flags, the same as in the Dockerfile. */
export const nodeFlags = ['--max-semi-space-size=16', '--no-allocation-site-pretenuring', '--expose-gc'];

/** Makes the kernel send SIGTERM to the server when its parent dies, even if the parent was killed. */
const setpriv = '/usr/bin/setpriv';
export const leash = existsSync(setpriv) ? [setpriv, '--pdeathsig', 'TERM', '--'] : [];

/** Starts a server as a process. `ready()` waits until the server is ready. */
export async function startServer(options: ServerOptions): Promise<Server> {
  const { dir, name = 'server', ports, build = ownBuild } = options;
  const [program, ...args] = [
    ...leash,
    process.execPath,
    ...nodeFlags,
    join(build, 'main.js'),
    `--http-port=${ports.http}`,
    `--https-port=${ports.https}`,
    `--aggregated-port=${ports.aggregated}`,
    '--bind-address=127.0.0.1',
    `--aggregated-bind-address=${options.address}`,
    `--kubeconfig=${options.kubeconfig}`,
    `--namespace=${release.namespace}`,
    `--service-name=${release.name}`,
    ...(options.flags ?? []),
  ];
  const started = await start(dir, name, [program ?? '', ...args]);
  started.child.ref();
  const exited = once(started.child, 'exit').then(([code]) => code as number | null);
  const baseURL = `http://127.0.0.1:${ports.http}`;
  const check = (): Promise<void> => assertAlive(dir, [started]);
  return {
    pid: started.pid,
    baseURL,
    tlsURL: `https://127.0.0.1:${ports.https}`,
    log: logFile(dir, name),
    exited,
    check,
    ready: () => until('the server is ready', check, async () => (await fetch(`${baseURL}/readyz`)).ok),
    stop: () => stop(dir, started, 'SIGTERM', 30_000),
  };
}
