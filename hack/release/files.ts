/** Files of this machine as entries of archives. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Entry } from './tar.ts';

/**
 * Returns one file, and follows links. The mode depends only on whether the owner can execute the file, not on the
 * umask.
 */
export const file = (path: string, source: string, mode = statSync(source).mode & 0o100 ? 0o755 : 0o644): Entry => ({
  path: path.replace(/^\//, ''),
  content: readFileSync(source),
  mode,
});

/** Returns every `wanted` file below a folder, without links and empty folders. */
export function tree(path: string, source: string, wanted: (path: string) => boolean = () => true): Entry[] {
  return readdirSync(source, { withFileTypes: true }).flatMap((entry) => {
    const [inside, outside] = [join(path, entry.name), join(source, entry.name)];
    if (!wanted(outside)) return [];
    if (entry.isDirectory()) return tree(inside, outside, wanted);
    return entry.isFile() ? [file(inside, outside)] : [];
  });
}
