import { expect, test } from '@jest/globals';
import { scalarAt } from '../../../src/kapis/field-path.ts';
import { ManagedFields } from '../../../src/kube/managed-fields.ts';
import { storeObject } from '../../../src/kube/stored-object.ts';

test.each<[string, unknown]>([
  ['7', 7],
  ['-1.5', -1.5],
  ['1e+30', 1e30],
  ['9223372036854775807', '9223372036854775807'],
  ['-9007199254740993', '-9007199254740993'],
  ['"7"', '7'],
  ['null', undefined],
])('%s is found as it is meant', (written, expected) => {
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
