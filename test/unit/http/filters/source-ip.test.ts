import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { sendRequest } from '../../../fakes/request.ts';
import { face } from '../../../labs/http.ts';

async function sourceIP(
  from: string,
  forwarded: string | string[],
  trustedProxies: readonly string[],
): Promise<string> {
  const { app, handled } = face({ settings: { trustedProxies } });
  await sendRequest(app, '/livez', { from, headers: { 'x-forwarded-for': forwarded } });
  return handled[0]?.sourceIP ?? 'not handled';
}

const proxies = ['10.0.0.0/8', '192.0.2.7', 'fd00::/8'];

describe('the address of the client', () => {
  test.each<[string, string | string[], string[], string, string]>([
    ['198.51.100.1', '203.0.113.5', [], '198.51.100.1', 'the peer, without proxies'],
    ['198.51.100.1', '203.0.113.5', proxies, '198.51.100.1', 'the peer, which is not a proxy'],
    ['10.0.0.1', '203.0.113.5', proxies, '203.0.113.5', 'the address that a proxy forwards'],
    [
      '::ffff:10.0.0.1',
      '203.0.113.5',
      proxies,
      '203.0.113.5',
      'the address that a proxy on a dual-stack socket forwards',
    ],
    ['10.0.0.1', '::ffff:203.0.113.5', proxies, '203.0.113.5', 'the normalized address'],
    ['fd00::1', '2001:db8::5', proxies, '2001:db8::5', 'an IPv6 address'],
    ['10.0.0.1', '203.0.113.5, 192.0.2.7, 10.1.1.1', proxies, '203.0.113.5', 'the address behind several proxies'],
    ['10.0.0.1', ['203.0.113.5', '10.1.1.1'], proxies, '203.0.113.5', 'the address in several headers'],
    ['10.0.0.1', '6.6.6.6, 203.0.113.5', proxies, '203.0.113.5', 'not the address that the client claims'],
    ['10.0.0.1', '10.1.1.1', proxies, '10.1.1.1', 'the address of a proxy'],
    ['10.0.0.1', '', proxies, '10.0.0.1', 'the proxy, which forwards nothing'],
    ['10.0.0.1', 'unknown', proxies, '10.0.0.1', 'the proxy, which forwards "unknown"'],
    ['10.0.0.1', 'abc', proxies, '10.0.0.1', 'the proxy, not a hexadecimal word'],
    ['10.0.0.1', '1.2.3', proxies, '10.0.0.1', 'the proxy, not an incomplete address'],
    ['10.0.0.1', '203.0.113.5:4711', proxies, '10.0.0.1', 'the proxy, not an address with a port'],
    ['10.0.0.1', '"><script>', proxies, '10.0.0.1', 'the proxy, not arbitrary text'],
  ])(
    'the address of a client that connects from %s with X-Forwarded-For %j and the trusted proxies %j is %s: %s',
    async (from, forwarded, trusted, expected) => {
      expect(await sourceIP(from, forwarded, trusted)).toBe(expected);
    },
  );

  // evidence: source-ip-from-proxy
  test('the address of the client is never taken from a part of X-Forwarded-For that only the client wrote', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.stringMatching(/^[\x20-\x7e]{0,12}$/), { maxLength: 4 }), async (claimed) => {
        expect(await sourceIP('10.0.0.1', [...claimed, '203.0.113.5'].join(','), proxies)).toBe('203.0.113.5');
      }),
      { numRuns: 30 },
    );
  });
});
