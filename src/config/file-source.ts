import { unwatchFile, watchFile } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Logger } from '../runtime/logger.ts';
import type { LiveConfiguration } from './live.ts';
import { formatProblem, parseConfiguration } from './parse.ts';

const pollInterval = 1_000;

/** Puts the configuration of a file in force, and each later version of it. */
export class ConfigurationFile {
  readonly #file: string;
  readonly #live: LiveConfiguration;
  readonly #log: Logger;
  readonly #changed = (): void => {
    this.#read().catch((error: unknown) => this.#log.error('the configuration cannot be read', { error }));
  };

  constructor(options: { file: string; live: LiveConfiguration; log: Logger }) {
    this.#file = options.file;
    this.#live = options.live;
    this.#log = options.log;
  }

  async start(): Promise<void> {
    await this.#read();
    if (!this.#live.accepted)
      throw new Error(`${this.#file} is invalid:\n${this.#live.problems.map(formatProblem).join('\n')}`);
    watchFile(this.#file, { interval: pollInterval }, this.#changed);
  }

  stop(): void {
    unwatchFile(this.#file, this.#changed);
  }

  async #read(): Promise<void> {
    const parsed = parseConfiguration(await readFile(this.#file, 'utf8'));
    if (parsed.ok) this.#live.accept(parsed.value);
    else {
      this.#live.refuse(parsed.problems);
      this.#log.error('configuration refused', { problems: parsed.problems.map(formatProblem) });
    }
  }
}
