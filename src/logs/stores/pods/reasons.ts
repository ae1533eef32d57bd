import type { Cut } from '../log-store.ts';

/** Why a result is not all that there is, each reason once. */
export class Reasons {
  readonly #texts = new Set<string>();

  add(text: string): void {
    this.#texts.add(text);
  }

  get cut(): Cut {
    return this.#texts.size === 0 ? {} : { partial: { reason: [...this.#texts].join('; ') } };
  }
}
