/** Files of this machine as entries of an image. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { output } from '../../../hack/cluster/exec.ts';
import type { TarEntry } from '../../../src/runtime/tar.ts';

/** Returns one file; links are followed. */
export const file = (path: string, source: string, mode = statSync(source).mode & 0o755): TarEntry => ({
  path: path.replace(/^\//, ''),
  content: readFileSync(source),
  mode,
});

/** Returns every `wanted` file below a folder, without links and empty folders. */
export function tree(path: string, source: string, wanted: (path: string) => boolean): TarEntry[] {
  return readdirSync(source, { withFileTypes: true }).flatMap((entry) => {
    const [inside, outside] = [join(path, entry.name), join(source, entry.name)];
    if (!wanted(outside)) return [];
    if (entry.isDirectory()) return tree(inside, outside, wanted);
    return entry.isFile() ? [file(inside, outside)] : [];
  });
}

/**
 * Returns a program and the libraries with which it and its `addons` are linked, at the paths where the loader looks
 * for them.
 */
export async function program(path: string, source: string, addons: readonly string[] = []): Promise<TarEntry[]> {
  const all = new Set((await Promise.all([source, ...addons].map(libraries))).flat());
  return [file(path, source, 0o755), ...[...all].map((library) => file(library, library, 0o755))];
}

async function libraries(source: string): Promise<string[]> {
  // ldd fails for statically linked files and other architectures.
  const text = await output('ldd', [source]).catch(() => '');
  const linked = [...text.matchAll(/^\s*(?:\S+ => )?(\/\S+) \(0x/gm)].map(([, path]) => path as string);
  // glibc loads these dynamically to resolve names; newer versions have them built in.
  const libc = linked.find((path) => path.includes('/libc.so'));
  const resolving = ['libnss_files.so.2', 'libnss_dns.so.2', 'libresolv.so.2'].map((name) =>
    join(dirname(libc ?? '/'), name),
  );
  return [...new Set([...linked, ...(libc === undefined ? [] : resolving.filter((path) => existsSync(path)))])];
}
