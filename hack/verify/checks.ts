import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { execute, output } from '../cluster/exec.ts';
import { goBuildFlags } from '../cluster/go-modules.ts';

export interface Check {
  readonly name: string;
  /** Returns each problem as a readable line. The check passes if there are no problems. */
  run(): Promise<string[]>;
}

export const root = join(import.meta.dirname, '../..');

/**
 * Returns a check that runs a program of node_modules or a script of this project. If the program fails, its output is
 * the problem.
 */
export function command(name: string, program: string, ...args: string[]): Check {
  const script = program.endsWith('.ts') ? program : join('node_modules/.bin', program);
  return { name, run: () => complaint(process.execPath, [script, ...args], root) };
}

export async function goFormat(): Promise<string[]> {
  const files = await tracked('*.go');
  if (files.length === 0) return [];
  const unformatted = (await output('gofmt', ['-l', ...files], { cwd: root })).trim();
  return unformatted === '' ? [] : unformatted.split('\n');
}

/** Folder whose code is vetted together with the generated code that it uses (test/labs/integration/generated.ts). */
const generated = 'test/clients/generated/';

/**
 * Runs `go vet` in every module that contains code, with the flags of the builds, so that both share the cache of the
 * compiler.
 */
export async function goVet(): Promise<string[]> {
  const sources = await tracked('*.go');
  const folders = (await tracked('*go.mod'))
    .map((file) => dirname(file))
    .filter((folder) => !folder.startsWith(generated));
  /** Returns the module of a file: the innermost of the folders that contain it. */
  const moduleOf = (file: string): string | undefined =>
    folders.filter((folder) => file.startsWith(`${folder}/`)).toSorted((a, b) => b.length - a.length)[0];
  const modules = folders
    .filter((folder) => sources.some((file) => moduleOf(file) === folder))
    .map((folder) => join(root, folder));
  const flags = await goBuildFlags();
  const env = { CGO_ENABLED: '0' };
  const problems = await Promise.all(modules.map((folder) => complaint('go', ['vet', ...flags, './...'], folder, env)));
  return problems.flat();
}

/** Runs a program and returns its output if it fails. */
export async function complaint(
  program: string,
  args: readonly string[],
  cwd = root,
  env: Readonly<Record<string, string>> = {},
): Promise<string[]> {
  const { code, stdout, stderr } = await execute(program, args, { cwd, env });
  return code === 0 ? [] : [`${stdout}${stderr}`.trim() || `exit code ${code}`];
}

/** Returns the files of the repository that match a git pattern, including new ones. */
export async function tracked(...patterns: readonly string[]): Promise<string[]> {
  const args = ['ls-files', '--cached', '--others', '--exclude-standard', ...patterns];
  const lines = (await output('git', args, { cwd: root })).split('\n');
  return lines.filter((line) => line !== '' && existsSync(join(root, line)));
}
