import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { gunzipSync } from 'node:zlib';
import { deflateFragment, gzipOf, type Fragment } from '../../../../src/http/response/gzip.ts';

const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  fc.uint8Array({ minLength: 66_000, maxLength: 140_000, size: 'max' }),
  fc.nat(20_000).map((n) => Buffer.from('{"a":1},'.repeat(n))),
);

describe('a gzip member', () => {
  test('a gzip member that is joined from precompressed fragments and other text, in any order, is decompressed to the original text', async () => {
    const part = fc.record({ bytes, fragment: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 8 }), async (parts) => {
        const text = parts.map((one) => Buffer.from(one.bytes));
        const made = await Promise.all(
          parts.map(async ({ fragment }, index): Promise<Fragment | Buffer> => {
            const one = text[index] as Buffer;
            return fragment ? await deflateFragment(one) : one;
          }),
        );
        for (const [pieces, expected] of [
          [gzipOf(made), Buffer.concat(text)],
          [gzipOf(made.toReversed()), Buffer.concat(text.toReversed())],
        ] as const)
          // gunzip verifies the checksum and the length.
          expect(gunzipSync(Buffer.concat(pieces)).equals(expected)).toBe(true);
      }),
      { numRuns: 50 },
    );
  });
});
