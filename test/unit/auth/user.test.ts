import { expect, test } from '@jest/globals';
import { holderOf, withAuthenticated } from '../../../src/auth/user.ts';

test.each<[string, string[], string[]]>([
  ['anna', [], ['system:authenticated']],
  ['anna', ['dev'], ['dev', 'system:authenticated']],
  ['anna', ['system:authenticated', 'dev'], ['system:authenticated', 'dev']],
  ['anna', ['system:unauthenticated'], ['system:unauthenticated']],
  ['system:anonymous', [], []],
  ['system:anonymous', ['dev'], ['dev']],
])(
  'withAuthenticated() adds system:authenticated as kube-apiserver does for the user %s in the groups %j',
  (username, groups, expected) => {
    expect(withAuthenticated({ username, groups, via: 'request-header' }).groups).toEqual(expected);
  },
);

test.each([
  ['system:serviceaccount:team-a:robot', 'namespace team-a'],
  ['system:serviceaccount:team-a:r', 'namespace team-a'],
  ['anna', 'user anna'],
  ['', 'user '],
  ['team-a', 'user team-a'],
  ['system:serviceaccount:team-a', 'user system:serviceaccount:team-a'],
  ['system:serviceaccount:team-a:', 'user system:serviceaccount:team-a:'],
  ['system:serviceaccount::robot', 'user system:serviceaccount::robot'],
  ['system:serviceaccount:team-a:robot:x', 'user system:serviceaccount:team-a:robot:x'],
  ['x-system:serviceaccount:team-a:robot', 'user x-system:serviceaccount:team-a:robot'],
])('the user "%s" shares the concurrency slots of the holder %j', (username, holder) => {
  expect(holderOf({ username })).toBe(holder);
});

test('all anonymous callers share the concurrency slots of one holder', () => {
  expect(holderOf(undefined)).toBe(holderOf({ username: '' }));
});
