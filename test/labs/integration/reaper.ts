/**
 * `node reaper.ts FOLDER` ends everything that was started for a run of the tests, keeps the logs and removes the folder, as soon as its
 * standard input ends: then the run is over, or was killed.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { stopControlPlane } from '../../../hack/cluster/control-plane.ts';
import { findAll, stop } from '../../../hack/cluster/processes.ts';
import { isServer } from './servers.ts';

/** In a session of its own: Ctrl-C at the terminal ends the run, and only thereby this. */
export function startReaper(dir: string): ChildProcess {
  const reaper = spawn(process.execPath, [import.meta.filename, dir], {
    stdio: ['pipe', 'ignore', 'inherit'],
    detached: true,
  });
  reaper.unref();
  return reaper;
}

/** Resolves when nothing is left. */
export async function reap(reaper: ChildProcess): Promise<void> {
  const ended = once(reaper, 'exit');
  reaper.ref();
  reaper.stdin?.end();
  await ended;
}

/** Copies the logs of the servers and the control plane to where those of the last run were. */
async function keepLogs(dir: string): Promise<void> {
  const kept = join(import.meta.dirname, '../../../.cluster/integration-logs');
  await rm(kept, { recursive: true, force: true });
  await mkdir(kept, { recursive: true });
  const logs = (await readdir(dir)).filter((file) => file.endsWith('.log'));
  for (const log of logs) await copyFile(join(dir, log), join(kept, log));
}

async function main(dir: string): Promise<void> {
  process.stdin.resume();
  await once(process.stdin, 'end');
  const servers = findAll(dir).filter(({ name }) => isServer(name));
  // Without the pause in which a cluster would learn that they go.
  await Promise.all(servers.map((server) => stop(dir, server, 'SIGINT')));
  await keepLogs(dir);
  await stopControlPlane(dir);
  await rm(dir, { recursive: true, force: true });
}

const [, script, folder] = process.argv;
if (script === import.meta.filename && folder !== undefined) await main(folder);
