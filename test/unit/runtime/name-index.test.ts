import { expect, test } from '@jest/globals';
import { NameIndex } from '../../../src/runtime/name-index.ts';

test.each([1, 2, 3, 8, 9, 40])(
  'a key with %i names returns each name once, and no name after all are deleted',
  (count) => {
    const index = new NameIndex();
    const names = Array.from({ length: count }, (_, at) => `name-${at}`);
    for (const name of [...names, ...names]) index.add('key', name);
    index.add('other', 'name-0');
    expect(index.get('key')).toEqual(names);
    expect(index.count('key')).toBe(count);
    for (const [at, name] of names.entries()) {
      index.delete('key', 'unknown');
      index.delete('key', name);
      expect(index.get('key')).toEqual(names.slice(at + 1));
      expect(index.count('key')).toBe(count - at - 1);
    }
    expect(index.get('other')).toEqual(['name-0']);
  },
);

test('a key that was never added has no names', () => {
  const index = new NameIndex();
  index.delete('key', 'name');
  expect(index.get('key')).toEqual([]);
  expect(index.count('key')).toBe(0);
});

test('a change of the index does not change names that were returned before', () => {
  const index = new NameIndex();
  for (let at = 0; at < 20; at += 1) {
    index.add('key', `name-${at}`);
    const before = index.get('key');
    index.add('key', `later-${at}`);
    index.delete('key', `later-${at}`);
    expect(before).toHaveLength(at + 1);
  }
});
