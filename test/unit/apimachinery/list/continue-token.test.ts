import { describe, expect, test } from '@jest/globals';
import { decodeContinue, encodeContinue } from '../../../../src/apimachinery/list/continue-token.ts';

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const v = 'meta.k8s.io/v1';

describe('a continue token', () => {
  test('a continue token has the same format as a continue token of kube-apiserver', () => {
    expect(encodeContinue(624, 'node-3\0')).toBe(
      'eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NjI0LCJzdGFydCI6Im5vZGUtM1x1MDAwMCJ9',
    );
    expect(decodeContinue(encodeContinue(624, 'node-3\0'))).toEqual({ resourceVersion: 624, start: 'node-3\0' });
  });

  test.each([
    [
      { v, rv: -1, start: 'a' },
      { resourceVersion: -1, start: 'a' },
    ],
    // A list with a negative resourceVersion continues at the latest resourceVersion.
    [
      { v, rv: -7, start: 'a' },
      { resourceVersion: -1, start: 'a' },
    ],
    [
      { v, rv: 7, start: '/a', more: true },
      { resourceVersion: 7, start: 'a' },
    ],
    [
      { v, rv: 7, start: 'namespace/a\0' },
      { resourceVersion: 7, start: 'namespace/a\0' },
    ],
  ])('the continue token %j is accepted', (value, expected) => {
    expect(decodeContinue(encode(value))).toEqual(expected);
  });

  test.each([
    ['!', 'it is not base64url'],
    ['', 'it is not base64url'],
    ['eyJ9', 'it is not JSON'],
    [encode(null), 'server does not recognize this encoded version'],
    [encode({}), 'server does not recognize this encoded version'],
    [encode({ v: 'v2', rv: 7, start: 'a' }), 'server does not recognize this encoded version v2'],
    [encode({ v, start: 'a' }), `incorrect encoded start resourceVersion (version ${v})`],
    [encode({ v, rv: 0, start: 'a' }), `incorrect encoded start resourceVersion (version ${v})`],
    [encode({ v, rv: 1.5, start: 'a' }), `incorrect encoded start resourceVersion (version ${v})`],
    [encode({ v, rv: '7', start: 'a' }), `incorrect encoded start resourceVersion (version ${v})`],
    [encode({ v, rv: 7 }), `encoded start key empty (version ${v})`],
    [encode({ v, rv: 7, start: '' }), `encoded start key empty (version ${v})`],
    [encode({ v, rv: 7, start: '../a' }), '../a'],
    [encode({ v, rv: 7, start: 'a/./b' }), 'a/./b'],
  ])('the continue token "%s" is rejected', (token, reason) => {
    expect(() => decodeContinue(token)).toThrow(`invalid continue token: continue key is not valid: ${reason}`);
  });
});
