import { tooManyRequests, type StatusError } from './errors.ts';
import { keysOf, Shares, type ShareHolder } from './shares.ts';

/**
 * Slots with a limit per user or address and no limit in total. Each `take` states the limit, which may be that of the configuration in
 * force. Slots has a total and a queue, and limits that stay.
 */
export class HolderSlots {
  readonly #what: string;
  readonly #setting: string | undefined;
  readonly #taken = new Shares('places_taken');

  /** `setting`: name of the setting with the limit, if there is one. */
  constructor(what: string, setting?: string) {
    this.#what = what;
    this.#setting = setting;
  }

  /** Returns the function that frees the slot. The first word of a key says what it is. Throws StatusError 429. */
  take(holder: ShareHolder, share: number): () => void {
    const keys = keysOf(holder);
    const full = this.#taken.exceeded(keys, 1, share);
    if (full !== undefined)
      throw tooManyUnderWay(`${full.share} ${this.#what} of this ${full.key.split(' ')[0]}`, this.#setting);
    this.#taken.add(keys, 1);
    return () => this.#taken.add(keys, -1);
  }
}

/** `setting`: name of the setting with the limit, if there is one. */
export const tooManyUnderWay = (what: string, setting?: string): StatusError =>
  tooManyRequests(`${what} are under way${setting === undefined ? '' : ` (${setting})`}; please try again later`, 1);
