/** Runs a service, such as a log store, as a process that does not outlive its parent. */
import { spawn } from 'node:child_process';
import { findProgram } from './apt.ts';
import { until } from './until.ts';

export interface RunningService {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
  /** Kills the process, because its data is not needed. */
  stop(): Promise<void>;
}

export interface ServiceProcess {
  readonly name: string;
  readonly url: string;
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Id of the user and group that the service runs as. Default: the user and group of this process. */
  readonly id?: number | undefined;
  /** Path that returns 200 once the service accepts requests. */
  readonly readyPath: string;
}

const readyTimeout = 180_000;

export async function run({ name, url, command, cwd, env, id, readyPath }: ServiceProcess): Promise<RunningService> {
  // The kernel kills the service when its parent dies, even if the parent was killed.
  const setprivFlags = [
    '--pdeathsig',
    'KILL',
    ...(id === undefined ? [] : [`--reuid=${id}`, `--regid=${id}`, '--clear-groups']),
  ];
  const [program = '', ...args] =
    findProgram('setpriv') === undefined ? command : ['setpriv', ...setprivFlags, '--', ...command];
  const child = spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
  let log = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (log = `${log}${text}`.slice(-10_000)));
  const exited = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      log += error.message;
      resolve();
    });
    child.once('exit', () => resolve());
  });
  let isRunning = true;
  void exited.then(() => (isRunning = false));
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
  };
  try {
    await until(
      `${name} is ready`,
      async () => {
        if (!isRunning) throw new Error(`${name} has exited:\n${log}`);
      },
      async () => (await fetch(`${url}${readyPath}`)).ok,
      readyTimeout,
    );
  } catch (error) {
    await stop();
    throw error;
  }
  return { name, url, pid: child.pid ?? 0, stop };
}
