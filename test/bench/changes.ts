/** The changes of nodes that arrive all the while. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { logFile, start } from '../../hack/cluster/processes.ts';

export const changesPerSecond = 50;

const writer = fileURLToPath(import.meta.resolve('./writer.ts'));

/** Starts them; the processes of the state folder `dir` end together. */
export async function startChanges(dir: string, kubeconfig: string, nodes: number): Promise<void> {
  await start(dir, 'writer', [process.execPath, writer, kubeconfig, String(nodes)]);
}

/** How many have been written. */
export async function changesWritten(dir: string): Promise<number> {
  const log = await readFile(logFile(dir, 'writer'), 'utf8');
  return Number(/written (\d+)\n(?!.*written \d+\n)/s.exec(log)?.[1] ?? 0);
}
