import { expect, test } from '@jest/globals';
import { SharedStrings } from '../../../../src/cluster/cache/shared-strings.ts';
import { heapUsed } from '../../../fakes/heap.ts';

const mebibyte = 1024 * 1024;

test.each([
  {},
  { metadata: { name: 'a', labels: null, generation: 1 } },
  { groups: ['operators of the cluster', 'short', ['operators of the cluster', 1, true, null]] },
  { message: 'the same message', nested: { message: 'the same message', list: [{ message: 'the same message' }] } },
])('an object is equal before and after its strings are shared: %j', (object) => {
  const strings = new SharedStrings();
  for (let time = 0; time < 2; time += 1) {
    const decoded = JSON.parse(JSON.stringify(object)) as object;
    expect(strings.share(decoded)).toBe(decoded);
    expect(decoded).toEqual(object);
  }
});

test('equal strings of many objects take the memory of one string', () => {
  const strings = new SharedStrings();
  const text = JSON.stringify({ nested: ['x'.repeat(500)] });
  const before = heapUsed();
  const objects = Array.from({ length: 20_000 }, () => strings.share(JSON.parse(text) as object));
  // The strings would take 10 MB.
  expect(heapUsed() - before).toBeLessThan(5 * mebibyte);
  expect(objects).toHaveLength(20_000);
});

test.each([
  ['many different strings', 400],
  ['long strings', 5_000],
])('the memory for shared strings is limited, even after %s', (_, length) => {
  const strings = new SharedStrings();
  const before = heapUsed();
  for (let index = 0; index < 20_000; index += 1)
    strings.share(JSON.parse(JSON.stringify({ text: `${index}`.padEnd(length) })) as object);
  expect(heapUsed() - before).toBeLessThan(5 * mebibyte);
  // The collection is reachable until here.
  strings.share({});
});
