import { expect, test } from '@jest/globals';
import { SharedStrings } from '../../../../src/cluster/cache/shared-strings.ts';

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

test('objects keep their strings after more strings than are remembered', () => {
  const strings = new SharedStrings();
  const objects = Array.from({ length: 20_000 }, (_, index) => strings.share({ text: `a text that is long ${index}` }));
  expect(objects.every(({ text }, index) => text === `a text that is long ${index}`)).toBe(true);
});
