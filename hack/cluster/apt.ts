/** Installs Debian packages for programs that this machine lacks. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { execute } from './exec.ts';
import { progress } from './progress.ts';

/** Returns the path of a program. Also searches the folders of system programs, which PATH may lack. */
export function findProgram(name: string, more: readonly string[] = []): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin', ...more];
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

/**
 * Installs the packages whose program is missing. `packages` maps a package to a program that it installs: another
 * package may have installed that program already. Throws if apt-get is missing.
 */
export async function installMissing(
  packages: Readonly<Record<string, string>>,
  more: readonly string[] = [],
): Promise<void> {
  const missing = Object.entries(packages).flatMap(([name, program]) =>
    findProgram(program, more) === undefined ? [name] : [],
  );
  if (missing.length === 0) return;
  if (findProgram('apt-get') === undefined)
    throw new Error(
      `apt-get not found, so these packages cannot be installed automatically; install them: ${missing.join(' ')}`,
    );
  await apt('update');
  await apt('install', '--yes', '--no-install-recommends', ...missing);
}

async function apt(...args: readonly string[]): Promise<void> {
  const step = progress(`apt-get ${args.join(' ')}`);
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  const { code, stdout, stderr } = await execute('apt-get', ['--quiet', ...args], { env, timeout: 600_000 });
  step.end(code === 0);
  if (code !== 0) throw new Error(`apt-get ${args.join(' ')} failed:\n${stdout}${stderr}`);
}
