import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { durationText, parseBytes, parseDuration } from '../../../src/runtime/duration.ts';

describe('parsing a duration', () => {
  test.each([
    ['0', 0],
    ['0s', 0],
    ['1ms', 1],
    ['500ms', 500],
    ['1s', 1_000],
    ['1.5s', 1_500],
    ['.5s', 500],
    ['5.s', 5_000],
    ['1m', 60_000],
    ['2h', 7_200_000],
    ['1h30m', 5_400_000],
    ['1h1m1s1ms', 3_661_001],
    ['5m0s', 300_000],
    ['720h', 2_592_000_000],
    ['250us', 0.25],
    ['250µs', 0.25],
    ['250μs', 0.25],
    ['1000000ns', 1],
  ])('parsing a duration accepts %s as %d ms', (text, milliseconds) => {
    expect(parseDuration(text)).toBeCloseTo(milliseconds, 9);
  });

  test.each([
    '',
    ' ',
    '1',
    '-1s',
    '+1s',
    '7d',
    '1y',
    '1 s',
    '1s ',
    ' 1s',
    '1h 30m',
    '1H',
    '1e3s',
    '.s',
    '1..5s',
    's',
    '1s,',
    '0x1s',
    '١s',
    'Infinitys',
    '1h30',
  ])('parsing a duration rejects %j', (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });

  test('parsing a duration adds up all parts', () => {
    const part = fc.nat({ max: 1_000 });
    fc.assert(
      fc.property(part, part, part, part, (h, m, s, ms) => {
        expect(parseDuration(`${h}h${m}m${s}s${ms}ms`)).toBe(((h * 60 + m) * 60 + s) * 1_000 + ms);
      }),
    );
  });

  test('parsing a duration from any text returns a finite, non-negative number or undefined', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'0123456789.hmsnuµ -+e'.split('')) }), (text) => {
        const value = parseDuration(text) ?? 0;
        expect(value >= 0 && Number.isFinite(value)).toBe(true);
      }),
    );
  });
});

describe('parsing a quantity of bytes', () => {
  test.each([
    ['0', 0],
    ['1024', 1_024],
    ['1Ki', 1_024],
    ['1Mi', 1_048_576],
    ['1Gi', 1_073_741_824],
    ['2Ti', 2_199_023_255_552],
    ['1k', 1_000],
    ['500M', 500_000_000],
    ['1G', 1_000_000_000],
    ['1T', 1_000_000_000_000],
  ])('parsing a quantity of bytes accepts %s as %d bytes', (text, bytes) => {
    expect(parseBytes(text)).toBe(bytes);
  });

  test.each(['', '-1', '1K', '1ki', '1 Gi', '1GiB', 'Gi', '1.5', 'toString', `1${'0'.repeat(400)}`])(
    'parsing a quantity of bytes rejects %j',
    (text) => {
      expect(parseBytes(text)).toBeUndefined();
    },
  );
});

test.each([
  [0.5, '1 second'],
  [59, '59 seconds'],
  [60, '1 minute'],
  [61, '2 minutes'],
  [600, '10 minutes'],
  [3_600, '1 hour'],
  [3_601, '2 hours'],
])('durationText() formats %d seconds as %s', (seconds, text) => {
  expect(durationText(seconds)).toBe(text);
});
