import { unwatchFile, watchFile } from 'node:fs';
import type { Logger } from '../runtime/logger.ts';
import { readFlagFile } from './flag-file.ts';
import type { LiveConfiguration } from './live.ts';
import { formatProblem, parseConfiguration } from './parse.ts';

const pollInterval = 1_000;

/** Applies the configuration in a file, and each later version of the file. */
export class ConfigurationFile {
  readonly #file: string;
  readonly #live: LiveConfiguration;
  readonly #log: Logger;
  readonly #changed = (): void => {
    this.#read().catch((error: unknown) => this.#log.error('configuration read failed', { error }));
  };

  constructor(options: { file: string; live: LiveConfiguration; log: Logger }) {
    this.#file = options.file;
    this.#live = options.live;
    this.#log = options.log;
  }

  async start(): Promise<void> {
    await this.#read();
    if (!this.#live.accepted)
      throw new Error(`--config: ${this.#file} is invalid:\n${this.#live.problems.map(formatProblem).join('\n')}`);
    watchFile(this.#file, { interval: pollInterval }, this.#changed);
  }

  stop(): void {
    unwatchFile(this.#file, this.#changed);
  }

  async #read(): Promise<void> {
    const parsed = parseConfiguration(await readFlagFile('--config', this.#file));
    if (parsed.ok) this.#live.accept(parsed.value);
    else {
      this.#live.refuse(parsed.problems);
      this.#log.error('configuration rejected', { problems: parsed.problems.map(formatProblem) });
    }
  }
}
