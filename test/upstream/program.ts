/** Builds and runs the Kubernetes end-to-end tests. */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { goBuildFlags } from '../../hack/cluster/go-modules.ts';
import { start } from '../../hack/cluster/processes.ts';
import { progress } from '../../hack/cluster/progress.ts';
import { leash } from '../../hack/run/server.ts';
import { buildGoFiles } from '../labs/go-files.ts';
import { readResults, type GinkgoReport, type Results } from './report.ts';
import { focus, pattern, skip } from './specs.ts';

/** Returns the path of the program. Compiling all specs takes 13 minutes the first time. */
export const buildProgram = async (): Promise<string> =>
  buildGoFiles({
    name: 'e2e',
    folder: import.meta.dirname,
    files: { 'go.mod': 'e2e.mod', 'go.sum': 'e2e.sum', 'e2e_test.go': 'e2e_test.go' },
    args: ['test', '-c', '-vet=off', ...(await goBuildFlags())],
  });

export interface Run {
  readonly program: string;
  readonly kubectl: string;
  readonly kubeconfig: string;
  /** State folder of the control plane. The log is `<dir>/<name>.log`, the report `<dir>/<name>.json`. */
  readonly dir: string;
  readonly name: string;
}

/** Runs the selected specs one after the other. Each run has the same order. */
export async function runSpecs({ program, kubectl, kubeconfig, dir, name }: Run): Promise<Results> {
  const file = join(dir, `${name}.json`);
  const step = progress(`running the specs (${name})`);
  const flags = [
    `--kubeconfig=${kubeconfig}`,
    `--kubectl-path=${kubectl}`,
    '--provider=skeleton',
    // The nodes are simulated: some are tainted or cordoned, and no system pods run on them.
    '--num-nodes=2',
    '--allowed-not-ready-nodes=-1',
    '--node-schedulable-timeout=10s',
    '--system-pods-startup-timeout=5s',
    '--minStartupPods=0',
    '--disable-log-dump',
    '--dump-logs-on-failure=false',
    '--ginkgo.v',
    '--ginkgo.no-color',
    '--ginkgo.seed=1',
    '--ginkgo.timeout=40m',
    `--ginkgo.json-report=${file}`,
    `--ginkgo.focus=${pattern(focus)}`,
    `--ginkgo.skip=${pattern(skip)}`,
  ];
  const [first = '', ...rest]: readonly string[] = [...leash, program, ...flags];
  const { child } = await start(dir, name, [first, ...rest]);
  child.ref();
  await once(child, 'exit');
  step.end(existsSync(file));
  const [report] = JSON.parse(await readFile(file, 'utf8')) as GinkgoReport[];
  if (report === undefined) throw new Error(`${file} is empty`);
  return readResults(report);
}
