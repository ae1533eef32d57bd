/**
 * Manages processes that outlive the command that starts them. `<folder>/processes/<name>.json` describes a process.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { mkdir, open, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Running {
  readonly name: string;
  readonly pid: number;
  /**
   * Clock ticks from the boot of the machine to the start of the process (/proc). The start time and the pid together
   * identify one process.
   */
  readonly startTime: string;
  readonly command: readonly string[];
}

const record = (folder: string, name: string): string => join(folder, 'processes', `${name}.json`);

export const logFile = (folder: string, name: string): string => join(folder, `${name}.log`);

/**
 * Returns the start time of a living process. A zombie (Z) is not alive, although kill(pid, 0) succeeds. A zombie with
 * other threads is alive: its first thread has exited, but the other threads keep the ports open.
 */
function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state, threads] = [fields[0], Number(fields[17])];
    return state === 'X' || (state === 'Z' && threads <= 1) ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

const isAlive = ({ pid, startTime }: Running): boolean => startTimeOf(pid) === startTime;

/** Returns the process of that name if it is alive. */
export function find(folder: string, name: string): Running | undefined {
  try {
    const running = JSON.parse(readFileSync(record(folder, name), 'utf8')) as Running;
    return isAlive(running) ? running : undefined;
  } catch {
    return undefined;
  }
}

/** Returns all living processes, most recently started first. */
export function findAll(folder: string): Running[] {
  let files: string[] = [];
  try {
    files = readdirSync(join(folder, 'processes'));
  } catch {
    // No process was ever started in this folder.
  }
  return files
    .filter((file) => file.endsWith('.json'))
    .flatMap((file) => find(folder, file.slice(0, -'.json'.length)) ?? [])
    .toSorted((a, b) => Number(b.startTime) - Number(a.startTime));
}

export type Command = readonly [program: string, ...args: string[]];

/**
 * Process that this process has started. The parent exits without waiting for the child, unless `child.ref()` is
 * called.
 */
export interface Started extends Running {
  readonly child: ChildProcess;
}

/**
 * Starts `command` in its own session, so that Ctrl-C at the terminal does not reach it. `mode` determines whether the
 * log of the process is overwritten (w) or appended to (a).
 */
export async function start(folder: string, name: string, command: Command, mode: 'w' | 'a' = 'w'): Promise<Started> {
  await mkdir(join(folder, 'processes'), { recursive: true, mode: 0o700 });
  const [program, ...args] = command;
  const log = await open(logFile(folder, name), mode, 0o600);
  try {
    const child = spawn(program, args, { stdio: ['ignore', log.fd, log.fd], detached: true });
    await once(child, 'spawn');
    child.unref();
    const pid = child.pid ?? 0;
    const running = { name, pid, startTime: startTimeOf(pid) ?? '', command };
    const file = record(folder, name);
    await writeFile(`${file}.new`, JSON.stringify(running), { mode: 0o600 });
    await rename(`${file}.new`, file);
    return { ...running, child };
  } finally {
    await log.close();
  }
}

/** Sends `signal` to a process and waits until the process exits. Kills the process after `grace` milliseconds. */
export async function stop(folder: string, running: Running, signal: NodeJS.Signals, grace = 10_000): Promise<void> {
  send(running, signal);
  for (let waited = 0; isAlive(running); waited += 20) {
    if (waited === grace) send(running, 'SIGKILL');
    await sleep(20);
  }
  rmSync(record(folder, running.name), { force: true });
}

function send(running: Running, signal: NodeJS.Signals): void {
  try {
    if (isAlive(running)) process.kill(running.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Throws an error with the end of the log if a process has exited. */
export async function assertAlive(folder: string, all: readonly Running[]): Promise<void> {
  for (const running of all)
    if (!isAlive(running))
      throw new Error(`${running.name} has exited. End of its log:\n${await logEnd(folder, running.name)}`);
}

export async function logEnd(folder: string, name: string, lines = 15): Promise<string> {
  const text = await readFile(logFile(folder, name), 'utf8').catch(() => '');
  return text.trimEnd().split('\n').slice(-lines).join('\n');
}
