import { expect, test } from '@jest/globals';
import { InvalidCredentialsError, NoSuchObjectError } from 'ldapts';
import { fill, resultOf } from '../../../../src/accounts/identity-providers/ldap-connection.ts';

test.each([
  ['erin', '(uid=erin)'],
  ['*)(uid=*', '(uid=\\2a\\29\\28uid=\\2a)'],
  ['\\2a', '(uid=\\5c2a)'],
  ['a\u0000b', '(uid=a\\00b)'],
  ['{dn}', '(uid={dn})'],
  ['$&$1', '(uid=$&$1)'],
  ['ö', '(uid=ö)'],
])('a filter for %j stays one value (RFC 4515 section 3)', (username, filled) => {
  expect(fill('(uid={username})', { username, dn: 'never' })).toBe(filled);
});

test('a filter may have more than one value', () => {
  expect(fill('(|(member={dn})(memberUid={username}))', { dn: 'cn=a (b)', username: 'a' })).toBe(
    '(|(member=cn=a \\28b\\29)(memberUid=a))',
  );
});

test.each([
  [new InvalidCredentialsError(), 'invalidCredentials (49)'],
  [new NoSuchObjectError(), 'noSuchObject (32)'],
  [new Error('connect ECONNREFUSED'), undefined],
])('what a directory answered has a name: %s', (error, name) => {
  expect(resultOf(error)).toBe(name);
});
