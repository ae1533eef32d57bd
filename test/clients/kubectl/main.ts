/**
 * make test-clients: builds kubectl in other minor versions than the cluster's, from kubectl's modules only, and runs
 * the kubectl tests with each. Compiling takes 2.5 minutes of CPU per version the first time, so make test excludes it.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { output } from '../../../hack/cluster/exec.ts';
import { withLock } from '../../../hack/cluster/lock.ts';
import { progress } from '../../../hack/cluster/progress.ts';

const minors = ['1.33', '1.30'];
const cache = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'platform-apiserver', 'kubectl');

/**
 * Returns the path of kubectl in this minor version. The folder has no go.mod, since it would be vetted and compiled.
 */
async function build(minor: string): Promise<string> {
  const modules = join(import.meta.dirname, `${minor}.mod`);
  const version = /k8s\.io\/kubectl v0(\.\S+)/.exec(await readFile(modules, 'utf8'))?.[1];
  if (version === undefined) throw new Error(`${modules} does not require k8s.io/kubectl`);
  const path = join(cache, `v1${version}`);
  await withLock(path, async () => {
    if (existsSync(path)) return;
    const work = await mkdtemp(join(tmpdir(), 'kubectl-'));
    const step = progress(`building kubectl ${minor}`);
    let succeeded = false;
    try {
      await copyFile(join(import.meta.dirname, 'main.go'), join(work, 'main.go'));
      await copyFile(modules, join(work, 'go.mod'));
      await copyFile(join(import.meta.dirname, `${minor}.sum`), join(work, 'go.sum'));
      await mkdir(cache, { recursive: true });
      const links = `-s -w -X k8s.io/component-base/version.gitVersion=v1${version} -X k8s.io/client-go/pkg/version.gitVersion=v1${version}`;
      const flags = ['-trimpath', '-gcflags=all=-dwarf=false', '-ldflags', links];
      const env = { CGO_ENABLED: '0' };
      await output('go', ['build', ...flags, '-o', `${path}.new`, '.'], { cwd: work, env });
      await rename(`${path}.new`, path);
      succeeded = true;
    } finally {
      step.end(succeeded);
      await rm(work, { recursive: true, force: true });
    }
  });
  return path;
}

let failed = false;
for (const minor of minors) {
  const kubectl = await build(minor);
  console.log(`kubectl ${minor}: ${kubectl}`);
  const args = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', 'node_modules/jest/bin/jest.js'];
  const jest = spawn(
    process.execPath,
    [...args, '--runInBand', '--testTimeout=120000', '-t', 'of another version', 'test/integration/kubectl.test.ts'],
    { stdio: 'inherit', env: { ...process.env, OTHER_KUBECTL: kubectl } },
  );
  const [code] = (await once(jest, 'exit')) as [number | null];
  failed ||= code !== 0;
}
process.exitCode = failed ? 1 : 0;
