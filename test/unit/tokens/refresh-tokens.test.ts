import { afterEach, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { createHash } from 'node:crypto';
import { hashToken, isSessionID, newSessionID, RefreshTokens, sameHash } from '../../../src/tokens/refresh-tokens.ts';
import { createLogger } from '../../../src/runtime/logger.ts';
import { MemoryCluster } from '../../fakes/cluster.ts';
import { FakeClock, settle } from '../../labs/cluster-fakes.ts';

const secrets = '/api/v1/namespaces/platform-system/secrets';
const tokens = new RefreshTokens(Buffer.alloc(32, 7));

describe('refresh tokens', () => {
  // evidence: refresh-token-entropy
  test('refresh tokens contain 256 random bits after the ID of their session', () => {
    const sid = newSessionID();
    const all = new Set(Array.from({ length: 1_000 }, () => tokens.first(sid)));
    expect(all.size).toBe(1_000);
    for (const token of all) {
      expect(tokens.sessionOf(token)).toBe(sid);
      expect(Buffer.from(token.split('.')[1] ?? '', 'base64url')).toHaveLength(32);
    }
  });

  test('refresh tokens have session IDs of 128 random bits that are valid object names', () => {
    const all = new Set(Array.from({ length: 1_000 }, newSessionID));
    expect(all.size).toBe(1_000);
    for (const sid of all) expect(sid).toMatch(/^[0-9a-f]{32}$/);
  });

  test.each(['', '0'.repeat(31), '0'.repeat(33), `x${'0'.repeat(32)}`, `${'0'.repeat(32)}x`, 'A'.repeat(32)])(
    'refresh tokens belong to no session if the session ID is %j',
    (name) => {
      expect(isSessionID(name)).toBe(false);
      expect(isSessionID('0'.repeat(32))).toBe(true);
    },
  );

  test('the next refresh token is derived from the key and the whole current token, and belongs to the same session', () => {
    const token = tokens.first(newSessionID());
    expect(tokens.successor(token)).toBe(new RefreshTokens(Buffer.alloc(32, 7)).successor(token));
    expect(tokens.successor(token)).not.toBe(new RefreshTokens(Buffer.alloc(32, 8)).successor(token));
    expect(tokens.successor(token)).not.toBe(tokens.successor(tokens.first(newSessionID())));
    expect(tokens.sessionOf(tokens.successor(token))).toBe(tokens.sessionOf(token));
  });

  test.each([
    ['', 'no content'],
    ['x', 'a single word'],
    ['%.%', 'an invalid HMAC'],
    ['%.%.', 'an empty HMAC'],
    ['%.%.%', 'a wrong HMAC'],
  ])('a refresh token of the form %j belongs to no session, because the token has %s', (pattern) => {
    const parts = [newSessionID(), 'b'.repeat(43), 'c'.repeat(22)];
    expect(tokens.sessionOf(pattern.replaceAll('%', () => parts.shift() ?? ''))).toBeUndefined();
  });

  test.each([
    ['a leading space', (token: string) => ` ${token}`],
    ['a trailing line end', (token: string) => `${token}\n`],
    ['padding', (token: string) => `${token}==`],
    ['the session ID in capital letters', (token: string) => token.slice(0, 32).toUpperCase() + token.slice(32)],
    ['a longer secret', (token: string) => token.replace('.', '.A')],
    ['an additional part', (token: string) => `${token}.A`],
  ])('refresh tokens with %s belong to no session', (_what, change) => {
    const token = tokens.first('a'.repeat(32));
    expect(tokens.sessionOf(token)).toBe('a'.repeat(32));
    expect(tokens.sessionOf(change(token))).toBeUndefined();
  });

  test('random text as a refresh token belongs to no session', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(tokens.sessionOf(text)).toBeUndefined();
      }),
    );
  });

  test('refresh tokens with a changed letter or an HMAC from another key are not recognized', () => {
    const token = tokens.first(newSessionID());
    for (let at = 0; at < token.length; at += 1) {
      // The last letter of base64url has unused bits. The letters 'A' and 'Q' differ in the other bits.
      const letter = token[at] === 'a' || token[at] === 'A' ? 'Q' : at < 32 ? 'a' : 'A';
      const forged = `${token.slice(0, at)}${letter}${token.slice(at + 1)}`;
      expect([forged, tokens.sessionOf(forged)]).toEqual([forged, undefined]);
    }
    expect(new RefreshTokens(Buffer.alloc(32, 8)).sessionOf(token)).toBeUndefined();
  });

  test('refresh tokens of consecutive rotations are all different', () => {
    const chain = [tokens.first(newSessionID())];
    for (let step = 0; step < 1_000; step += 1) chain.push(tokens.successor(chain[step] ?? ''));
    expect(new Set(chain).size).toBe(1_001);
    expect(new Set(chain.map((token) => tokens.sessionOf(token))).size).toBe(1);
  });

  // evidence: refresh-token-storage
  test('refresh tokens are stored as SHA-256 hashes', () => {
    expect(hashToken('abc')).toBe(createHash('sha256').update('abc').digest('hex'));
    expect(sameHash(hashToken('a'), hashToken('a'))).toBe(true);
    expect(sameHash(hashToken('a'), hashToken('b'))).toBe(false);
    expect(sameHash(hashToken('a'), undefined)).toBe(false);
    expect(sameHash(hashToken('a'), '')).toBe(false);
    expect(sameHash(hashToken('a'), 'ä'.repeat(hashToken('a').length))).toBe(false);
  });

  test('refresh tokens and derived secrets use the same key, but are never equal', () => {
    const other = new RefreshTokens(Buffer.alloc(32, 8));
    expect(tokens.derive('a')).toBe(new RefreshTokens(Buffer.alloc(32, 7)).derive('a'));
    expect(tokens.derive('a')).toMatch(/^[\w-]{43}$/);
    const all = [tokens.derive('a'), tokens.derive('b'), other.derive('a'), tokens.successor('a').split('.')[1]];
    expect(new Set(all).size).toBe(all.length);
  });
});

const running: RefreshTokens[] = [];
afterEach(() => {
  for (const one of running.splice(0)) one.stop();
});

async function started(cluster: MemoryCluster, clock = new FakeClock()): Promise<RefreshTokens> {
  const log = createLogger({ silent: true });
  const loaded = RefreshTokens.stored({ client: cluster.client(), namespace: 'platform-system', clock, log });
  running.push(loaded);
  await loaded.start();
  return loaded;
}

describe('the key of refresh tokens', () => {
  test('the key of refresh tokens is created once for all replicas, even if two replicas start concurrently', async () => {
    const cluster = new MemoryCluster();
    const loaded = await Promise.all(Array.from({ length: 5 }, () => started(cluster)));
    loaded.push(await started(cluster));
    const token = tokens.first(newSessionID());
    expect(new Set(loaded.map((one) => one.successor(token))).size).toBe(1);
    expect(cluster.list(secrets).map(({ metadata }) => metadata.name)).toEqual(['platform-refresh-key']);
  });

  test.each([
    ['too short', { key: Buffer.alloc(31).toString('base64') }],
    ['missing', {}],
  ])(
    'a key of refresh tokens that is %s prevents the start with an error that contains the solution',
    async (_what, data) => {
      const cluster = new MemoryCluster();
      cluster.put(secrets, { metadata: { name: 'platform-refresh-key' }, data });
      await expect(started(cluster)).rejects.toThrow(
        /platform-refresh-key: "key" must have at least 32 bytes; delete the Secret/,
      );
    },
  );
});

test('the Secret with the key of refresh tokens is not watched after the server has stopped', async () => {
  const clock = new FakeClock();
  const loaded = await started(new MemoryCluster(clock), clock);
  await settle();
  expect(clock.pending()).not.toEqual([]);
  loaded.stop();
  await settle();
  expect(clock.pending()).toEqual([]);
});
