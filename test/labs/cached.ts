/**
 * Caches built clients in the cache folder of the user. A client is built once per machine, and again after its
 * versions change.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { withLock } from '../../hack/cluster/lock.ts';
import { progress } from '../../hack/cluster/progress.ts';

const cache = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'platform-apiserver', 'clients');

/**
 * Returns the folder that `build` has filled. `inputs` must contain everything that affects the content of the folder.
 */
export async function cached(
  name: string,
  inputs: readonly (string | Buffer)[],
  build: (folder: string) => Promise<void>,
): Promise<string> {
  const hash = createHash('sha256');
  for (const input of inputs) hash.update(input).update('\0');
  const path = join(cache, `${name}-${hash.digest('hex').slice(0, 16)}`);
  await withLock(path, async () => {
    if (existsSync(path)) return;
    const folder = `${path}.new`;
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    const step = progress(`building ${name}`);
    let succeeded = false;
    try {
      await build(folder);
      await rename(folder, path);
      succeeded = true;
    } finally {
      step.end(succeeded);
      await rm(folder, { recursive: true, force: true });
    }
  });
  return path;
}
