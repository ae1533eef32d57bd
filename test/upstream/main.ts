/**
 * `make conformance` runs the Kubernetes end-to-end tests directly at kube-apiserver and then through the gateway, and
 * compares the results. The command fails if a spec differs that differences.ts does not list, or if a listed spec does
 * not differ.
 */
import { copyFile, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stopControlPlane } from '../../hack/cluster/control-plane.ts';
import { build } from '../../hack/build.ts';
import { kubernetesVersion } from '../../hack/cluster/go-modules.ts';
import { programs } from '../../hack/cluster/programs.ts';
import { assertCanBeNode, type NodeTree } from '../e2e/machine/node-tree.ts';
import { startCluster } from './cluster.ts';
import { differences } from './differences.ts';
import { startNodeRuns } from './node.ts';
import { buildProgram, resultsOf, runSpecs } from './program.ts';
import { compare, format, merge, type Comparison, type Results } from './report.ts';
import { simulated } from './specs.ts';

const root = join(import.meta.dirname, '../..');
const results = join(root, '.cluster/conformance');
const dir = await mkdtemp(join(tmpdir(), 'platform-conformance-'));
/** Folders of the two clusters. */
const dirs = { simulated: join(dir, 'simulated'), node: join(dir, 'node') };
let nodeTree: NodeTree | undefined;

async function run(): Promise<number> {
  assertCanBeNode('make conformance');
  await rm(results, { recursive: true, force: true });
  await build();
  const program = await buildProgram();
  await runSimulated(program);
  nodeTree = await startNodeRuns(program, dirs.node);
  const { code, stopped = `exit code ${code}` } = await nodeTree.ended;
  await keep('node');
  if (code !== 0) throw new Error(`the specs that need a node did not run completely: ${stopped}`);
  return await report(compare(await resultsIn('direct'), await resultsIn('gateway'), differences));
}

/** Returns the results of a run in both clusters. */
const resultsIn = async (name: string): Promise<Results> =>
  merge(await Promise.all(Object.keys(dirs).map((cluster) => resultsOf(join(results, cluster), name))));

async function runSimulated(program: string): Promise<void> {
  const { kubectl } = await programs(['kubectl']);
  const cluster = await startCluster(dirs.simulated);
  try {
    const common = { program, kubectl, dir: dirs.simulated, selection: simulated };
    await runSpecs({ ...common, name: 'direct', kubeconfig: cluster.direct });
    await runSpecs({ ...common, name: 'gateway', kubeconfig: cluster.gateway });
  } finally {
    await cluster.close();
    // The logs are kept first, because stopping the control plane deletes its folder.
    await keep('simulated');
    await stopControlPlane(dirs.simulated);
  }
}

/** Copies the reports of Ginkgo and all logs of a cluster, so that they are kept. */
async function keep(cluster: keyof typeof dirs): Promise<void> {
  const folder = join(results, cluster);
  await mkdir(folder, { recursive: true });
  for (const file of await readdir(dirs[cluster]))
    if (/^(direct|gateway)\.json$|\.log$/.test(file)) await copyFile(join(dirs[cluster], file), join(folder, file));
}

/** Writes and prints the report. Returns the exit code. */
async function report(comparison: Comparison): Promise<number> {
  const text = format(comparison, differences, await kubernetesVersion());
  await writeFile(join(results, 'report.md'), text);
  console.log(text);
  return comparison.unlisted.length + comparison.outdated.length === 0 ? 0 : 1;
}

let closed: Promise<void> | undefined;

/** Ends all processes, and removes everything that is not kept. */
async function close(): Promise<void> {
  nodeTree?.stop('the other cluster has ended');
  await nodeTree?.ended;
  await stopControlPlane(dirs.simulated);
  await rm(dir, { recursive: true, force: true });
  console.log(`The report and the logs are in ${results}`);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => void (closed ??= close()).finally(() => process.exit(1)));
try {
  process.exitCode = await run();
} catch (error) {
  console.error(`make conformance cannot run: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  await (closed ??= close());
}
