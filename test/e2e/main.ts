/**
 * make e2e: installs the chart in a real single-node cluster, created here from packages, and tests it as users,
 * components and the cluster would. Everything runs in its own namespaces and is removed afterwards.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { logEnd } from '../../hack/cluster/processes.ts';
import { previousVersion } from './images/previous.ts';
import { operatorPrograms } from './operator/programs.ts';
import { assertCanBeNode, startNodeTree } from './machine/node-tree.ts';

/** Maximum duration of the script in the namespaces in milliseconds. It usually takes about twelve minutes. */
const timeout = 1_800_000;

async function run(): Promise<number> {
  assertCanBeNode('make e2e');
  // The namespaces have no network.
  await previousVersion();
  await operatorPrograms();
  const folder = mkdtempSync(join(tmpdir(), 'platform-e2e-'));
  const node = await startNodeTree(join(import.meta.dirname, 'inside.ts'), [basename(folder), folder], timeout);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => node.stop(signal));
  const { code, stopped = '' } = await node.ended;
  if (stopped !== '') console.error(`stopped: ${stopped}`);
  if (code === 0 || stopped.startsWith('SIG')) {
    rmSync(folder, { recursive: true });
    return code ?? 1;
  }
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
