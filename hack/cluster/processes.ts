/** Processes that outlive the command that starts them, each on record in `<folder>/processes/<name>.json`. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { mkdir, open, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Running {
  readonly name: string;
  readonly pid: number;
  /** Clock ticks from the machine's start to the process's, as /proc has it: with the pid it names one process for ever. */
  readonly startTime: string;
  readonly command: readonly string[];
}

const record = (folder: string, name: string): string => join(folder, 'processes', `${name}.json`);

export const logFile = (folder: string, name: string): string => join(folder, `${name}.log`);

/**
 * A process that has ended but that nobody has waited for (Z) is not alive, whatever kill(pid, 0) says. Its first thread may end before
 * the others, which keep its ports.
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

/** The process of that name, if it is alive. */
export function find(folder: string, name: string): Running | undefined {
  try {
    const running = JSON.parse(readFileSync(record(folder, name), 'utf8')) as Running;
    return isAlive(running) ? running : undefined;
  } catch {
    return undefined;
  }
}

/** All that are alive, the last started first. */
export function findAll(folder: string): Running[] {
  let files: string[] = [];
  try {
    files = readdirSync(join(folder, 'processes'));
  } catch {
    // Nothing was ever started here.
  }
  return files
    .filter((file) => file.endsWith('.json'))
    .flatMap((file) => find(folder, file.slice(0, -'.json'.length)) ?? [])
    .toSorted((a, b) => Number(b.startTime) - Number(a.startTime));
}

export type Command = readonly [program: string, ...args: string[]];

/** A process that we started ourselves. It does not keep us alive, unless `child.ref()` is called. */
export interface Started extends Running {
  readonly child: ChildProcess;
}

/**
 * Starts `command` in a session of its own, so that Ctrl-C at the terminal does not reach it. `mode`: the log is written anew (w) or
 * appended to (a).
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

/** Ends a process and waits until it is gone; one that does not heed `signal` within `patience` milliseconds is killed. */
export async function stop(folder: string, running: Running, signal: NodeJS.Signals, patience = 10_000): Promise<void> {
  send(running, signal);
  for (let waited = 0; isAlive(running); waited += 20) {
    if (waited === patience) send(running, 'SIGKILL');
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

/** Throws with the end of the log if one of them has ended. */
export async function assertAlive(folder: string, all: readonly Running[]): Promise<void> {
  for (const running of all)
    if (!isAlive(running))
      throw new Error(`${running.name} has ended. The end of its log:\n${await logEnd(folder, running.name)}`);
}

export async function logEnd(folder: string, name: string, lines = 15): Promise<string> {
  const text = await readFile(logFile(folder, name), 'utf8').catch(() => '');
  return text.trimEnd().split('\n').slice(-lines).join('\n');
}
