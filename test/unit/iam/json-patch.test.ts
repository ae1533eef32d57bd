import { expect, test } from '@jest/globals';
import { assertJsonPatch } from '../../../src/iam/json-patch.ts';

test.each<[string, unknown, RegExp]>([
  ['an object instead of a list', { op: 'remove', path: '/a' }, /a list of operations/],
  ['no content', undefined, /a list of operations/],
  ['an operation that is not an object', [null], /operation 0 .*: the member "path"/],
  ['no path', [{ op: 'remove' }], /operation 0 .*: the member "path"/],
  [
    'a path that is not a JSON pointer',
    [
      { op: 'remove', path: '/a' },
      { op: 'remove', path: 'a' },
    ],
    /operation 1 .*: the member "path"/,
  ],
  ['no op', [{ path: '/a' }], /operation 0 .*: the member "op" must be/],
  ['an unknown op', [{ op: 'merge', path: '/a', value: 1 }], /the member "op" must be/],
  [
    'an op that is a property of Object.prototype',
    [{ op: 'constructor', path: '/a', value: 1 }],
    /the member "op" must be/,
  ],
  [
    'a replacement without a value',
    [{ op: 'replace', path: '' }],
    /operation 0 .*: replace requires the member "value"/,
  ],
  ['a test without a value', [{ op: 'test', path: '' }], /test requires the member "value"/],
  ['an addition without a value', [{ op: 'add', path: '/a' }], /add requires the member "value"/],
  ['a move without from', [{ op: 'move', path: '/a' }], /move requires the member "from"/],
  [
    'a copy whose from is not a JSON pointer',
    [{ op: 'copy', path: '/a', from: 'b' }],
    /copy requires the member "from"/,
  ],
])('a JSON patch with %s is rejected', (_, value, message) => {
  expect(() => assertJsonPatch(value)).toThrow(message);
});

test('a JSON patch with all operations of RFC 6902 is accepted', () => {
  const patch = [
    { op: 'test', path: '/spec/state', value: null },
    { op: 'add', path: '/spec/groups/-', value: 'dev' },
    { op: 'replace', path: '', value: {} },
    { op: 'copy', path: '/b', from: '/a' },
    { op: 'move', path: '/c', from: '' },
    { op: 'remove', path: '/a~1b' },
  ];
  expect(() => assertJsonPatch(patch)).not.toThrow();
});
