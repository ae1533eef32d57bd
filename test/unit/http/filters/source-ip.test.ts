import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { ask } from '../../../fakes/ask.ts';
import { face } from '../../../labs/http.ts';

async function sourceIP(
  from: string,
  forwarded: string | string[],
  trustedProxies: readonly string[],
): Promise<string> {
  const { app, handled } = face({ settings: { trustedProxies } });
  await ask(app, '/livez', { from, headers: { 'x-forwarded-for': forwarded } });
  return handled[0]?.sourceIP ?? 'not handled';
}

const proxies = ['10.0.0.0/8', '192.0.2.7', 'fd00::/8'];

describe('the address of the client', () => {
  test.each<[string, string | string[], string[], string, string]>([
    ['198.51.100.1', '203.0.113.5', [], '198.51.100.1', 'without proxies is the peer'],
    ['198.51.100.1', '203.0.113.5', proxies, '198.51.100.1', 'is the peer when it is no proxy'],
    ['10.0.0.1', '203.0.113.5', proxies, '203.0.113.5', 'is what a proxy says'],
    ['::ffff:10.0.0.1', '203.0.113.5', proxies, '203.0.113.5', 'is what a proxy on a dual-stack socket says'],
    ['10.0.0.1', '::ffff:203.0.113.5', proxies, '203.0.113.5', 'is written in one way'],
    ['fd00::1', '2001:db8::5', proxies, '2001:db8::5', 'may be of IPv6'],
    ['10.0.0.1', '203.0.113.5, 192.0.2.7, 10.1.1.1', proxies, '203.0.113.5', 'is behind several proxies'],
    ['10.0.0.1', ['203.0.113.5', '10.1.1.1'], proxies, '203.0.113.5', 'is in several headers'],
    ['10.0.0.1', '6.6.6.6, 203.0.113.5', proxies, '203.0.113.5', 'is not what the client says of itself'],
    ['10.0.0.1', '10.1.1.1', proxies, '10.1.1.1', 'may be the address of a proxy'],
    ['10.0.0.1', '', proxies, '10.0.0.1', 'is the proxy when that says nothing'],
    ['10.0.0.1', 'unknown', proxies, '10.0.0.1', 'is the proxy when that does not know'],
    ['10.0.0.1', 'abc', proxies, '10.0.0.1', 'is no word that looks like one'],
    ['10.0.0.1', '1.2.3', proxies, '10.0.0.1', 'is no part of one'],
    ['10.0.0.1', '203.0.113.5:4711', proxies, '10.0.0.1', 'has no port'],
    ['10.0.0.1', '"><script>', proxies, '10.0.0.1', 'is no text'],
  ])('of %s that forwards %j, trusting %j, is %s: it %s', async (from, forwarded, trusted, expected) => {
    expect(await sourceIP(from, forwarded, trusted)).toBe(expected);
  });

  // evidence: source-ip-from-proxy
  test('is never text that only the client wrote', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.stringMatching(/^[\x20-\x7e]{0,12}$/), { maxLength: 4 }), async (claimed) => {
        expect(await sourceIP('10.0.0.1', [...claimed, '203.0.113.5'].join(','), proxies)).toBe('203.0.113.5');
      }),
      { numRuns: 30 },
    );
  });
});
