import { hash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

interface Kill {
  /** Path of the test file. */
  readonly file: string;
  /** Test that failed in the file, or how the process ended. */
  readonly by: string;
  /** SHA-256 of the test file. */
  readonly digest: string;
}

const digestOf = (file: string): string => (existsSync(file) ? hash('sha256', readFileSync(file)) : 'missing file');

/**
 * Mutants that were killed in this run or an earlier one, by key. A kill counts as long as its test file is unchanged.
 */
export class Kills {
  readonly #path: string;
  readonly #all: Map<string, Kill>;
  readonly #digests = new Map<string, string>();

  /** Loads the kills from `path`, a JSON file. */
  constructor(path: string) {
    this.#path = path;
    const kept = existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Record<string, Kill>) : {};
    this.#all = new Map(Object.entries(kept).filter(([, { file, digest }]) => digest === this.#digest(file)));
  }

  has(key: string): boolean {
    return this.#all.has(key);
  }

  add(key: string, file: string, by: string): void {
    this.#all.set(key, { file, by, digest: this.#digest(file) });
  }

  save(): void {
    writeFileSync(this.#path, JSON.stringify(Object.fromEntries(this.#all)));
  }

  #digest(file: string): string {
    const known = this.#digests.get(file) ?? digestOf(file);
    this.#digests.set(file, known);
    return known;
  }
}
