/**
 * make verify: checks the work tree without running the server. Prints each check with its duration, and every problem.
 */
import { availableParallelism } from 'node:os';
import { seconds } from '../cluster/progress.ts';
import { chartLint, rejections, rendered } from './chart.ts';
import { command, goFormat, goVet, type Check } from './checks.ts';
import { descriptions } from './descriptions.ts';
import { kubeScore } from './kube-score.ts';
import { licenses } from './licenses.ts';
import { prose } from './prose.ts';

const checks: readonly Check[] = [
  // Runs first, because this check takes longest if node_modules/.cache does not contain the files yet.
  command(
    'format (make update)',
    'prettier',
    '--check',
    '--cache',
    '--cache-strategy=content',
    '--log-level=warn',
    '.',
  ),
  command('types', 'tsc', '--noEmit'),
  command('types of the browser code', 'tsc', '-p', 'src/docs/explorer/browser'),
  command('types of the page that draws dashboards', 'tsc', '-p', 'hack/screenshot/browser'),
  command('lint and layers', 'oxlint', '--format=unix', '--deny-warnings'),
  command('dead code and dependencies', 'knip', '--no-progress', '--treat-config-hints-as-errors'),
  command('generated CRDs (make update)', 'hack/update-crds.ts', '--check'),
  command('generated manifests (make update)', 'hack/update-manifests.ts', '--check'),
  command('values.schema.json (make update)', 'hack/update-chart.ts', '--check'),
  command('configuration reference (make update)', 'hack/update-configuration.ts', '--check'),
  command('metrics reference (make update)', 'hack/update-metrics.ts', '--check'),
  command('dashboards (make update)', 'hack/update-monitoring.ts', '--check'),
  command('published descriptions (make update)', 'hack/update-api.ts', '--check'),
  { name: 'prose (CONTRIBUTING.md)', run: prose },
  { name: 'descriptions against their schemas and rules', run: descriptions },
  { name: 'licences of bundled packages', run: licenses },
  { name: 'Go format (make update)', run: goFormat },
  { name: 'Go vet', run: goVet },
  { name: 'chart lint', run: chartLint },
  { name: 'values that the chart rejects', run: rejections },
  { name: 'chart and manifests against the schemas of Kubernetes', run: rendered },
  { name: 'good practices in the chart (kube-score)', run: kubeScore },
];

const begin = performance.now();
let failed = 0;
const queue = [...checks];

async function worker(): Promise<void> {
  for (let check = queue.shift(); check !== undefined; check = queue.shift()) {
    const started = performance.now();
    const problems = await check
      .run()
      .catch((error: unknown) => [String(error instanceof Error ? error.message : error)]);
    if (problems.length > 0) failed++;
    console.log(`${problems.length === 0 ? 'ok    ' : 'FAILED'} ${check.name} (${seconds(started)})`);
    for (const problem of problems) console.log(problem.replaceAll(/^/gm, '  '));
  }
}

await Promise.all(Array.from({ length: availableParallelism() }, worker));
console.log(`verify: ${checks.length - failed} of ${checks.length} checks passed (${seconds(begin)})`);
process.exitCode = failed === 0 ? 0 : 1;
