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
  /** Equal as long as the file and the mutant are. */
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

/** Lists the mutants of the files, and writes their sources with all of them to `target`, a JSON file by URL. */
export async function instrument(paths: readonly string[], target: string): Promise<Mutant[]> {
  const sources = new Map(paths.map((path) => [path, readFileSync(path, 'utf8')]));
  const { files, mutants } = await new Instrumenter(silent).instrument(
    [...sources].map(([name, content]) => ({ name, content, mutate: true })),
    // Texts are for people.
    { plugins: null, ignorers: [], excludedMutations: ['StringLiteral'] },
  );
  const changed = Object.fromEntries(files.map(({ name, content }) => [pathToFileURL(name).href, content]));
  writeFileSync(target, JSON.stringify(changed));
  return mutants
    .filter(({ status }) => status !== 'Ignored')
    .map(({ id, fileName, location: { start, end }, mutatorName, replacement }) => {
      const place = [start.line, start.column, end.line, end.column].join(':');
      const key = hash('sha256', [fileName, sources.get(fileName), place, mutatorName, replacement].join('\0'));
      return { id, path: fileName, line: start.line + 1, column: start.column + 1, mutatorName, replacement, key };
    });
}
