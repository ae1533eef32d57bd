/** Builds and runs the Kubernetes end-to-end tests. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { output } from '../../hack/cluster/exec.ts';
import { goBuildFlags } from '../../hack/cluster/go-modules.ts';
import { withLock } from '../../hack/cluster/lock.ts';
import { start } from '../../hack/cluster/processes.ts';
import { progress } from '../../hack/cluster/progress.ts';
import { leash } from '../../hack/run/server.ts';
import { readResults, type GinkgoReport, type Results } from './report.ts';
import { focus, pattern, skip } from './specs.ts';

/**
 * Files of the module, by their names in the build. The folder has no go.mod: make verify would compile all specs, which takes 13 minutes
 * the first time.
 */
const sources = { 'go.mod': 'e2e.mod', 'go.sum': 'e2e.sum', 'e2e_test.go': 'e2e_test.go' };

const cache = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'platform-apiserver', 'e2e');

/** Returns the path of the program. Builds it once for these sources and flags. */
export async function buildProgram(): Promise<string> {
  const flags = await goBuildFlags();
  const hash = createHash('sha256').update(await output('go', ['env', 'GOVERSION', 'GOOS', 'GOARCH']));
  hash.update(flags.join(' '));
  for (const file of Object.values(sources)) hash.update(await readFile(join(import.meta.dirname, file)));
  const path = join(cache, hash.digest('hex').slice(0, 16));
  await withLock(path, async () => {
    if (existsSync(path)) return;
    const work = await mkdtemp(join(tmpdir(), 'platform-e2e-build-'));
    const step = progress('building the Kubernetes end-to-end tests');
    let succeeded = false;
    try {
      for (const [name, file] of Object.entries(sources))
        await copyFile(join(import.meta.dirname, file), join(work, name));
      await mkdir(cache, { recursive: true });
      const env = { CGO_ENABLED: '0' };
      await output('go', ['test', '-c', '-vet=off', ...flags, '-o', `${path}.new`, '.'], { cwd: work, env });
      await rename(`${path}.new`, path);
      succeeded = true;
    } finally {
      step.end(succeeded);
      await rm(work, { recursive: true, force: true });
    }
  });
  return path;
}

export interface Run {
  readonly program: string;
  readonly kubectl: string;
  readonly kubeconfig: string;
  /** State folder of the control plane. The log is `<dir>/<name>.log`, the report `<dir>/<name>.json`. */
  readonly dir: string;
  readonly name: string;
}

/** Runs the selected specs one after the other. Both ways have the same order. */
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
