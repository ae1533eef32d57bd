/**
 * Builds the release files other than the image: the chart, which includes the API descriptions in its folder `api`, an archive of the
 * API descriptions, and the checksums of both. File names contain the version.
 *
 * Usage: node hack/package/main.ts [FOLDER]. FOLDER defaults to dist/package; its contents are deleted first.
 */
import { createHash } from 'node:crypto';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { readVersion } from '../../src/runtime/package.ts';
import { output } from '../cluster/exec.ts';
import { programs } from '../cluster/programs.ts';

const root = join(import.meta.dirname, '../..');
const name = 'platform-apiserver';
const [folder = join(root, 'dist/package')] = process.argv.slice(2).map((path) => resolve(path));

const { helm } = await programs(['helm']);
await rm(folder, { recursive: true, force: true });
await mkdir(folder, { recursive: true });
const work = await mkdtemp(join(tmpdir(), 'package-'));
try {
  const chart = join(work, name);
  await cp(join(root, 'charts', name), chart, { recursive: true });
  // The API descriptions already contain the examples.
  await cp(join(root, 'api'), join(chart, 'api'), { recursive: true, filter: (from) => basename(from) !== 'examples' });
  await output(helm, ['package', chart, '--destination', folder]);
} finally {
  await rm(work, { recursive: true });
}
await output('tar', [
  '-czf',
  join(folder, `${name}-api-${readVersion()}.tar.gz`),
  '-C',
  root,
  '--exclude=api/examples',
  'api',
]);

const files = (await readdir(folder)).toSorted();
const sums = files.map(async (file) => {
  const hash = createHash('sha256').update(await readFile(join(folder, file)));
  return `${hash.digest('hex')}  ${file}\n`;
});
await writeFile(join(folder, 'SHA256SUMS'), await Promise.all(sums));
for (const file of files) console.log(join(folder, file));
