/** Counters for limits that are shared between users and client addresses. */
import { isIPv6 } from 'node:net';
import { InProgress } from './bounded-cache.ts';

/** The holder of a share of a limit: a user, or the keys of an address, with the narrowest key first. */
export type ShareHolder = string | readonly [string, ...string[]];

/** Share of a network, as a multiple of the share of one address in the network. */
const networkFactor = 2;

export const keysOf = (holder: ShareHolder): readonly [string, ...string[]] =>
  typeof holder === 'string' ? [holder] : holder;

/** Returns the share of the key at this index. `share`: share of the narrowest key. */
export const shareAt = (index: number, share: number): number => (index === 0 ? share : share * networkFactor);

/** Counts how much of a limited resource each holder uses. */
export class Shares {
  readonly #counts: InProgress<number>;

  /** `name`: the label in the cache metrics. */
  constructor(name: string) {
    this.#counts = new InProgress(name);
  }

  count(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  /** Returns the share that the holder would exceed with `count` more; undefined if the holder would exceed none. */
  exceeded(
    holder: ShareHolder,
    count: number,
    share: number,
  ): { readonly key: string; readonly share: number } | undefined {
    const keys = keysOf(holder);
    const index = keys.findIndex((key, at) => this.count(key) + count > shareAt(at, share));
    const key = keys[index];
    return key === undefined ? undefined : { key, share: shareAt(index, share) };
  }

  /** Returns the count of the widest key: the network of an address, or the holder itself. */
  countOfWidest(holder: ShareHolder): number {
    return this.count(keysOf(holder).at(-1) ?? '');
  }

  /** Adds to the count of the holder; a negative `count` subtracts. */
  add(holder: string | readonly string[], count: number): void {
    for (const key of typeof holder === 'string' ? [holder] : holder) {
      const total = this.count(key) + count;
      if (total === 0) this.#counts.delete(key);
      else this.#counts.set(key, total);
    }
  }
}

/**
 * Returns the /64 of an IPv6 address, because a host can use any address in its /64. Other text is returned unchanged.
 */
export const hostOf = (address: string): string =>
  isIPv6(address) ? groupsOf(address).slice(0, 4).join(':') : address;

/**
 * Returns the keys of a limit per address: the host and, for IPv6, also its /48 network, which has a larger share. One
 * customer can have a whole /48 (RFC 6177), which contains 65,536 /64s.
 */
export function addressKeys(address: string): readonly [string, ...string[]] {
  if (!isIPv6(address)) return [`address ${address}`];
  const groups = groupsOf(address);
  return [`address ${groups.slice(0, 4).join(':')}`, `network ${groups.slice(0, 3).join(':')}`];
}

function groupsOf(address: string): string[] {
  const [head = '', tail] = address.replace(/%.*$/, '').split('::');
  const groups = head.split(':').filter((group) => group !== '');
  const after = tail?.split(':').filter((group) => group !== '') ?? [];
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - after.length);
  return [...groups, ...Array.from({ length: zeros }, () => '0'), ...after].map((group) =>
    Number.parseInt(group, 16).toString(16),
  );
}
