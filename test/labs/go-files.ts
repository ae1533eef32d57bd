/** Builds Go programs from folders without a go.mod. A go.mod would make `make verify` vet and compile the folder. */
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { output } from '../../hack/cluster/exec.ts';
import { cached } from './cached.ts';

interface GoFiles {
  /** Name of the program. */
  readonly name: string;
  readonly folder: string;
  /** Files of the folder by their names in the build, such as `go.mod`. */
  readonly files: Readonly<Record<string, string>>;
  /** Arguments of `go` without the output and the package. */
  readonly args: readonly string[];
  /** Package of another module to build. Default: the package of the files. */
  readonly package?: string;
}

/** Returns the path of the program. Builds it once for these files, arguments and version of Go. */
export async function buildGoFiles({ name, folder, files, args, package: path = '.' }: GoFiles): Promise<string> {
  const contents = await Promise.all(Object.values(files).map((file) => readFile(join(folder, file), 'utf8')));
  const go = await output('go', ['env', 'GOVERSION', 'GOOS', 'GOARCH']);
  const built = await cached(name, [...contents, ...args, path, go], async (target) => {
    const work = await mkdtemp(join(tmpdir(), `platform-${name}-`));
    try {
      for (const [to, file] of Object.entries(files)) await copyFile(join(folder, file), join(work, to));
      await output('go', [...args, '-o', join(target, name), path], { cwd: work, env: { CGO_ENABLED: '0' } });
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  });
  return join(built, name);
}
