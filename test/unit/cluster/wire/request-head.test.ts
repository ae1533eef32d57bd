import { describe, expect, test } from '@jest/globals';
import { assertOneIdentity, fieldsOf, headOf } from '../../../../src/cluster/wire/request-head.ts';

describe('fieldsOf()', () => {
  test('fieldsOf() uses the last layer that sets a header, whatever the case of its name', () => {
    expect(fieldsOf({ Accept: 'a', 'X-One': '1' }, { accept: ['b', 'c'] }, { ACCEPT: 'd' })).toEqual([
      'ACCEPT',
      'd',
      'X-One',
      '1',
    ]);
  });

  test('fieldsOf() writes a header with several values once for each value', () => {
    expect(fieldsOf({ a: ['1', '2'] })).toEqual(['a', '1', 'a', '2']);
  });
});

describe('assertOneIdentity()', () => {
  test.each<[string, string[]]>([
    ['two impersonated users', ['Impersonate-User', 'root', 'impersonate-user', 'anna']],
    ['the same user twice', ['impersonate-user', 'anna', 'Impersonate-User', 'anna']],
    ['an empty user', ['impersonate-user', '']],
    ['a user name of white space', ['impersonate-user', ' \t']],
    ['two uids', ['impersonate-user', 'anna', 'impersonate-uid', '1', 'Impersonate-Uid', '2']],
    ['an empty uid', ['impersonate-user', 'anna', 'impersonate-uid', '']],
    ['a group without a user', ['impersonate-group', 'system:masters']],
    ['a uid without a user', ['Impersonate-Uid', '1']],
    ['an extra without a user', ['IMPERSONATE-EXTRA-scopes', 'all']],
    ['two credentials', ['Authorization', 'Bearer a', 'authorization', 'Bearer b']],
  ])('assertOneIdentity() rejects %s', (_, headers) => {
    expect(() => assertOneIdentity(headers)).toThrow(/kube-apiserver/);
    const request = { method: 'GET', target: '/api', host: 'kube', hasBody: false, headers };
    expect(() => headOf(request)).toThrow(/kube-apiserver/);
  });

  test.each<[string, string[]]>([
    ['no identity', ['Accept', 'a']],
    ['a credential', ['Authorization', 'Bearer a']],
    [
      'one user with groups and extra',
      [
        'impersonate-user',
        'a',
        'impersonate-group',
        'b',
        'impersonate-group',
        'c',
        'impersonate-extra-d',
        'e',
        'impersonate-extra-d',
        'f',
      ],
    ],
  ])('assertOneIdentity() accepts %s', (_, headers) => {
    expect(() => assertOneIdentity(headers)).not.toThrow();
  });
});
