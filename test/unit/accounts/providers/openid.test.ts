import { expect, test } from '@jest/globals';
import { statementOf } from '../../../../src/accounts/providers/openid.ts';

const claims = { username: 'preferred_username', email: 'email', displayName: 'name', groups: 'roles' };
const said = {
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
  ['all of them', {}, {}],
  ['a verified e-mail address, in a text', { email_verified: 'true' }, {}],
  ['one that is not', { email_verified: false }, { email: undefined }],
  ['one that is not, in a text', { email_verified: 'false' }, { email: undefined }],
  ['one of which nothing is said', { email_verified: undefined }, { email: undefined }],
  ...[null, 0, 1, '', 'TRUE', '1', [true], {}].map((email_verified): [string, object, object] => [
    `one that is verified as ${JSON.stringify(email_verified)}`,
    { email_verified },
    { email: undefined },
  ]),
  ['one group', { roles: 'a' }, { groups: ['a'] }],
  ['no groups', { roles: undefined }, { groups: [] }],
  ['groups that are none', { roles: [1, { name: 'a' }, 'b', null] }, { groups: ['b'] }],
  ['names that are none', { preferred_username: 7, name: null }, { username: undefined, displayName: undefined }],
  ['a subject that is none', { sub: 1 }, { subject: undefined }],
])('of the claims of a person: %s', (_, changes, expected) => {
  expect(statementOf({ ...said, ...changes }, { claims })).toEqual({ ...statement, ...expected });
});

test('groups come of no claim unless it is named', () => {
  const { groups: _, ...others } = claims;
  expect(statementOf({ ...said, groups: ['a'] }, { claims: others }).groups).toEqual([]);
});
