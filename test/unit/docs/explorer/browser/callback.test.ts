import { describe, expect, test } from '@jest/globals';
import {
  authorizationCode,
  isAt,
  LoginProblem,
  parsePendingLogin,
} from '../../../../../src/docs/explorer/browser/callback.ts';

const issuer = 'https://platform.example';
const pending = { state: 's1', verifier: 'v1', hash: '#it', withCustomResources: false };
const good = { code: 'c1', state: 's1', iss: issuer };

test('authorizationCode() returns the code of the response to the pending login', () => {
  expect(authorizationCode(new URLSearchParams(good), pending, issuer)).toBe('c1');
});

test.each([
  [true, 'https://platform.example/', 'https://platform.example'],
  [true, 'https://platform.example/', 'https://Platform.example:443'],
  [true, 'https://proxy.example/platform/', 'https://proxy.example/platform'],
  [false, 'https://proxy.example/', 'https://proxy.example/platform'],
  [false, 'https://platform.example:9443/', 'https://platform.example'],
  [false, 'http://platform.example/', 'https://platform.example'],
  [false, 'https://127.0.0.1:9443/', 'https://platform.example'],
  [false, 'https://platform.example/', ''],
])('isAt() returns %s for the page %s and the issuer "%s"', (expected, base, of) => {
  expect(isAt(new URL(base), of)).toBe(expected);
});

describe('authorizationCode()', () => {
  test.each<[string, Record<string, string | undefined>, RegExp]>([
    ['a different state', { state: 's2' }, /another login/],
    ['no state', { state: undefined }, /another login/],
    ['a different issuer', { iss: 'https://evil.example' }, /not from https:\/\/platform\.example/],
    ['no issuer', { iss: undefined }, /not from/],
    ['the issuer with an additional slash', { iss: `${issuer}/` }, /not from/],
    ['no code', { code: undefined }, /no code/],
    [
      'an error from a different issuer',
      { code: undefined, error: 'access_denied', iss: 'https://evil.example' },
      /not from/,
    ],
  ])('authorizationCode() rejects a response that has %s', (_, change, message) => {
    const query = new URLSearchParams(
      Object.entries({ ...good, ...change }).filter((one): one is [string, string] => one[1] !== undefined),
    );
    expect(() => authorizationCode(query, pending, issuer)).toThrow(LoginProblem);
    expect(() => authorizationCode(query, pending, issuer)).toThrow(message);
  });

  test.each(['code', 'state', 'iss', 'error'])(
    'authorizationCode() rejects a response that repeats the parameter %s',
    (name) => {
      const query = new URLSearchParams([...Object.entries(good), [name, 'x'], [name, 'x']]);
      expect(() => authorizationCode(query, pending, issuer)).toThrow(new RegExp(`repeats ${name}`));
    },
  );

  test('authorizationCode() rejects a response without a pending login', () => {
    expect(() => authorizationCode(new URLSearchParams(good), undefined, issuer)).toThrow(/not started in this tab/);
  });
});

test.each([
  [{ error: 'access_denied', error_description: 'the user has refused' }, /the user has refused \(access_denied\)/],
  [{ error: 'server_error' }, /server_error/],
])('authorizationCode() reports the error %j', (error, message) => {
  const query = new URLSearchParams({ state: 's1', iss: issuer, ...error });
  expect(() => authorizationCode(query, pending, issuer)).toThrow(message);
});

test.each([
  [JSON.stringify(pending), pending],
  [JSON.stringify({ ...pending, withCustomResources: 'yes' }), pending],
  [JSON.stringify({ ...pending, state: 1 }), undefined],
  [JSON.stringify({ state: 's1' }), undefined],
  ['null', undefined],
  ['{', undefined],
  ['7', undefined],
  [null, undefined],
])('parsePendingLogin() parses %j to %j', (kept, expected) => {
  expect(parsePendingLogin(kept)).toEqual(expected);
});
