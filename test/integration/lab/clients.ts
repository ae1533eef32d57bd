/** The clients that are no part of the cluster's own programs. */
import { constants } from 'node:fs';
import { access, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { execute, output } from '../../../hack/cluster/exec.ts';
import { goBuildFlags } from '../../../hack/cluster/go-modules.ts';
import type { Lab } from './lab.ts';

/** Built with the flags of the cluster's programs, whose packages are compiled already. */
export async function buildInformers(dir: string): Promise<string> {
  const program = join(dir, 'informers');
  await output('go', ['build', ...(await goBuildFlags()), '-o', program, '.'], {
    cwd: join(import.meta.dirname, '../../clients/go'),
    env: { CGO_ENABLED: '0' },
  });
  return program;
}

const debianPackage = 'kubernetes-client';

/** kubectl of Debian's package, taken out of it without being installed, and kept. */
export async function obtainOldKubectl(): Promise<Lab['oldKubectl']> {
  const kept = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'platform-apiserver', debianPackage);
  const path = join(kept, 'kubectl');
  try {
    if (!(await isProgram(path))) await extract(kept, path);
    return { path };
  } catch (error) {
    return {
      why: `Debian's package ${debianPackage}, whose kubectl is tried too, cannot be had here; a program of yours may be put at ${path}: ${String(error)}`,
    };
  }
}

const isProgram = (path: string): Promise<boolean> =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  );

async function extract(folder: string, path: string): Promise<void> {
  const work = await mkdtemp(join(tmpdir(), `${debianPackage}-`));
  try {
    const download = (): Promise<{ code: number }> => execute('apt-get', ['download', debianPackage], { cwd: work });
    if ((await download()).code !== 0) {
      // A machine that never asked what there is.
      await output('apt-get', ['update']);
      await output('apt-get', ['download', debianPackage], { cwd: work });
    }
    const [archive] = (await readdir(work)).filter((file) => file.endsWith('.deb'));
    await output('dpkg-deb', ['--extract', archive ?? '', work], { cwd: work });
    await mkdir(folder, { recursive: true });
    await output('cp', [join(work, 'usr/bin/kubectl'), `${path}.new`]);
    await rename(`${path}.new`, path);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
