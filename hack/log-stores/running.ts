/** A log store as a process of its own, which does not outlive who started it. */
import { spawn } from 'node:child_process';
import { findProgram } from '../cluster/apt.ts';
import { until } from '../cluster/until.ts';

export interface RunningStore {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
  /** At once: nobody needs its data. */
  stop(): Promise<void>;
}

export interface Starting {
  readonly name: string;
  readonly url: string;
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** The user and group that it runs as, if another one. */
  readonly id?: number | undefined;
  /** Answers 200 once it can be asked. */
  readonly readyPath: string;
}

const patience = 180_000;

export async function run({ name, url, command, cwd, env, id, readyPath }: Starting): Promise<RunningStore> {
  // Not to outlive who started it, even if that was killed.
  const leash = [
    '--pdeathsig',
    'KILL',
    ...(id === undefined ? [] : [`--reuid=${id}`, `--regid=${id}`, '--clear-groups']),
  ];
  const [program = '', ...args] =
    findProgram('setpriv') === undefined ? command : ['setpriv', ...leash, '--', ...command];
  const child = spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (said = `${said}${text}`.slice(-10_000)));
  const ended = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      said += error.message;
      resolve();
    });
    child.once('exit', () => resolve());
  });
  let isRunning = true;
  void ended.then(() => (isRunning = false));
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
  };
  try {
    await until(
      `${name} answers`,
      async () => {
        if (!isRunning) throw new Error(`${name} has ended:\n${said}`);
      },
      async () => (await fetch(`${url}${readyPath}`)).ok,
      patience,
    );
  } catch (error) {
    await stop();
    throw error;
  }
  return { name, url, pid: child.pid ?? 0, stop };
}
