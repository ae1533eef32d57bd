/**
 * make conformance: runs the Kubernetes end-to-end tests at a kube-apiserver and then through the gateway, and compares the results.
 * Fails for a difference that is not in differences.ts, and for one in it that no longer differs.
 */
import { copyFile, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stopControlPlane } from '../../hack/cluster/control-plane.ts';
import { output } from '../../hack/cluster/exec.ts';
import { kubernetesVersion } from '../../hack/cluster/go-modules.ts';
import { programs } from '../../hack/cluster/programs.ts';
import { startCluster } from './cluster.ts';
import { differences } from './differences.ts';
import { buildProgram, runSpecs } from './program.ts';
import { compare, format, type Comparison } from './report.ts';

const root = join(import.meta.dirname, '../..');
const results = join(root, '.cluster/conformance');
const dir = await mkdtemp(join(tmpdir(), 'platform-conformance-'));

async function run(): Promise<number> {
  await output(process.execPath, ['node_modules/.bin/tsc', '-p', 'tsconfig.build.json'], { cwd: root });
  const program = await buildProgram();
  const { kubectl } = await programs(['kubectl']);
  const cluster = await startCluster(dir);
  try {
    const common = { program, kubectl, dir };
    const direct = await runSpecs({ ...common, name: 'direct', kubeconfig: cluster.direct });
    const gateway = await runSpecs({ ...common, name: 'gateway', kubeconfig: cluster.gateway });
    return await report(compare(direct, gateway, differences));
  } finally {
    await cluster.close();
  }
}

/** Writes and prints the report. Returns the exit code. */
async function report(comparison: Comparison): Promise<number> {
  const text = format(comparison, differences, await kubernetesVersion());
  await writeFile(join(dir, 'report.md'), text);
  console.log(text);
  return comparison.unlisted.length + comparison.outdated.length === 0 ? 0 : 1;
}

let closed: Promise<void> | undefined;

/** Keeps the report, the reports of Ginkgo and all logs, and ends and removes everything else. */
async function close(): Promise<void> {
  await rm(results, { recursive: true, force: true });
  await mkdir(results, { recursive: true });
  for (const file of await readdir(dir))
    if (/^report\.md$|^(direct|gateway)\.json$|\.log$/.test(file)) await copyFile(join(dir, file), join(results, file));
  await stopControlPlane(dir);
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
