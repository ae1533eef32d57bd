/** Builds programs of other projects from Go modules that a go.mod pins. Each program is built once per machine. */
import { createHash } from 'node:crypto';
import { existsSync, globSync } from 'node:fs';
import { mkdir, readFile, rename } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { execute, output } from './exec.ts';
import { withLock } from './lock.ts';
import { progress } from './progress.ts';
import { userCache } from './user-cache.ts';

const buildFlags = ['-trimpath', '-gcflags=all=-dwarf=false', '-ldflags', '-s -w'];

/**
 * Returns the path of a program in the user's cache folder. Builds a missing program. `modules` is the folder of the
 * go.mod, `source` the package of the program, `tags` its build tags.
 */
export async function goProgram(modules: string, source: string, tags: readonly string[] = []): Promise<string> {
  const name = basename(source);
  const go = await output('go', ['env', 'GOVERSION', 'GOOS', 'GOARCH'], { cwd: modules }).catch((error: unknown) => {
    throw new Error(`cannot run go, which builds ${name}; install Go (https://go.dev/dl)`, { cause: error });
  });
  const flags = [...buildFlags, ...(tags.length === 0 ? [] : ['-tags', tags.join(',')])];
  const hash = createHash('sha256').update(go).update(flags.join(' '));
  // Includes the modules in subfolders that replace others.
  for (const file of globSync('**/*.{go,mod,sum}', { cwd: modules }).toSorted())
    hash.update(await readFile(join(modules, file)));
  const cache = join(userCache, 'go-programs');
  const path = join(cache, `${name}-${hash.digest('hex').slice(0, 16)}`);
  await withLock(path, async () => {
    if (existsSync(path)) return;
    const step = progress(`building ${name}`);
    const temporary = join(cache, `.${name}.${process.pid}`);
    await mkdir(cache, { recursive: true });
    const { code, stderr } = await execute('go', ['build', ...flags, '-o', temporary, source], {
      cwd: modules,
      env: { CGO_ENABLED: '0' },
      onStderr: (text) => step.detail(text.trim().split('\n').at(-1) ?? ''),
    });
    step.end(code === 0);
    if (code !== 0) throw new Error(`go build ${source} failed:\n${stderr}`);
    await rename(temporary, path);
  });
  return path;
}
