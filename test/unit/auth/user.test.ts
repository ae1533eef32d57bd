import { expect, test } from '@jest/globals';
import { withAuthenticated } from '../../../src/auth/user.ts';

test.each<[string, string[], string[]]>([
  ['anna', [], ['system:authenticated']],
  ['anna', ['dev'], ['dev', 'system:authenticated']],
  ['anna', ['system:authenticated', 'dev'], ['system:authenticated', 'dev']],
  ['anna', ['system:unauthenticated'], ['system:unauthenticated']],
  ['system:anonymous', [], []],
  ['system:anonymous', ['dev'], ['dev']],
])('withAuthenticated adds system:authenticated as kube-apiserver does: %s in %j', (username, groups, expected) => {
  expect(withAuthenticated({ username, groups, via: 'request-header' }).groups).toEqual(expected);
});
