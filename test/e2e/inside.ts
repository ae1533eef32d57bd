/**
 * main.ts runs this script in the namespaces. The script starts the cluster and then runs the cases. When the script
 * ends, the kernel kills all processes in the namespaces.
 */
import { cases } from './cases/index.ts';
import { startCluster } from './cluster.ts';
import { inventory } from './inventory.ts';
import { runCases } from './steps.ts';

const [controlGroup = '', folder = ''] = process.argv.slice(2);
try {
  const cluster = await startCluster(folder, controlGroup);
  const passed = await runCases(await cases(await inventory(cluster.kube)), cluster);
  process.exit(passed ? 0 : 1);
} catch (error) {
  console.error(error);
  process.exit(2);
}
