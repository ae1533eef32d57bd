import { Topic } from '../runtime/lifecycle.ts';
import type { Problem } from './parse.ts';
import type { PlatformConfiguration } from './schema.ts';

/**
 * The current configuration, which is replaced as a whole. A rejected configuration leaves the last valid configuration
 * in use.
 */
export class LiveConfiguration {
  /** All warnings, published when they change. */
  readonly warned = new Topic<readonly Problem[]>();
  #value: PlatformConfiguration | undefined;
  #problems: readonly Problem[] = [];
  readonly #warnings = new Map<string, readonly Problem[]>();
  #published = '[]';
  readonly #replaced = new Topic<PlatformConfiguration>();

  /** Configuration in use. Throws before the first `accept`. No requests are served until then. */
  get value(): PlatformConfiguration {
    if (this.#value === undefined) throw new Error('no configuration has been accepted yet');
    return this.#value;
  }

  get accepted(): boolean {
    return this.#value !== undefined;
  }

  /** Problems of the newest configuration; empty if that configuration is in use. */
  get problems(): readonly Problem[] {
    return this.#problems;
  }

  accept(value: PlatformConfiguration): void {
    this.#value = value;
    this.#problems = [];
    // The warnings belong to the previous configuration.
    this.#warnings.clear();
    this.#replaced.publish(value);
  }

  refuse(problems: readonly Problem[]): void {
    this.#problems = problems;
  }

  /** Calls `listener` now if a configuration is in use, and for each later configuration. */
  subscribe(listener: (value: PlatformConfiguration) => void): void {
    this.#replaced.subscribe(listener);
    if (this.#value !== undefined) listener(this.#value);
  }

  /** Problems of the configuration in use, such as a missing Secret. */
  get warnings(): readonly Problem[] {
    return [...this.#warnings.values()].flat();
  }

  /** Replaces the warnings of a subject. The next accepted configuration clears the warnings. */
  warn(subject: string, warnings: readonly Problem[]): void {
    this.#warnings.set(subject, warnings);
    const all = this.warnings;
    const text = JSON.stringify(all);
    if (text === this.#published) return;
    this.#published = text;
    this.warned.publish(all);
  }
}
