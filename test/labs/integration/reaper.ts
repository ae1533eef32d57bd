/**
 * `node reaper.ts FOLDER PART` ends every process of a test run, keeps the logs and removes the folder. The script
 * starts to do so when its standard input ends, because the run has then finished or was killed.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { stopControlPlane } from '../../../hack/cluster/control-plane.ts';
import { findAll, stop } from '../../../hack/cluster/processes.ts';
import { isServer } from './servers.ts';

/**
 * Starts reaper.ts in its own session, so that Ctrl-C at the terminal does not end it. The script starts its work when
 * the run ends.
 */
export function startReaper(dir: string, part: string): ChildProcess {
  const reaper = spawn(process.execPath, [import.meta.filename, dir, part], {
    stdio: ['pipe', 'ignore', 'inherit'],
    detached: true,
  });
  reaper.unref();
  return reaper;
}

/** Ends the standard input of reaper.ts, and resolves when the cleanup is complete. */
export async function reap(reaper: ChildProcess): Promise<void> {
  reaper.ref();
  reaper.stdin?.end();
  if (reaper.exitCode === null && reaper.signalCode === null) await once(reaper, 'exit');
  if (reaper.exitCode !== 0) throw new Error(`the reaper ended with ${reaper.exitCode ?? reaper.signalCode}`);
}

/**
 * Copies the logs of the servers and the control plane to the folder of this part, which replaces the logs of the
 * previous run.
 */
async function keepLogs(dir: string, part: string): Promise<void> {
  const kept = join(import.meta.dirname, '../../../.cluster/integration-logs', part);
  await rm(kept, { recursive: true, force: true });
  await mkdir(kept, { recursive: true });
  const logs = (await readdir(dir)).filter((file) => file.endsWith('.log'));
  for (const log of logs) await copyFile(join(dir, log), join(kept, log));
}

async function main(dir: string, part: string): Promise<void> {
  process.stdin.resume();
  await once(process.stdin, 'end');
  const servers = findAll(dir).filter(({ name }) => isServer(name));
  try {
    // SIGINT skips the delay in which the server reports that it is not ready but still accepts requests.
    await Promise.all(servers.map((server) => stop(dir, server, 'SIGINT')));
    await keepLogs(dir, part);
  } finally {
    await stopControlPlane(dir);
    await rm(dir, { recursive: true, force: true });
  }
}

const [, script, folder, part = ''] = process.argv;
if (script === import.meta.filename && folder !== undefined) await main(folder, part);
