/** Programs of this machine as entries of an image. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { output } from '../../../hack/cluster/exec.ts';
import { file } from '../../../hack/release/files.ts';
import type { Entry } from '../../../hack/release/tar.ts';

/** Returns a program and the libraries with which it is linked, at the paths where the loader looks for them. */
export async function program(path: string, source: string): Promise<Entry[]> {
  const linked = await libraries(source);
  return [file(path, source, 0o755), ...linked.map((library) => file(library, library, 0o755))];
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
