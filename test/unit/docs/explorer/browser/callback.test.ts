import { describe, expect, test } from '@jest/globals';
import { begunOf, codeIn, isAt, LoginProblem } from '../../../../../src/docs/explorer/browser/callback.ts';

const issuer = 'https://platform.example';
const begun = { state: 's1', verifier: 'v1', hash: '#it', withCustomResources: false };
const good = { code: 'c1', state: 's1', iss: issuer };

test('the answer to the login that was begun has a code', () => {
  expect(codeIn(new URLSearchParams(good), begun, issuer)).toBe('c1');
});

test.each([
  ['https://platform.example/', 'https://platform.example', true],
  ['https://platform.example/', 'https://Platform.example:443', true],
  ['https://proxy.example/platform/', 'https://proxy.example/platform', true],
  ['https://proxy.example/', 'https://proxy.example/platform', false],
  ['https://platform.example:9443/', 'https://platform.example', false],
  ['http://platform.example/', 'https://platform.example', false],
  ['https://127.0.0.1:9443/', 'https://platform.example', false],
  ['https://platform.example/', '', false],
])('at %s is %s: %s', (base, of, expected) => {
  expect(isAt(new URL(base), of)).toBe(expected);
});

describe('no answer to that login is', () => {
  test.each<[string, Record<string, string | undefined>, RegExp]>([
    ['one with another state', { state: 's2' }, /another login/],
    ['one with no state', { state: undefined }, /another login/],
    ['one of another issuer', { iss: 'https://evil.example' }, /not of https:\/\/platform\.example/],
    ['one that hides its issuer', { iss: undefined }, /not of/],
    ['one of the issuer with a slash', { iss: `${issuer}/` }, /not of/],
    ['one with no code', { code: undefined }, /no code/],
    ['an error of another issuer', { code: undefined, error: 'access_denied', iss: 'https://evil.example' }, /not of/],
  ])('%s', (_, change, message) => {
    const query = new URLSearchParams(
      Object.entries({ ...good, ...change }).filter((one): one is [string, string] => one[1] !== undefined),
    );
    expect(() => codeIn(query, begun, issuer)).toThrow(LoginProblem);
    expect(() => codeIn(query, begun, issuer)).toThrow(message);
  });

  test.each(['code', 'state', 'iss', 'error'])('one that says %s twice', (name) => {
    const query = new URLSearchParams([...Object.entries(good), [name, 'x'], [name, 'x']]);
    expect(() => codeIn(query, begun, issuer)).toThrow(new RegExp(`${name} twice`));
  });

  test('any where none was begun', () => {
    expect(() => codeIn(new URLSearchParams(good), undefined, issuer)).toThrow(/not begun in this tab/);
  });
});

test.each([
  [{ error: 'access_denied', error_description: 'the user has refused' }, /the user has refused \(access_denied\)/],
  [{ error: 'server_error' }, /server_error/],
])('%j is told', (error, message) => {
  const query = new URLSearchParams({ state: 's1', iss: issuer, ...error });
  expect(() => codeIn(query, begun, issuer)).toThrow(message);
});

test.each([
  [JSON.stringify(begun), begun],
  [JSON.stringify({ ...begun, withCustomResources: 'yes' }), begun],
  [JSON.stringify({ ...begun, state: 1 }), undefined],
  [JSON.stringify({ state: 's1' }), undefined],
  ['null', undefined],
  ['{', undefined],
  ['7', undefined],
  [null, undefined],
])('of %j kept it is %j', (kept, expected) => {
  expect(begunOf(kept)).toEqual(expected);
});
