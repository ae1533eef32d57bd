import { rmSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';

/** For scripts: shell variables, there as long as the server is. */
export async function writeEnv(file: string, values: Readonly<Record<string, string>>): Promise<void> {
  const lines = Object.entries(values).map(([key, value]) => `${key}=${quote(value)}\n`);
  await writeFile(`${file}.new`, lines.join(''), { mode: 0o600 });
  await rename(`${file}.new`, file);
}

export const removeEnv = (file: string): void => rmSync(file, { force: true });

/** As it is where the shell reads it so, else in single quotes. */
export const quote = (text: string): string =>
  /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
