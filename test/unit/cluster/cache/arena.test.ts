import { describe, expect, jest, test } from '@jest/globals';
import * as fc from 'fast-check';
import { Arena } from '../../../../src/cluster/cache/arena.ts';
import type { KubeObject } from '../../../../src/cluster/client/kube-object.ts';
import { ManagedFields } from '../../../../src/cluster/cache/managed-fields.ts';
import type { Slab } from '../../../../src/cluster/cache/slab.ts';
import { gather, storeObject, type StoredObject } from '../../../../src/cluster/cache/stored-object.ts';

type Stored = StoredObject<null>;

const wanted = new AbortController();
let made = 0;

/** Returns a new object of roughly this size, and the text that the arena must store for the object. */
function stored(size: number): { object: Stored; text: string } {
  made += 1;
  const decoded: KubeObject & { data: string } = {
    kind: 'ConfigMap',
    apiVersion: 'v1',
    metadata: { name: `n${made}`, resourceVersion: String(made) },
    data: String(made).repeat(size / 4),
  };
  const object = storeObject(decoded, Buffer.from(JSON.stringify(decoded)), {
    selfLink: () => '/x',
    fields: () => null,
    managedFields: new ManagedFields(),
  });
  return { object, text: object.bytes.toString() };
}

const sum = (objects: Iterable<Stored>): number => [...objects].reduce((total, { length }) => total + length, 0);

const names = (objects: readonly StoredObject<unknown>[]): string[] => objects.map(({ name }) => name).toSorted();

const slabsOf = (objects: readonly Stored[]): Slab[] => [...new Set(objects.flatMap(({ slab }) => slab ?? []))];

/** Returns the names of all tenants of the slabs that contain the objects. */
const tenants = (objects: readonly Stored[]): string[] => names(slabsOf(objects).flatMap((slab) => [...slab.tenants]));

describe('an arena', () => {
  test('an arena keeps every object unchanged, including deleted objects in use, with little memory overhead', async () => {
    const step = fc.oneof(
      fc.record({ what: fc.constant('add' as const), size: fc.constantFrom(100, 5_000, 40_000, 70_000, 200_000) }),
      fc.record({ what: fc.constant('retire' as const), index: fc.nat(100) }),
      fc.record({ what: fc.constant('tidy' as const), index: fc.nat(100) }),
      fc.record({ what: fc.constant('retain' as const), index: fc.nat(4) }),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 5, maxLength: 60 }),
        fc.constantFrom(1_000_000_000, 300_000),
        async (steps, limit) => {
          const arena = new Arena(limit);
          const texts = new Map<Stored, string>();
          let present: Stored[] = [];
          for (const happened of steps) {
            if (happened.what === 'add') {
              const { object, text } = stored(happened.size);
              texts.set(object, text);
              present.push(object);
              arena.add(object);
              arena.add(object);
            } else if (happened.what === 'retire') {
              const [gone] = present.splice(happened.index % Math.max(present.length, 1), 1);
              if (gone !== undefined) arena.retire(gone);
            } else if (happened.what === 'tidy') {
              // Compacts the objects in an order that differs from the order of their addition.
              const middle = happened.index % Math.max(present.length, 1);
              present = [...present.slice(middle), ...present.slice(0, middle)];
              await arena.tidy(present, wanted);
            } else {
              present = present.filter((_, index) => index % 5 !== happened.index);
              arena.retain(new Set(present));
            }
            const together = Buffer.concat(gather(present)).toString();
            expect(together === present.map((object) => texts.get(object)).join('')).toBe(true);
          }
          for (const [object, text] of texts) expect(object.bytes.toString() === text).toBe(true);
          expect(arena.plainBytes).toBeLessThanOrEqual(limit + 128 * 1024 + 200_000);
          expect(arena.plainBytes).toBeLessThan(2 * sum(present) + 256 * 1024);
          expect(arena.bytes - arena.plainBytes).toBeLessThanOrEqual(sum(present) / 5);
          for (const object of present) arena.retire(object);
          expect(arena.bytes).toBeLessThanOrEqual(128 * 1024);
        },
      ),
      { numRuns: 100 },
    );
  });

  test('an arena stores a list in few pieces after each compaction, even if objects changed in between', async () => {
    const arena = new Arena(1_000_000_000);
    const objects = Array.from({ length: 1_000 }, () => stored(1_000).object);
    for (const object of objects) arena.add(object);
    const shuffled = objects.map((_, index) => objects[(index * 619) % 1_000] as Stored);
    expect(gather(shuffled).length).toBeGreaterThan(900);
    await arena.tidy(shuffled, wanted);
    expect(gather(shuffled).length).toBeLessThan(20);
    for (let i = 0; i < 1_000; i += 7) {
      arena.retire(shuffled[i] as Stored);
      arena.add((shuffled[i] = stored(1_000).object));
    }
    expect(gather(shuffled).length).toBeGreaterThan(200);
    await arena.tidy(shuffled, wanted);
    expect(gather(shuffled).length).toBeLessThan(50);
    expect(arena.bytes).toBeLessThan(sum(shuffled) * 1.3 + 128 * 1024);
  });

  test('an arena frees all objects that are removed while a compaction pauses', async () => {
    // Every look at the clock ends a slice.
    let now = 0;
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => (now += 10));
    try {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.array(fc.nat(500), { maxLength: 10 }), { minLength: 1, maxLength: 50 }),
          fc.constantFrom(1_000_000_000, 300_000),
          async (pauses, limit) => {
            const arena = new Arena(limit);
            const present = Array.from({ length: 300 }, () => stored(4_000).object);
            for (const object of present) arena.add(object);
            const listed = present.map((_, index) => present[(index * 7) % 300] as Stored);
            const tidying = arena.tidy(listed, wanted);
            for (const indexes of pauses) {
              await new Promise((resolve) => setImmediate(resolve));
              for (const index of indexes) {
                const [gone] = present.splice(index % Math.max(present.length, 1), 1);
                if (gone !== undefined) arena.retire(gone);
              }
            }
            await tidying;
            expect(tenants(present)).toEqual(names(present));
            expect(slabsOf(present).reduce((total, { live }) => total + live, 0)).toBe(sum(present));
            for (const object of present) arena.retire(object);
            expect(arena.bytes).toBeLessThanOrEqual(128 * 1024);
          },
        ),
        { numRuns: 50 },
      );
    } finally {
      clock.mockRestore();
    }
  });

  test('an arena moves no object twice when a compaction fills the slab to which it adds', async () => {
    const arena = new Arena(1_000_000_000);
    const objects = Array.from({ length: 200 }, () => stored(4_000).object);
    for (const object of objects) arena.add(object);
    const open = objects.at(-1)?.slab;
    for (let next = stored(4_000).object; open?.hasRoomFor(next) === true; next = stored(4_000).object) {
      objects.push(next);
      arena.add(next);
    }
    const last = objects.filter(({ slab }) => slab === open);
    for (const object of last.slice(10)) arena.retire(object);
    const full = objects.filter(({ slab }) => slab === objects[150]?.slab).toReversed();
    const alternating = full.flatMap((object, index) => [object, ...last.slice(0, 10).slice(index, index + 1)]);
    await arena.tidy(alternating, wanted);
    const present = objects.filter((object) => !last.slice(10).includes(object));
    expect(tenants(present)).toEqual(names(present));
    for (const object of present) arena.retire(object);
    expect(arena.bytes).toBeLessThanOrEqual(128 * 1024);
  });

  test('an arena continues a compaction that was interrupted', async () => {
    const arena = new Arena(1_000_000_000);
    const objects = Array.from({ length: 2_000 }, () => stored(1_000).object);
    for (const object of objects) arena.add(object);
    const backwards = objects.toReversed();
    const gone = new AbortController();
    const tidying = arena.tidy(backwards, gone);
    gone.abort(new Error('gone'));
    // The first compaction either completes or is interrupted.
    await Promise.allSettled([tidying]);
    await arena.tidy(backwards, wanted);
    expect(gather(backwards).length).toBeLessThan(40);
  });
});
