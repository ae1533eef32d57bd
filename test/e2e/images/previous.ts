/**
 * The version from which an upgrade is tested. Before the second release, this is an older commit. CONTRIBUTING.md
 * describes how a release changes it.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { execute, output } from '../../../hack/cluster/exec.ts';
import { withLock } from '../../../hack/cluster/lock.ts';
import { progress } from '../../../hack/cluster/progress.ts';
import { userCache } from '../../../hack/cluster/user-cache.ts';

/** A commit, not a tag: fetching a tag into a shallow clone creates no tag there. */
const commit = '02c94f0043a514e98c5eec7e254e461b609d0dd7';
const root = join(import.meta.dirname, '../../..');

const parts = ['LICENSE', 'package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json', 'Dockerfile'];
const folders = ['src', 'api/examples', 'charts/platform-apiserver'];

export interface PreviousVersion {
  /** Folder with the files of the commit, the compiled sources, and the packages that the image contains. */
  readonly folder: string;
  readonly chart: string;
  readonly tag: string;
}

/**
 * Returns the previous version, which is built once per machine. The build takes one to two minutes. The name of the
 * folder depends on everything that affects its content.
 */
export async function previousVersion(): Promise<PreviousVersion> {
  const steps = createHash('sha256').update(await readFile(import.meta.filename));
  const name = `${commit.slice(0, 12)}-${process.arch}-${steps.digest('hex').slice(0, 16)}`;
  const folder = join(userCache, 'previous', name);
  await withLock(folder, async () => {
    if (!existsSync(folder)) await build(folder);
  });
  return { folder, chart: join(folder, 'charts/platform-apiserver'), tag: commit.slice(0, 12) };
}

async function build(folder: string): Promise<void> {
  const work = `${folder}.new`;
  // An interrupted build leaves its files.
  await rm(work, { recursive: true, force: true });
  await mkdir(work, { recursive: true });
  const step = progress('building the previous version');
  const run = (program: string, ...args: readonly string[]): Promise<string> => output(program, args, { cwd: work });
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund'];
  try {
    await fetchCommit();
    await output('git', ['archive', '--output', join(work, 'files.tar'), commit, ...parts, ...folders], { cwd: root });
    await run('tar', '--extract', '--file', 'files.tar');
    step.detail('installs its packages');
    await run('npm', 'ci', ...flags);
    await run(process.execPath, 'node_modules/.bin/tsc', '-p', 'tsconfig.build.json');
    await run('npm', 'prune', '--omit=dev', ...flags);
    await run('find', 'node_modules', '-type', 'f', '-regex', String.raw`.*\.\(d\.[cm]?ts\|map\)`, '-delete');
    await rm(join(work, 'files.tar'));
    await rename(work, folder);
    step.end(true);
  } catch (error) {
    step.end(false);
    await rm(work, { recursive: true, force: true });
    throw error;
  }
}

/** Fetches the commit into a shallow clone. Throws if the clone and its origin lack it. */
async function fetchCommit(): Promise<void> {
  const { code } = await execute('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: root });
  if (code === 0) return;
  const fetched = await execute('git', ['fetch', '--quiet', '--depth=1', 'origin', commit], { cwd: root });
  if (fetched.code !== 0)
    throw new Error(
      `the upgrade is tested from commit ${commit}, which this clone lacks and cannot fetch; use a full clone: ${fetched.stderr.trim()}`,
    );
}
