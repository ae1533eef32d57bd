import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { clientScopes } from '../../../src/config/schema.ts';
import { grantScope, narrowScope, programScope } from '../../../src/oauth/scope.ts';

describe('a login is granted', () => {
  test.each([
    [undefined, undefined],
    ['openid', 'openid'],
    ['profile openid', 'profile openid'],
    ['openid openid', 'openid'],
    ['openid everything', 'openid'],
    [`openid ${'x'.repeat(993)}`, 'openid'],
  ])('of %j the scope %j', (requested, granted) => {
    expect(grantScope(requested)).toBe(granted);
  });

  // Nothing at all cannot be said in an answer, and one that says nothing grants what was asked for (RFC 6749 section 5.1).
  // evidence: scope-empty
  test.each(['everything', 'every thing'])('nothing of %j, of which it can have nothing', (requested) => {
    expect(() => grantScope(requested)).toThrow(expect.objectContaining({ error: 'invalid_scope', code: 400 }));
  });

  test.each([' openid', 'openid ', 'openid  profile', 'a\tb', 'a"b', 'a\\b', 'ä', 'a\nb', `openid ${'x'.repeat(994)}`])(
    'nothing of %j, which is no scope',
    (requested) => {
      expect(() => grantScope(requested)).toThrow(expect.objectContaining({ error: 'invalid_scope', code: 400 }));
    },
  );
});

describe('a refresh is granted', () => {
  test.each([
    [undefined, undefined, undefined],
    [undefined, 'openid profile', 'openid profile'],
    ['openid', 'openid profile', 'openid'],
    ['profile openid', 'openid profile', 'profile openid'],
  ])('of %j after %j the scope %j', (requested, before, granted) => {
    expect(narrowScope(requested, before)).toBe(granted);
  });

  test.each([
    ['openid', undefined],
    ['openid', ''],
    ['openid email', 'openid profile'],
  ])('no %j after %j', (requested, before) => {
    expect(() => narrowScope(requested, before)).toThrow(expect.objectContaining({ error: 'invalid_scope' }));
  });

  test('never more than the login was', () => {
    const scope = fc.subarray([...clientScopes], { minLength: 1 }).map((words) => words.join(' '));
    fc.assert(
      fc.property(scope, scope, (requested, before) => {
        fc.pre(requested.split(' ').some((word) => !before.split(' ').includes(word)));
        expect(() => narrowScope(requested, before)).toThrow('wider');
      }),
    );
  });
});

test('a program is granted nothing that is for a person, and nothing that its client may not have', () => {
  expect(programScope('openid groups offline_access profile', ['openid', 'groups'])).toBe('groups');
  expect(() => programScope('openid', clientScopes)).toThrow(expect.objectContaining({ error: 'invalid_scope' }));
  expect(programScope(undefined, clientScopes)).toBeUndefined();
});
