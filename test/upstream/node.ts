/** Runs the specs that need running containers in a real cluster of one node, like the cluster of `make e2e`. */
import { basename, join } from 'node:path';
import { mkdir } from 'node:fs/promises';
import { moduleFolder } from '../../hack/cluster/go-modules.ts';
import { startNodeTree, type NodeTree } from '../e2e/machine/node-tree.ts';
import { buildAgnhost } from './program.ts';

/** Milliseconds for both runs, which take about 20 minutes. */
const timeout = 3_600_000;

/** Starts both runs. The reports are in `dir` when the returned process tree has ended with code 0. */
export async function startNodeRuns(program: string, dir: string): Promise<NodeTree> {
  await mkdir(dir);
  const agnhost = await buildAgnhost();
  const source = join(await moduleFolder('k8s.io/kubernetes'), 'test/images/agnhost');
  const controlGroup = `${basename(join(dir, '..'))}-node`;
  return startNodeTree(join(import.meta.dirname, 'inside.ts'), [controlGroup, dir, program, agnhost, source], timeout);
}
