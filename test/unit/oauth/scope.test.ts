import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { clientScopes } from '../../../src/config/schema.ts';
import { grantScope, narrowScope, programScope } from '../../../src/oauth/scope.ts';

describe('the scope of a login', () => {
  test.each([
    ['openid', 'openid'],
    ['profile openid', 'profile openid'],
    ['openid openid', 'openid'],
    ['openid everything', 'openid'],
    [`openid ${'x'.repeat(993)}`, 'openid'],
  ])('a login that requests the scope %j is granted %j', (requested, granted) => {
    expect(grantScope(requested)).toBe(granted);
  });

  test('a login that requests no scope is granted no scope', () => {
    expect(grantScope(undefined)).toBeUndefined();
  });

  // A token response cannot express an empty scope: without a scope it grants the requested one (RFC 6749 section 5.1).
  // evidence: scope-empty
  test.each(['everything', 'every thing'])(
    'a login that requests the scope %j is rejected, since no part of this scope is known',
    (requested) => {
      expect(() => grantScope(requested)).toThrow(expect.objectContaining({ error: 'invalid_scope', code: 400 }));
    },
  );

  test.each([' openid', 'openid ', 'openid  profile', 'a\tb', 'a"b', 'a\\b', 'ä', 'a\nb', `openid ${'x'.repeat(994)}`])(
    'a login that requests the scope %j is rejected, since this scope is malformed',
    (requested) => {
      expect(() => grantScope(requested)).toThrow(expect.objectContaining({ error: 'invalid_scope', code: 400 }));
    },
  );
});

describe('the scope of a refresh', () => {
  test.each([
    ['openid', 'openid profile', 'openid'],
    ['profile openid', 'openid profile', 'profile openid'],
  ])(
    'a refresh that requests the scope %j after a login with the scope %j is granted %j',
    (requested, before, granted) => {
      expect(narrowScope(requested, before)).toBe(granted);
    },
  );

  test.each(['openid profile', undefined])(
    'a refresh that requests no scope is granted the scope of the login: %j',
    (before) => {
      expect(narrowScope(undefined, before)).toBe(before);
    },
  );

  test.each([
    ['openid', undefined],
    ['openid', ''],
    ['openid email', 'openid profile'],
  ])('a refresh that requests the scope %j after a login with the scope %j is rejected', (requested, before) => {
    expect(() => narrowScope(requested, before)).toThrow(expect.objectContaining({ error: 'invalid_scope' }));
  });

  test('a refresh is never granted a wider scope than the login', () => {
    const scope = fc.subarray([...clientScopes], { minLength: 1 }).map((words) => words.join(' '));
    fc.assert(
      fc.property(scope, scope, (requested, before) => {
        fc.pre(requested.split(' ').some((word) => !before.split(' ').includes(word)));
        expect(() => narrowScope(requested, before)).toThrow('exceeds');
      }),
    );
  });
});

test('a client_credentials login is granted only the scopes of its client, and no scopes for users', () => {
  expect(programScope('openid groups offline_access profile', ['openid', 'groups'])).toBe('groups');
  expect(() => programScope('openid', clientScopes)).toThrow(expect.objectContaining({ error: 'invalid_scope' }));
  expect(programScope(undefined, clientScopes)).toBeUndefined();
});
