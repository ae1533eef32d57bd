import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { assertAlive, logFile, start, stop } from '../cluster/processes.ts';
import { until } from '../cluster/until.ts';
import { release } from './chart.ts';

export interface ServerOptions {
  /** The state folder of the control plane; the log is `<dir>/<name>.log`. */
  readonly dir: string;
  /** Tells several servers of one folder apart; 'server' unless stated. */
  readonly name?: string;
  readonly kubeconfig: string;
  /** Where the aggregated port is opened. */
  readonly address: string;
  readonly ports: { readonly http: number; readonly https: number; readonly aggregated: number };
  /** After our own. */
  readonly flags?: readonly string[];
  /** The folder of the compiled server; that of this checkout unless stated. */
  readonly build?: string;
}

export interface Server {
  readonly pid: number;
  readonly baseURL: string;
  readonly tlsURL: string;
  readonly log: string;
  /** Settles when the process has ended, with its exit code, or null if a signal ended it. */
  readonly exited: Promise<number | null>;
  /** Throws with the end of the log if the process has ended. */
  readonly check: () => Promise<void>;
  /** Waits until it says that it is ready. */
  ready(): Promise<void>;
  /** By SIGTERM, with half a minute to finish before it is killed. */
  stop(): Promise<void>;
}

/** What `make build` makes. */
const ownBuild = join(import.meta.dirname, '../../dist');
/** As in the Dockerfile. */
export const nodeFlags = ['--max-semi-space-size=16', '--no-allocation-site-pretenuring'];

/** Ends the server by SIGTERM if its starter dies, even if that was killed. */
const setpriv = '/usr/bin/setpriv';
export const leash = existsSync(setpriv) ? [setpriv, '--pdeathsig', 'TERM', '--'] : [];

/** Starts one server as a process; `ready()` waits for it. */
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
