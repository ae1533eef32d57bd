import { Topic } from '../runtime/lifecycle.ts';
import type { Problem } from './parse.ts';
import type { PlatformConfiguration } from './schema.ts';

/** The configuration in force. It is replaced as a whole; a configuration that is refused leaves the last good one in force. */
export class LiveConfiguration {
  /** All warnings, whenever they have changed. */
  readonly warned = new Topic<readonly Problem[]>();
  #value: PlatformConfiguration | undefined;
  #problems: readonly Problem[] = [];
  readonly #warnings = new Map<string, readonly Problem[]>();
  #published = '[]';
  readonly #replaced = new Topic<PlatformConfiguration>();

  /** Throws before the first accept: nothing is served until then. */
  get value(): PlatformConfiguration {
    if (this.#value === undefined) throw new Error('no configuration was accepted yet');
    return this.#value;
  }

  get accepted(): boolean {
    return this.#value !== undefined;
  }

  /** What is wrong with the newest one offered; empty when it is the one in force. */
  get problems(): readonly Problem[] {
    return this.#problems;
  }

  accept(value: PlatformConfiguration): void {
    this.#value = value;
    this.#problems = [];
    // They are of another one.
    this.#warnings.clear();
    this.#replaced.publish(value);
  }

  refuse(problems: readonly Problem[]): void {
    this.#problems = problems;
  }

  /** Calls `listener` at once if a configuration is in force, and for each later one. */
  subscribe(listener: (value: PlatformConfiguration) => void): void {
    this.#replaced.subscribe(listener);
    if (this.#value !== undefined) listener(this.#value);
  }

  /** What is wrong with the one in force, such as a Secret that it names and that is not there. */
  get warnings(): readonly Problem[] {
    return [...this.#warnings.values()].flat();
  }

  /** In the place of what was said before about the same, until it is said anew or another configuration is accepted. */
  warn(about: string, warnings: readonly Problem[]): void {
    this.#warnings.set(about, warnings);
    const all = this.warnings;
    const text = JSON.stringify(all);
    if (text === this.#published) return;
    this.#published = text;
    this.warned.publish(all);
  }
}
