/** Builds and runs the Kubernetes end-to-end tests, and builds the program that runs in their containers. */
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
import { pattern, type Selection } from './specs.ts';

const folder = import.meta.dirname;
const modules = { 'go.mod': 'e2e.mod', 'go.sum': 'e2e.sum' };

/** Builds the end-to-end tests and returns the path of the program. The first build of all specs takes 13 minutes. */
export const buildProgram = async (): Promise<string> =>
  buildGoFiles({
    name: 'e2e',
    folder,
    files: { ...modules, 'e2e_test.go': 'e2e_test.go' },
    args: ['test', '-c', '-vet=off', ...(await goBuildFlags())],
  });

/** Builds agnhost, which most containers of the specs run, and returns its path. */
export const buildAgnhost = async (): Promise<string> =>
  buildGoFiles({
    name: 'agnhost',
    folder,
    files: modules,
    args: ['build', ...(await goBuildFlags())],
    package: 'k8s.io/kubernetes/test/images/agnhost',
  });

const reportOf = (dir: string, name: string): string => join(dir, `${name}.json`);

export interface Run {
  readonly program: string;
  readonly kubectl: string;
  readonly kubeconfig: string;
  /** State folder of the control plane. The log is `<dir>/<name>.log`, and the report is `<dir>/<name>.json`. */
  readonly dir: string;
  readonly name: string;
  readonly selection: Selection;
}

/** Runs the selected specs one after the other. The order is the same in every run. */
export async function runSpecs({ program, kubectl, kubeconfig, dir, name, selection }: Run): Promise<void> {
  const file = reportOf(dir, name);
  const step = progress(`running the specs (${name})`);
  const flags = [
    `--kubeconfig=${kubeconfig}`,
    `--kubectl-path=${kubectl}`,
    '--provider=skeleton',
    // Specs taint and cordon nodes. The cluster can have no system pods.
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
    `--ginkgo.focus=${pattern(selection.focus)}`,
    `--ginkgo.skip=${pattern(selection.skip)}`,
  ];
  const [first = '', ...rest]: readonly string[] = [...leash, program, ...flags];
  const { child } = await start(dir, name, [first, ...rest]);
  child.ref();
  await once(child, 'exit');
  step.end(existsSync(file));
}

/** Returns the results of a run in `dir`. */
export async function resultsOf(dir: string, name: string): Promise<Results> {
  const file = reportOf(dir, name);
  const [report] = JSON.parse(await readFile(file, 'utf8')) as GinkgoReport[];
  if (report === undefined) throw new Error(`${file} is empty`);
  return readResults(report);
}
