/** The changes of nodes that arrive all the while. */
import { statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { start } from '../../hack/cluster/processes.ts';

export const changesPerSecond = 50;

const writer = fileURLToPath(import.meta.resolve('./writer.ts'));

/** Starts them; the processes of the state folder `dir` end together. Returns the file that says how many there have been. */
export async function startChanges(dir: string, kubeconfig: string, nodes: number): Promise<string> {
  const file = join(dir, 'changes');
  await writeFile(file, '');
  await start(dir, 'writer', [process.execPath, writer, kubeconfig, String(nodes), file]);
  return file;
}

/** How many have been written until now. */
export const changesIn = (file: string): number => statSync(file).size;
