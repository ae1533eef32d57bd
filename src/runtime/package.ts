import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { pathToFileURL } from 'node:url';

/** Reads a JSON file by its path from package.json, of sources and of a build. */
export function readPackageFile(path: string): unknown {
  const base = pathToFileURL(findPackageJSON(import.meta.url) ?? '');
  return JSON.parse(readFileSync(new URL(path, base), 'utf8'));
}

export const readVersion = (): string => (readPackageFile('package.json') as { version: string }).version;
