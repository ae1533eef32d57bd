import { describe, expect, test } from '@jest/globals';
import type { KubeObject } from '../../../../src/cluster/client/kube-object.ts';
import { ManagedFields } from '../../../../src/cluster/cache/managed-fields.ts';
import { PastVersions } from '../../../../src/cluster/cache/past-versions.ts';
import { Slab, slabSize } from '../../../../src/cluster/cache/slab.ts';
import { gather, storeObject, type StoredObject } from '../../../../src/cluster/cache/stored-object.ts';

const managedFields = new ManagedFields();

function stored(index: number, size: number): StoredObject<null> {
  const object: KubeObject & { data: string } = {
    kind: 'ConfigMap',
    apiVersion: 'v1',
    metadata: { name: `n${index}`, resourceVersion: String(index + 1) },
    data: `${index} of many similar texts `.repeat(size / 25),
  };
  const options = { selfLink: () => '/x', fields: () => null, managedFields };
  return storeObject(object, Buffer.from(JSON.stringify(object)), options);
}

const textOf = ({ bytes }: StoredObject<null>): string => bytes.toString();

describe('a slab', () => {
  test.each([false, true])(
    'a packed slab is small and returns its objects in one piece (kernel pages: %s)',
    (isReturned) => {
      const slab = new Slab(slabSize, isReturned);
      const objects: StoredObject<null>[] = [];
      for (let next = stored(0, 5_000); slab.hasRoomFor(next); next = stored(objects.length, 5_000)) {
        slab.add(next);
        objects.push(next);
      }
      const texts = objects.map(textOf);
      slab.pack();
      expect(slab.size).toBeLessThan(slabSize / 10);
      expect(objects.map(textOf)).toEqual(texts);
      expect(gather(objects).map(String)).toEqual([texts.join('')]);
      expect(slab.hasRoomFor(stored(0, 25))).toBe(false);
    },
  );

  test('a slab refuses an object for which it has no room, and any object once it is packed', () => {
    const slab = new Slab(8_000);
    expect(() => slab.add(stored(0, 9_000))).toThrow(RangeError);
    slab.pack();
    expect(() => slab.add(stored(0, 25))).toThrow(RangeError);
  });

  test('an object that was removed from a slab stays readable', () => {
    const slab = new Slab(slabSize);
    const object = stored(0, 5_000);
    const text = textOf(object);
    slab.add(object);
    slab.remove(object);
    slab.remove(object);
    expect([slab.live, slab.tenants.size]).toEqual([0, 0]);
    slab.pack();
    expect(textOf(object)).toBe(text);
  });
});

test('replaced object versions stay readable, and only the latest 4 MiB are unpacked', () => {
  const past = new PastVersions();
  const objects = Array.from({ length: 200 }, (_, index) => stored(index, index % 20 === 0 ? 300_000 : 50_000));
  const texts = objects.map(textOf);
  for (const object of objects) past.add(object);
  expect(objects.map(textOf)).toEqual(texts);
  const plain = new Set(objects.flatMap(({ slab }) => (slab?.isPacked === false ? [slab] : [])));
  expect([...plain].reduce((sum, { size }) => sum + size, 0)).toBeLessThanOrEqual(4 * 1024 * 1024);
  expect(plain.size).toBeGreaterThan(10);
});
