/**
 * make release VERSION=1.2.3: writes the files of a release to dist/release, from the current commit. Two builds of a commit with the same
 * variables are bit-identical.
 *
 * Environment variables:
 * - VERSION: the version in package.json, in the chart and in a heading of CHANGELOG.md.
 * - IMAGE: repository of the image, such as registry.example.com/platform-apiserver. The chart and the manifests use it.
 * - SOURCE: URL of the repository on the web, for links.
 * - BUILDER: URI of the system that runs the build, for the provenance.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { output } from '../cluster/exec.ts';
import { removePlatformModules } from './platforms.ts';
import { releaseFiles } from './release.ts';
import { versionProblems } from './version.ts';

const root = join(import.meta.dirname, '../..');
const folder = join(root, 'dist/release');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const variable = (name: string): string | undefined => process.env[name] || undefined;

async function run(): Promise<void> {
  const version = variable('VERSION') ?? '';
  const problems = versionProblems(version, {
    'package.json': read('package.json'),
    'Chart.yaml': read('charts/platform-apiserver/Chart.yaml'),
    'CHANGELOG.md': read('CHANGELOG.md'),
  });
  const git = async (...args: readonly string[]): Promise<string> => (await output('git', args, { cwd: root })).trim();
  // The release must contain exactly the commit that the provenance names.
  if ((await git('status', '--porcelain')) !== '') problems.push('the work tree has changes; commit them first');
  if (problems.length > 0) throw new Error(problems.join('\n'));
  const [commit = '', seconds = ''] = (await git('log', '-1', '--format=%H %ct')).split(' ');

  // The files may have changed since an earlier build verified them.
  await removePlatformModules();
  const source = variable('SOURCE')?.replace(/\/$/, '');
  const files = await releaseFiles({
    root,
    version,
    image: variable('IMAGE') ?? 'platform-apiserver',
    ...(source === undefined ? {} : { source }),
    builder: variable('BUILDER') ?? 'urn:platform-apiserver:builder:unspecified',
    commit,
    created: new Date(Number(seconds) * 1000).toISOString().replace('.000Z', 'Z'),
  });
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const [name, pieces] of files) {
    writeFileSync(join(folder, name), Buffer.concat(pieces));
    console.log(join(folder, name));
  }
}

try {
  await run();
} catch (error) {
  console.error(`make release failed:\n${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
