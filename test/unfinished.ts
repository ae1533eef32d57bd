import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The file beside jest's results in which the unfinished ones stand, as JSON. */
export const unfinishedFile = 'unfinished.json';

interface Test {
  readonly path: string;
}

/** A reporter of jest: which test files have begun and not ended, for whoever has to end the run. */
export default class Unfinished {
  readonly #file: string;
  readonly #paths = new Set<string>();

  constructor({ outputFile }: { readonly outputFile: string }) {
    this.#file = join(dirname(outputFile), unfinishedFile);
    this.#write();
  }

  onTestFileStart({ path }: Test): void {
    this.#paths.add(path);
    this.#write();
  }

  onTestFileResult({ path }: Test): void {
    this.#paths.delete(path);
    this.#write();
  }

  #write(): void {
    writeFileSync(this.#file, JSON.stringify([...this.#paths]));
  }
}
