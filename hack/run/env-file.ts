import { rmSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';

/** Writes shell variables for scripts. The file exists as long as the server runs. */
export async function writeEnv(file: string, values: Readonly<Record<string, string>>): Promise<void> {
  const lines = Object.entries(values).map(([key, value]) => `${key}=${quote(value)}\n`);
  await writeFile(`${file}.new`, lines.join(''), { mode: 0o600 });
  await rename(`${file}.new`, file);
}

export const removeEnv = (file: string): void => rmSync(file, { force: true });

/** Quotes a text for the shell, if it needs quotes. */
export const quote = (text: string): string =>
  /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
