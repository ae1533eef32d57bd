import { BlockList, isIP, isIPv6 } from 'node:net';
import { headerValues } from '../../auth/identity-headers.ts';
import { copied } from '../../runtime/bounded-cache.ts';
import type { RequestFilter } from '../exchange.ts';

/** Returns an IPv4-mapped IPv6 address as IPv4. */
const unmapped = (address: string): string =>
  address.startsWith('::ffff:') ? address.replace(/^::ffff:(?=\d+\.)/, '') : address;

function blockList(blocks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const block of blocks) {
    const [address = '', bits] = block.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}

/**
 * Sets the client's address, which is the address of the peer or, if the peer is a trusted proxy, the last address in
 * X-Forwarded-For that is not a trusted proxy. `trustedProxies` are addresses and CIDR blocks. The library proxy-addr
 * is not used, because it does not stop at a malformed entry of X-Forwarded-For.
 */
export function sourceIP(trustedProxies: () => readonly string[]): RequestFilter {
  let blocks: readonly string[] = [];
  let trusted = blockList(blocks);
  return (exchange) => {
    const current = trustedProxies();
    if (current !== blocks) {
      blocks = current;
      trusted = blockList(blocks);
    }
    let address = unmapped(exchange.req.socket.remoteAddress ?? '');
    if (blocks.length > 0 && exchange.req.headers['x-forwarded-for'] !== undefined) {
      const forwarded = (headerValues(exchange.req).get('x-forwarded-for') ?? []).join(',').split(',');
      const isTrusted = (one: string): boolean => trusted.check(one, isIPv6(one) ? 'ipv6' : 'ipv4');
      while (isTrusted(address)) {
        const next = unmapped((forwarded.pop() ?? '').trim());
        if (isIP(next) === 0) break;
        address = copied(next);
      }
    }
    exchange.sourceIP = address;
  };
}
