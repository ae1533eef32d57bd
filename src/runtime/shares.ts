import { InProgress } from './bounded-cache.ts';

/** The holder of a share of a limit: a user, or the keys of an address, the narrowest first. */
export type ShareHolder = string | readonly [string, ...string[]];

/** Share of a network, as a multiple of the share of one address in it. */
const networkFactor = 2;

export const keysOf = (holder: ShareHolder): readonly [string, ...string[]] =>
  typeof holder === 'string' ? [holder] : holder;

/** Share of the key at this index, when the narrowest has `share`. */
export const shareAt = (index: number, share: number): number => (index === 0 ? share : share * networkFactor);

/** Counts what each holder has of a limited resource. */
export class Shares {
  readonly #counts: InProgress<number>;

  /** `name`: in the metrics. */
  constructor(name: string) {
    this.#counts = new InProgress(name);
  }

  /** Returns the share that `count` more would exceed; undefined if there is room. */
  exceeded(
    holder: ShareHolder,
    count: number,
    share: number,
  ): { readonly key: string; readonly share: number } | undefined {
    const keys = keysOf(holder);
    const index = keys.findIndex((key, at) => (this.#counts.get(key) ?? 0) + count > shareAt(at, share));
    const key = keys[index];
    return key === undefined ? undefined : { key, share: shareAt(index, share) };
  }

  /** Returns what all of the widest key have: the network of an address, or the holder itself. */
  countOfWidest(holder: ShareHolder): number {
    return this.#counts.get(keysOf(holder).at(-1) ?? '') ?? 0;
  }

  /** A negative count takes away. */
  add(holder: ShareHolder, count: number): void {
    for (const key of keysOf(holder)) {
      const total = (this.#counts.get(key) ?? 0) + count;
      if (total === 0) this.#counts.delete(key);
      else this.#counts.set(key, total);
    }
  }
}
