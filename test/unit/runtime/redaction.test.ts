// evidence: redaction-by-shape
import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { redactedJSON, redactText, shownURL } from '../../../src/runtime/redaction.ts';

const jwt = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl';

describe('a token in a text', () => {
  test.each([
    ['alone', jwt, '[redacted]'],
    ['without a signature', 'eyJh.eyJz.', '[redacted]'],
    ['after a hyphen', `token-${jwt}`, 'token-[redacted]'],
    ['after an underscore', `a_b_${jwt} c`, 'a_b_[redacted] c'],
    ['after other names with dots', `a.b.${jwt}`, 'a.b.[redacted]'],
    ['twice', `${jwt},${jwt}`, '[redacted],[redacted]'],
    ['with further parts', `${jwt}.d.e`, '[redacted].d.e'],
    ['twice without a separator', `${jwt}.${jwt}`, '[redacted].[redacted]'],
    ['after an incomplete token', `eyJa..${jwt}`, 'eyJa..[redacted]'],
    ['in an encoded URL', `/x?next=%2Fy%3Fid_token_hint%3D${jwt}%26a`, '/x?next=%2Fy%3Fid_token_hint%3D[redacted]%26a'],
    ['in a URL that is encoded twice', `/x?n=%253Da%253d${jwt}`, '/x?n=%253Da%253d[redacted]'],
    ['after Bearer', 'Bearer abc.def', 'Bearer [redacted]'],
    ['after Bearer in a query', '/x?a=Bearer%20abc&b=bearer+abc', '/x?a=Bearer [redacted]&b=bearer [redacted]'],
  ])('a token in a text is redacted: %s', (_, text, shown) => {
    expect(redactText(text)).toBe(shown);
  });

  test.each(['eyJ', 'eyJa.b', 'keyJa.b.c', '%3DkeyJa.b.c', '%eyJ.b.c', 'eyJ.b.c', 'a.eyJ', 'monkeyJ.x.y'])(
    'a text that contains no token is unchanged: %s',
    (text) => {
      expect(redactText(text)).toBe(text);
    },
  );

  const part = fc.array(fc.constantFrom('eyJ', 'a', '-', '_', 'Z9'), { maxLength: 6 }).map((all) => all.join(''));
  const text = fc
    .array(fc.oneof(part, fc.constantFrom('.', '.', ' ', '/', jwt)), { maxLength: 30 })
    .map((all) => all.join(''));
  test('a token in a text is found at any position, and nothing else is redacted', () => {
    const simple = /(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*/g;
    fc.assert(fc.property(text, (one) => expect(redactText(one)).toBe(one.replace(simple, '[redacted]'))));
  });
});

test.each(['eyJ-', 'eyJ_a', 'eyJ-.', 'a.eyJ-', 'bearer ', 'bearer+', 'bearer%20'])(
  'a text of repeated token prefixes is redacted in linear time: %s',
  (beginning) => {
    expect(redactText(beginning.repeat(256 * 1024))).not.toBe('');
  },
);

test.each([
  ['/x?access_token=a&b=c', '/x?access_token=redacted&b=c'],
  ['/x?b=c;token=a', '/x?b=c;token=redacted'],
  ['/x?b;c', '/x?b;c'],
  ['/x?%74oken=a', '/x?%74oken=redacted'],
  ['/x?passwd=a&pwd=b&api_key=c&apiKey=d', '/x?passwd=redacted&pwd=redacted&api_key=redacted&apiKey=redacted'],
  ['/x?password[]=a&user[password]=b', '/x?password[]=redacted&user[password]=redacted'],
  ['/x?password%00=a&password%0A2=b', '/x?password%00=redacted&password%0A2=redacted'],
])('secrets in the query %s are redacted: %s', (url, shown) => {
  expect(shownURL(url)).toBe(shown);
});

test('redactedJSON() redacts text in password fields, and keeps the names of password references', () => {
  const object = {
    spec: { password: 'hush', newPassword: 'hush', adminPasswd: 'hush', passwordRef: 'kept', password2: [1] },
  };
  expect(JSON.parse(redactedJSON(object))).toEqual({
    spec: {
      password: '[redacted]',
      newPassword: '[redacted]',
      adminPasswd: '[redacted]',
      passwordRef: 'kept',
      password2: [1],
    },
  });
});

const query = (count: number): string => Array.from({ length: count }, (_, index) => `token=${index}`).join('&');

test('shownURL() omits a query of more than 1,000 parameters', () => {
  expect(shownURL(`/a?${query(1_000)}`)).toBe(`/a?${Array.from({ length: 1_000 }, () => 'token=redacted').join('&')}`);
  expect(shownURL(`/a?${query(1_001)}`)).toBe('/a?[more than 1000 parameters]');
});
