import { expect, test } from '@jest/globals';
import { demandJsonPatch } from '../../../src/iam/json-patch.ts';

test.each<[string, unknown, RegExp]>([
  ['no list', { op: 'remove', path: '/a' }, /a list of operations/],
  ['nothing', undefined, /a list of operations/],
  ['an operation that is none', [null], /operation 0 .*: path/],
  ['no path', [{ op: 'remove' }], /operation 0 .*: path/],
  [
    'a path that is no pointer',
    [
      { op: 'remove', path: '/a' },
      { op: 'remove', path: 'a' },
    ],
    /operation 1 .*: path/,
  ],
  ['no op', [{ path: '/a' }], /operation 0 .*: op must be/],
  ['an unknown op', [{ op: 'merge', path: '/a', value: 1 }], /op must be/],
  ['an op of an object', [{ op: 'constructor', path: '/a', value: 1 }], /op must be/],
  ['the whole replaced by nothing', [{ op: 'replace', path: '' }], /operation 0 .*: replace needs a value/],
  ['a test of nothing', [{ op: 'test', path: '' }], /test needs a value/],
  ['an addition of nothing', [{ op: 'add', path: '/a' }], /add needs a value/],
  ['a move from nowhere', [{ op: 'move', path: '/a' }], /move needs from/],
  ['a copy from no pointer', [{ op: 'copy', path: '/a', from: 'b' }], /copy needs from/],
])('%s is no JSON patch', (_, value, message) => {
  expect(() => demandJsonPatch(value)).toThrow(message);
});

test('what RFC 6902 has is one', () => {
  const patch = [
    { op: 'test', path: '/spec/state', value: null },
    { op: 'add', path: '/spec/groups/-', value: 'dev' },
    { op: 'replace', path: '', value: {} },
    { op: 'copy', path: '/b', from: '/a' },
    { op: 'move', path: '/c', from: '' },
    { op: 'remove', path: '/a~1b' },
  ];
  expect(() => demandJsonPatch(patch)).not.toThrow();
});
