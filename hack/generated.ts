/** Writes generated files, or checks them with --check; used by the hack/update-*.ts scripts. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { format, resolveConfig } from 'prettier';

/**
 * Writes `text`, in the format of the project, to a file. With --check on the command line, the function writes
 * nothing, reports a file that differs, and sets exit code 1.
 */
export async function writeGenerated(file: string, text: string): Promise<void> {
  const wanted = await format(text, { ...(await resolveConfig(file)), filepath: file });
  const name = path.relative(process.cwd(), file);
  if (existsSync(file) && readFileSync(file, 'utf8') === wanted) return;
  if (process.argv.includes('--check')) {
    console.error(`${name} is not up to date: run make update`);
    process.exitCode = 1;
  } else {
    writeFileSync(file, wanted);
    console.log(`wrote ${name}`);
  }
}

/**
 * Makes `folder` contain exactly the files in `wanted`, which maps names to texts. With --check on the command line,
 * the function writes nothing, lists each file that differs, is missing or is left over, and sets exit code 1.
 */
export function writeFolder(folder: string, wanted: ReadonlyMap<string, string>): void {
  const check = process.argv.includes('--check');
  const name = (file: string): string => path.relative(process.cwd(), path.join(folder, file));
  const present = existsSync(folder)
    ? readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isFile() ? [entry.name] : []))
    : [];
  const stale = [...wanted].filter(
    ([file, text]) => !present.includes(file) || readFileSync(path.join(folder, file), 'utf8') !== text,
  );
  const leftOver = present.filter((file) => !wanted.has(file));
  if (check) {
    for (const [file] of stale) console.error(`${name(file)} is not up to date: run make update`);
    for (const file of leftOver) console.error(`${name(file)} is no longer generated: run make update`);
    if (stale.length + leftOver.length > 0) process.exitCode = 1;
    return;
  }
  mkdirSync(folder, { recursive: true });
  for (const [file, text] of stale) {
    writeFileSync(path.join(folder, file), text);
    console.log(`wrote ${name(file)}`);
  }
  for (const file of leftOver) {
    rmSync(path.join(folder, file));
    console.log(`removed ${name(file)}`);
  }
}
