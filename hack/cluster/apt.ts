/** Debian's packages, for programs that the machine does not have. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { execute } from './exec.ts';
import { progress } from './progress.ts';

/** The path of a program; the folders of system programs are not in everybody's PATH. */
export function findProgram(name: string, more: readonly string[] = []): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin', ...more];
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

/** Of each package the program by which it is known to be there, because another package may have brought it. Throws where there is no apt-get. */
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
      `only on Debian and its like they are installed by themselves; please install: ${missing.join(' ')}`,
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
