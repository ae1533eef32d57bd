import { expect, test } from '@jest/globals';
import { scalarAt } from '../../../../src/apimachinery/list/field-path.ts';
import { ManagedFields } from '../../../../src/cluster/cache/managed-fields.ts';
import { storeObject } from '../../../../src/cluster/cache/stored-object.ts';
import { heapUsed } from '../../../fakes/heap.ts';
import { node } from '../../../labs/resources.ts';

test.each<[string, unknown]>([
  ['7', 7],
  ['-1.5', -1.5],
  ['1e+30', 1e30],
  ['9223372036854775807', '9223372036854775807'],
  ['-9007199254740993', '-9007199254740993'],
  ['"7"', '7'],
  ['null', undefined],
])('the JSON value %s is read from a field path as an exact number or not at all', (written, expected) => {
  const metadata = '{"name":"a","resourceVersion":"1"}';
  const bytes = Buffer.from(`{"kind":"K","apiVersion":"v1","metadata":${metadata},"spec":{"x":${written}}}`);
  const object = storeObject(
    { kind: 'K', apiVersion: 'v1', metadata: JSON.parse(metadata) as { name: string } },
    bytes,
    {
      selfLink: () => '/a',
      fields: () => undefined,
      managedFields: new ManagedFields(),
    },
  );
  expect(scalarAt(['spec', 'x'])(object)).toBe(expected);
});

test('a long field path is not cached for the objects in which it is looked up', () => {
  const objects = Array.from({ length: 300 }, (_, index) => node(`n${index}`));
  const search = (index: number): unknown =>
    scalarAt(['spec', `${index}-\u20ac${'x'.repeat(30_000)}`])(objects[index] as (typeof objects)[0]);
  search(0);
  const before = heapUsed();
  for (let index = 1; index < 300; index += 1) expect(search(index)).toBeUndefined();
  expect(heapUsed() - before).toBeLessThan(4 * 1_024 * 1_024);
  expect(objects).toHaveLength(300);
});
