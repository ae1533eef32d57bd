/** How limits count client addresses. */
import { isIPv6 } from 'node:net';

/** Returns the /64 of an IPv6 address, in which one host may take any address; anything else as it is. */
export const hostOf = (address: string): string =>
  isIPv6(address) ? groupsOf(address).slice(0, 4).join(':') : address;

/**
 * Returns the keys of a limit per address: the host, and for IPv6 also the network, its /48, which has a larger share. One customer
 * gets up to a /48 (RFC 6177), which has 65,536 /64s.
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
