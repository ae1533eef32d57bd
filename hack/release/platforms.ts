/** Node.js and native code for the platforms of the image, pinned in platform/package-lock.json. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { output } from '../cluster/exec.ts';
import { withLock } from '../cluster/lock.ts';
import { progress } from '../cluster/progress.ts';
import { userCache } from '../cluster/user-cache.ts';
import type { Architecture } from './oci.ts';

const pins = join(import.meta.dirname, 'platform');
const files = ['package.json', 'package-lock.json'];

/** Names of the architectures in Node.js. */
export const nodeArchitectures: Readonly<Record<Architecture, string>> = { amd64: 'x64', arm64: 'arm64' };

async function folderOf(architecture: Architecture): Promise<string> {
  const hash = createHash('sha256').update(await readFile(join(pins, 'package-lock.json')));
  return join(userCache, `platform-${architecture}-${hash.digest('hex').slice(0, 16)}`);
}

/**
 * Returns a folder node_modules with the packages of one architecture. npm verifies the packages with the hashes in the
 * lock file when it creates the folder.
 */
export async function platformModules(architecture: Architecture): Promise<string> {
  const folder = await folderOf(architecture);
  await withLock(folder, async () => {
    if (!existsSync(folder)) await install(architecture, folder);
  });
  return join(folder, 'node_modules');
}

/** Removes the folders of all architectures, so that npm verifies the packages again. */
export async function removePlatformModules(): Promise<void> {
  for (const architecture of Object.keys(nodeArchitectures) as Architecture[]) {
    const folder = await folderOf(architecture);
    await withLock(folder, () => rm(folder, { recursive: true, force: true }));
  }
}

async function install(architecture: Architecture, folder: string): Promise<void> {
  await mkdir(userCache, { recursive: true });
  const work = await mkdtemp(`${folder}-`);
  const step = progress(`fetching Node.js for ${architecture}`);
  try {
    for (const file of files) await copyFile(join(pins, file), join(work, file));
    const platform = ['--os=linux', `--cpu=${nodeArchitectures[architecture]}`, '--libc=glibc'];
    await output('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', ...platform], { cwd: work });
    await rename(work, folder);
    step.end(true);
  } catch (error) {
    step.end(false);
    await rm(work, { recursive: true, force: true });
    throw error;
  }
}
