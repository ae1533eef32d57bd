/**
 * kubectl in minor versions other than the cluster's, built only from the modules of kubectl. Each version passes the
 * same tests as kubectl in the cluster's version.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buildGoFiles } from '../../labs/go-files.ts';
import type { Built, Flow, Tool } from '../tool.ts';

const source = join(import.meta.dirname, '../kubectl');

async function build(minor: string): Promise<Built> {
  const files = { 'go.mod': `${minor}.mod`, 'go.sum': `${minor}.sum`, 'main.go': 'main.go' };
  const modules = await readFile(join(source, files['go.mod']), 'utf8');
  const version = /k8s\.io\/kubectl v0(\.\S+)/.exec(modules)?.[1];
  if (version === undefined) throw new Error(`${minor}.mod does not require k8s.io/kubectl`);
  const links = `-s -w -X k8s.io/component-base/version.gitVersion=v1${version} -X k8s.io/client-go/pkg/version.gitVersion=v1${version}`;
  const args = ['build', '-trimpath', '-gcflags=all=-dwarf=false', '-ldflags', links];
  return {
    version: `v1${version}`,
    path: await buildGoFiles({ name: `kubectl-${minor}`, folder: source, files, args }),
  };
}

/** Runs the tests in their own control plane, which jest starts. */
const passTests: Flow = async ({ path }) => {
  const jest = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', 'node_modules/jest/bin/jest.js'];
  const tests = ['--runInBand', '--testTimeout=120000', '-t', 'in another version', 'test/integration/kubectl.test.ts'];
  const child = spawn(process.execPath, [...jest, ...tests], {
    stdio: 'inherit',
    env: { ...process.env, OTHER_KUBECTL: path },
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error('tests failed');
};

const kubectl = (minor: string): Tool => ({
  name: `kubectl-${minor}`,
  build: () => build(minor),
  flows: { 'passes test/integration/kubectl.test.ts': passTests },
});

export const kubectl133 = kubectl('1.33');
export const kubectl130 = kubectl('1.30');
