import type { Problem } from './parse.ts';
import type { PlatformConfiguration } from './schema.ts';

/** The configuration in force: swapped whole, subscribers told, the last good one kept when a new one is refused. */
export class LiveConfiguration {
  #value: PlatformConfiguration | undefined;
  #problems: readonly Problem[] = [];
  readonly #warnings = new Map<string, readonly Problem[]>();
  #told = '[]';
  readonly #listeners = new Set<(warnings: readonly Problem[]) => void>();
  readonly #subscribers = new Set<(value: PlatformConfiguration) => void>();

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
    for (const tell of this.#subscribers) tell(value);
  }

  refuse(problems: readonly Problem[]): void {
    this.#problems = problems;
  }

  /** Called at once if there is a value, and at each later one. */
  subscribe(tell: (value: PlatformConfiguration) => void): void {
    this.#subscribers.add(tell);
    if (this.#value !== undefined) tell(this.#value);
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
    if (text === this.#told) return;
    this.#told = text;
    for (const tell of this.#listeners) tell(all);
  }

  /** Called with all warnings whenever they have changed. */
  onWarnings(tell: (warnings: readonly Problem[]) => void): void {
    this.#listeners.add(tell);
  }
}
