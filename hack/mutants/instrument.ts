import { Instrumenter } from '@stryker-mutator/instrumenter';
import { hash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

export interface Mutant {
  readonly id: string;
  readonly path: string;
  readonly line: number;
  readonly column: number;
  readonly mutatorName: string;
  readonly replacement: string;
  /** Hash of the file and the mutant. A change of the file or the mutant changes the key. */
  readonly key: string;
}

const ignore = (): void => undefined;
const no = (): boolean => false;
const silent = {
  trace: ignore,
  isTraceEnabled: no,
  debug: ignore,
  isDebugEnabled: no,
  info: ignore,
  isInfoEnabled: no,
  warn: ignore,
  isWarnEnabled: no,
  error: ignore,
  isErrorEnabled: no,
  fatal: ignore,
  isFatalEnabled: no,
};

/**
 * Returns the mutants of the files. Writes the sources with all mutants in them to `target`, a JSON file that maps URLs
 * to sources.
 */
export async function instrument(paths: readonly string[], target: string): Promise<Mutant[]> {
  const sources = new Map(paths.map((path) => [path, readFileSync(path, 'utf8')]));
  const { files, mutants } = await new Instrumenter(silent).instrument(
    [...sources].map(([name, content]) => ({ name, content, mutate: true })),
    // Strings are mostly messages for people.
    { plugins: null, ignorers: [], excludedMutations: ['StringLiteral'] },
  );
  const changed = Object.fromEntries(files.map(({ name, content }) => [pathToFileURL(name).href, content]));
  writeFileSync(target, JSON.stringify(changed));
  return mutants
    .filter(({ status }) => status !== 'Ignored')
    .map(({ id, fileName, location: { start, end }, mutatorName, replacement }) => {
      const position = [start.line, start.column, end.line, end.column].join(':');
      const key = hash('sha256', [fileName, sources.get(fileName), position, mutatorName, replacement].join('\0'));
      return { id, path: fileName, line: start.line + 1, column: start.column + 1, mutatorName, replacement, key };
    });
}
