/**
 * make e2e: installs the chart in a real single-node cluster, created here from packages, and tests it as users,
 * components and the cluster would. Everything runs in its own namespaces and is removed afterwards.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { basename, join } from 'node:path';
import { logEnd } from '../../hack/cluster/processes.ts';
import { programs } from '../../hack/cluster/programs.ts';
import { makeControlGroup } from './machine/cgroups.ts';
import { startTree } from './machine/namespaces.ts';
import { installPackages } from './machine/packages.ts';
import { needed } from './node/programs.ts';

/** Milliseconds for everything in the namespaces, which takes about two minutes. */
const timeout = 900_000;

async function run(): Promise<number> {
  if (process.platform !== 'linux') throw new Error('a node needs Linux, and this is another system');
  if (userInfo().uid !== 0) throw new Error('a node needs root: sudo make e2e');
  await installPackages();
  await programs(needed);

  const folder = mkdtempSync(join(tmpdir(), 'platform-e2e-'));
  let removeControlGroup: (() => Promise<void>) | undefined;
  let code: number | null = null;
  let stopped = '';
  try {
    removeControlGroup = makeControlGroup(basename(folder));
    const tree = await startTree(join(import.meta.dirname, 'inside.ts'), [folder]);
    const stop = (reason: string): void => {
      stopped = reason;
      tree.kill();
    };
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop(signal));
    const timer = setTimeout(() => stop(`timed out after ${timeout / 60_000} minutes`), timeout);
    code = await tree.ended;
    clearTimeout(timer);
  } finally {
    await removeControlGroup?.();
    if (code === 0 || stopped.startsWith('SIG')) rmSync(folder, { recursive: true });
  }
  if (stopped !== '') console.error(`stopped: ${stopped}`);
  if (code === 0 || stopped.startsWith('SIG')) return code ?? 1;
  // Failed cases have already printed their diagnostics.
  if (code !== 1) await showLogs(folder);
  keepLogs(folder);
  return 1;
}

async function showLogs(folder: string): Promise<void> {
  const logs = readdirSync(folder).filter((name) => name.endsWith('.log'));
  for (const name of ['containerd', 'kubelet', 'kube-apiserver'])
    if (logs.includes(`${name}.log`)) console.error(`\nThe end of ${name}.log:\n${await logEnd(folder, name)}`);
}

function keepLogs(folder: string): void {
  for (const name of readdirSync(folder))
    if (!/\.log$|^var-log$|^pods-/.test(name)) rmSync(join(folder, name), { recursive: true });
  console.error(`\nThe logs are in ${folder}`);
}

try {
  process.exitCode = await run();
} catch (error) {
  console.error(`make e2e cannot run: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
