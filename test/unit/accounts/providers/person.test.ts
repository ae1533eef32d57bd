import { describe, expect, test } from '@jest/globals';
import { isSubdomain } from '../../../../src/config/names.ts';
import { personOf, PersonRefused, usernameOf, type Statement } from '../../../../src/accounts/providers/person.ts';

describe('the username of a first login', () => {
  const usernames: readonly (readonly [string, string | undefined])[] = [
    ['erin', 'erin'],
    ['Erin.Miller', 'erin.miller'],
    ['erin@corp.example', 'erin'],
    ['Jane_Doe', 'jane-doe'],
    ['jürgen ångström', 'jurgen-angstrom'],
    ['ｅｒｉｎ', 'erin'],
    ['CORP\\erin', 'corp-erin'],
    ['-_erin_-', 'erin'],
    ['a..b.-c', 'a.b.c'],
    ['7', '7'],
    ['a & b', 'a-b'],
    ['a-.b', 'a.b'],
    [`${'-'.repeat(1_020)}erin`, 'erin'],
    [`${'-'.repeat(1_021)}erin`, undefined],
    ['e\nr\u0000in', 'e-r-in'],
    ['', undefined],
    ['@corp.example', undefined],
    ['...', undefined],
    ['爱丽丝', undefined],
    ['x'.repeat(254), undefined],
    // The conversion of this claim takes hours if the length is checked last.
    [`a${'-'.repeat(1_000_000)}a`, undefined],
  ];
  test.each(usernames.map(([claim, username]) => [claim.slice(0, 40), username, claim] as const))(
    'the username of a first login for the claim %j is %j',
    (_, username, claim) => {
      expect(usernameOf(claim)).toBe(username);
      expect(isSubdomain(username ?? 'none')).toBe(true);
    },
  );
});

const claims: Statement = {
  subject: '0f1e',
  username: 'erin',
  email: 'erin@example.org',
  displayName: 'Erin',
  groups: ['engineers'],
};
const personWith = (changes: Partial<Statement>): unknown => {
  try {
    return personOf('corp', { ...claims, ...changes });
  } catch (error) {
    return error;
  }
};

describe('the claims of an identity provider', () => {
  test('the claims of an identity provider are accepted, and groups get the prefix of the provider', () => {
    expect(personOf('corp', { ...claims, groups: ['a', 'b', 'a', 'platform:admins'] })).toEqual({
      identity: { provider: 'corp', subject: '0f1e' },
      username: 'erin',
      email: 'erin@example.org',
      displayName: 'Erin',
      groups: ['corp:a', 'corp:b', 'corp:platform:admins'],
    });
  });

  // evidence: provider-system-names
  test.each<[string, Partial<Statement>]>([
    ['without a subject', { subject: undefined }],
    ['with an empty subject', { subject: '' }],
    ['with a subject that is too long', { subject: 'x'.repeat(256) }],
    ['with a subject that begins with a space', { subject: ' a' }],
    ['with a subject that ends with a space', { subject: 'a ' }],
    ['with a subject that contains a line end', { subject: 'a\nb' }],
    ['with a subject that is not UTF-8', { subject: 'a\uFFFD' }],
    ['with a group that contains a lone surrogate', { groups: ['a\uD800'] }],
    ['with a reserved username of Kubernetes', { username: 'system:admin' }],
    ['with a reserved username in any case', { username: 'System:Admin' }],
    ['with a reserved group', { groups: ['a', 'system:masters'] }],
    ['with an empty group', { groups: [''] }],
    ['with a group that no header can carry', { groups: ['a\r\nImpersonate-User: b'] }],
    ['with a group whose name is too long', { groups: ['x'.repeat(249)] }],
    ['with more groups than a session keeps', { groups: Array.from({ length: 201 }, (_, one) => `g${one}`) }],
  ])('the claims of an identity provider %s are rejected', (_, changes) => {
    expect(personWith(changes)).toBeInstanceOf(PersonRefused);
  });

  test('the claims of an identity provider are accepted with the longest names and the most groups', () => {
    const longest = {
      subject: 'x'.repeat(255),
      email: `${'x'.repeat(250)}@a.b`,
      displayName: 'x'.repeat(256),
      groups: ['x'.repeat(248), ...Array.from({ length: 199 }, (_, one) => `g${one}`)],
    };
    const { email, displayName } = longest;
    const identity = { provider: 'corp', subject: longest.subject };
    const groups = longest.groups.map((group) => `corp:${group}`);
    expect(personWith(longest)).toEqual({ identity, username: 'erin', email, displayName, groups });
  });

  test.each<[string, Partial<Statement>, object]>([
    ['an invalid e-mail address', { email: 'erin' }, { email: undefined }],
    ['an e-mail address that is too long', { email: `${'x'.repeat(251)}@a.b` }, { email: undefined }],
    ['a display name with a line end', { displayName: 'Erin\nMiller ' }, { displayName: 'Erin Miller' }],
    ['a display name that is too long', { displayName: 'x'.repeat(300) }, { displayName: 'x'.repeat(256) }],
    ['an empty display name', { displayName: ' ' }, { displayName: undefined }],
  ])('the claims of an identity provider are accepted after %s is corrected or omitted', (_, changes, expected) => {
    expect(personWith(changes)).toMatchObject(expected);
  });
});
