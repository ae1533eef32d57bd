import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { sharesOf, spansOf, type Part } from '../../../../../src/logs/stores/remote/parts.ts';
import { everything } from '../../../../labs/fake-store.ts';

const namespaces = fc.dictionary(fc.stringMatching(/^[a-z]{1,3}$/), fc.integer({ min: 0, max: 900 }), { maxKeys: 900 });
const start = fc.option(fc.integer({ min: 0, max: 1_000 }), { nil: undefined });

const has = ({ start: from = -Infinity, end, visible }: Part, name: string, time: number): boolean =>
  time >= from &&
  time <= end &&
  (visible === undefined ||
    visible.always.includes(name) ||
    visible.later.some((one) => one.names.includes(name) && time >= one.from));

test.each([
  ['spans', spansOf],
  ['shares', sharesOf],
] as const)('the %s of a log query cover each visible record exactly once, and no other record', (_what, cut) => {
  fc.assert(
    fc.property(namespaces, start, fc.integer({ min: 0, max: 1_000 }), (since, from, more) => {
      const selection = {
        ...everything,
        start: from,
        end: (from ?? 0) + more,
        namespaces: new Map(Object.entries(since)),
      };
      const parts = cut(selection);
      for (const [name, seconds] of Object.entries(since).slice(0, 20))
        for (const time of [
          seconds * 1_000 - 1,
          seconds * 1_000,
          (from ?? 0) * 1_000,
          selection.end * 1_000,
          450_000,
        ]) {
          const isExpected = time >= seconds * 1_000 && time >= (from ?? 0) * 1_000 && time <= selection.end * 1_000;
          expect(parts.filter((part) => has(part, name, time)).length).toBe(isExpected ? 1 : 0);
        }
      for (const { visible } of parts) expect(visible?.later.length).toBeLessThanOrEqual(200);
    }),
    { numRuns: 200 },
  );
});

test('the spans of a log query are adjacent', () => {
  const since = new Map(Array.from({ length: 1_000 }, (_, index) => [`n${index}`, index * 7]));
  const parts = spansOf({ ...everything, namespaces: since });
  expect(parts.length).toBe(5);
  for (const [index, part] of parts.slice(1).entries()) expect(part.start).toBe((parts[index]?.end ?? 0) + 1);
});

test('a log query of all namespaces has one part, and a log query of no namespace has none', () => {
  for (const cut of [spansOf, sharesOf]) {
    expect(cut(everything)).toEqual([{ start: undefined, end: everything.end * 1_000, visible: undefined }]);
    expect(cut({ ...everything, namespaces: new Map() })).toEqual([]);
    expect(cut({ ...everything, namespaces: new Map([['late', everything.end + 1]]) })).toEqual([]);
  }
});
