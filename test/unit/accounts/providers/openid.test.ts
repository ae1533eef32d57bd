import { expect, test } from '@jest/globals';
import { statementOf } from '../../../../src/accounts/providers/openid.ts';

const claims = { username: 'preferred_username', email: 'email', displayName: 'name', groups: 'roles' };
const idToken = {
  sub: '1',
  preferred_username: 'erin',
  email: 'e@example.org',
  email_verified: true,
  name: 'Erin',
  roles: ['a', 'b'],
};
const statement = { subject: '1', username: 'erin', email: 'e@example.org', displayName: 'Erin', groups: ['a', 'b'] };

// evidence: openid-email-verified
test.each<[string, object, object]>([
  ['all claims', {}, {}],
  ['a verified e-mail address (as a string)', { email_verified: 'true' }, {}],
  ['an unverified e-mail address', { email_verified: false }, { email: undefined }],
  ['an unverified e-mail address (as a string)', { email_verified: 'false' }, { email: undefined }],
  ['an e-mail address without email_verified', { email_verified: undefined }, { email: undefined }],
  ...[null, 0, 1, '', 'TRUE', '1', [true], {}].map((email_verified): [string, object, object] => [
    `an e-mail address with email_verified ${JSON.stringify(email_verified)}`,
    { email_verified },
    { email: undefined },
  ]),
  ['one group', { roles: 'a' }, { groups: ['a'] }],
  ['no groups', { roles: undefined }, { groups: [] }],
  ['groups that are not strings', { roles: [1, { name: 'a' }, 'b', null] }, { groups: ['b'] }],
  [
    'names that are not strings',
    { preferred_username: 7, name: null },
    { username: undefined, displayName: undefined },
  ],
  ['a subject that is not a string', { sub: 1 }, { subject: undefined }],
])('an OpenID login returns the claims of an identity with %s', (_, changes, expected) => {
  expect(statementOf({ ...idToken, ...changes }, { claims })).toEqual({ ...statement, ...expected });
});

test('groups of an OpenID login are read only from a configured claim', () => {
  const { groups: _, ...others } = claims;
  expect(statementOf({ ...idToken, groups: ['a'] }, { claims: others }).groups).toEqual([]);
});
