/**
 * Runs in the namespaces on behalf of main.ts: the cluster, then the cases. All processes in the namespaces end with
 * it.
 */
import { cases } from './cases/index.ts';
import { startCluster } from './cluster.ts';
import { inventory } from './inventory.ts';
import { runCases } from './steps.ts';

const [controlGroup = '', folder = ''] = process.argv.slice(2);
try {
  const cluster = await startCluster(folder, controlGroup);
  const passed = await runCases(cases(await inventory(cluster.kube)), cluster);
  process.exit(passed ? 0 : 1);
} catch (error) {
  console.error(error);
  process.exit(2);
}
