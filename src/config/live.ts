import type { Problem } from './parse.ts';
import type { PlatformConfiguration } from './schema.ts';

/** The configuration in force: swapped whole, subscribers told, the last good one kept when a new one is refused. */
export class LiveConfiguration {
  #value: PlatformConfiguration | undefined;
  #problems: readonly Problem[] = [];
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
}
