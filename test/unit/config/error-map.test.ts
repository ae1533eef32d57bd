import { describe, expect, test } from '@jest/globals';
import { formatProblem, parseConfiguration } from '../../../src/config/parse.ts';

/** Returns the messages about these lines of YAML under `authentication`. */
function messagesFor(lines: string, more = ''): string[] {
  const parsed = parseConfiguration(`apiVersion: config.platform.io/v1alpha1
kind: PlatformConfiguration
authentication:
  issuer: https://a.example
  ${lines}
${more}`);
  return parsed.ok ? [] : parsed.problems.map(formatProblem);
}

const erin = 'username: erin, passwordRef: {name: a, key: b}';
const web = 'name: web, secret: x';

describe('a value of the wrong type is reported', () => {
  test.each([
    ['accessTokenMaxAge: 7200', 'accessTokenMaxAge: must be a duration such as "2h", with a unit and in quotes'],
    ['accessTokenMaxAge: true', 'accessTokenMaxAge: must be a duration such as "2h"'],
    ['multipleLogin: "false"', 'multipleLogin: must be true or false, without quotes'],
    ['multipleLogin: sometimes', 'multipleLogin: must be true or false'],
    ['multipleLogin: 1', 'multipleLogin: must be true or false'],
    ['clients: {}', 'clients: must be a list'],
    ['clients: null', 'clients: must be a list'],
    ['loginLimit: []', 'loginLimit: must be a mapping'],
    ['loginLimit: null', 'loginLimit: must be a mapping'],
    ['loginLimit: {maxTries: "5"}', 'loginLimit.maxTries: must be a number, without quotes'],
    ['loginLimit: {maxTries: 1.5}', 'loginLimit.maxTries: must be a whole number'],
    ['loginLimit: {maxTries: 0}', 'loginLimit.maxTries: must be at least 1'],
    ['loginLimit: {maxTries: 1001}', 'loginLimit.maxTries: must be at most 1000'],
    [`users: [{${erin}, displayName: 5}]`, 'users[0] (erin).displayName: must be text: put it in quotes'],
    [`users: [{${erin}, displayName: {}}]`, 'users[0] (erin).displayName: must be text'],
    [
      'users: [{username: erin, passwordRef: {name: "", key: b}}]',
      'users[0] (erin).passwordRef.name: must not be empty',
    ],
    [
      `users: [{${erin}, displayName: ${'x'.repeat(257)}}]`,
      'users[0] (erin).displayName: must have at most 256 characters',
    ],
    [
      `users: [{${erin}, groups: [${Array.from({ length: 101 }, (_, at) => `g${at}`).join(', ')}]}]`,
      'users[0] (erin).groups: must have at most 100 entries',
    ],
  ])('a value of the wrong type is reported for %s', (line, message) => {
    expect(messagesFor(line)).toEqual([`authentication.${message}`]);
  });
});

describe('missing keys are reported', () => {
  test.each([
    ['', ['apiVersion: is missing', 'kind: is missing', 'authentication: is missing']],
    [
      'kind: PlatformConfiguration\napiVersion: config.platform.io/v1alpha1\nauthentication: {}',
      ['authentication.issuer: is missing'],
    ],
  ])('missing keys are reported for %j', (text, messages) => {
    const parsed = parseConfiguration(`${text}\nrequests: {}\n`);
    expect(parsed.ok ? [] : parsed.problems.map(formatProblem)).toEqual(messages);
  });

  test('missing keys are reported for an entry of a list', () => {
    expect(messagesFor('users: [{username: erin, passwordRef: {name: a}}]')).toEqual([
      'authentication.users[0] (erin).passwordRef.key: is missing',
    ]);
    expect(messagesFor('identityProviders: [{name: corp, type: LDAP}]')).toEqual([
      'authentication.identityProviders[0] (corp).ldap: is missing',
    ]);
  });
});

describe('an invalid choice is reported with the accepted values', () => {
  test.each([
    ['signingAlgorithm: HS256', 'signingAlgorithm: must be one of RS256, ES256; did you mean "RS256"?'],
    [
      `users: [{${erin}, state: active}]`,
      'users[0] (erin).state: must be one of Active, Disabled; did you mean "Active"?',
    ],
    [`users: [{${erin}, state: 5}]`, 'users[0] (erin).state: must be one of Active, Disabled'],
    [`users: [{${erin}, state: [x]}]`, 'users[0] (erin).state: must be one of Active, Disabled'],
    [`users: [{${erin}, state: ${'x'.repeat(65)}}]`, 'users[0] (erin).state: must be one of Active, Disabled'],
  ])('an invalid choice is reported with the accepted values for %s', (line, message) => {
    expect(messagesFor(line)).toEqual([`authentication.${message}`]);
  });

  test('an invalid choice is reported with the accepted value if there is only one', () => {
    const parsed = parseConfiguration(
      'apiVersion: v1\nkind: PlatformConfiguration\nauthentication: {issuer: https://a}',
    );
    expect(parsed).toEqual({
      ok: false,
      problems: [{ path: 'apiVersion', message: 'must be "config.platform.io/v1alpha1"' }],
    });
  });
});

test.each(['x', 'a@', '@b', '""'])('the configured e-mail address %s is rejected as invalid', (email) => {
  expect(messagesFor(`users: [{${erin}, email: ${JSON.stringify(email)}}]`)).toEqual([
    'authentication.users[0] (erin).email: must be an e-mail address',
  ]);
});

describe('an unknown key is reported', () => {
  test.each([
    ['multiplelogin', 'multipleLogin'],
    ['MULTIPLELOGIN', 'multipleLogin'],
    ['multipleLogins', 'multipleLogin'],
    ['multipleLgoin', 'multipleLogin'],
    ['user', 'users'],
    ['clients2', 'clients'],
  ])('an unknown key is reported with the closest match: %s', (key, near) => {
    expect(messagesFor(`${key}: 1`)).toEqual([`authentication.${key}: is not a known key; did you mean "${near}"?`]);
  });

  test.each(['colour', 'multipleLoginsss', 'x', '__proto__'])(
    'an unknown key is reported without a suggestion if no known key is similar: %s',
    (key) => {
      expect(messagesFor(`${key}: 1`)).toEqual([`authentication.${key}: is not a known key`]);
    },
  );

  test('unknown keys are each reported with their own suggestion', () => {
    expect(messagesFor(`users: [{${erin}, shell: bash, group: [], Email: x}]`, 'cach: {}\n')).toEqual([
      'authentication.users[0] (erin).shell: is not a known key',
      'authentication.users[0] (erin).group: is not a known key; did you mean "groups"?',
      'authentication.users[0] (erin).Email: is not a known key; did you mean "email"?',
      'cach: is not a known key; did you mean "cache"?',
    ]);
  });
});

describe('the path of a problem', () => {
  test('the path of a problem contains the names of users, clients and providers', () => {
    expect(
      messagesFor(
        `users: [{${erin}, state: x}, {passwordRef: {name: a, key: b}}, {username: 5, passwordRef: {name: a, key: b}}]`,
      ),
    ).toEqual([
      'authentication.users[0] (erin).state: must be one of Active, Disabled',
      'authentication.users[1].username: is missing',
      'authentication.users[2].username: must be text: put it in quotes',
    ]);
    expect(messagesFor(`clients: [{${web}, consent: "no"}, {name: web}]`)).toEqual([
      'authentication.clients[0] (web).consent: must be true or false',
      'authentication.clients[1] (web): must have exactly one of secret, secretHash and secretRef, or public: true',
      'authentication.clients[1] (web): duplicate client name "web"',
    ]);
  });

  test('the path of a problem omits names that would break the line', () => {
    expect(messagesFor(`users: [{username: "a\\nb", passwordRef: {name: a, key: b}}]`)[0]).toMatch(
      /^authentication\.users\[0\]\.username: /,
    );
    expect(messagesFor(`users: [{username: ${'x'.repeat(254)}, passwordRef: {name: a, key: b}}]`)[0]).toMatch(
      /^authentication\.users\[0\]\.username: /,
    );
  });
});

describe('a redirect URI', () => {
  test.each(['https://*.example.com/cb', 'https://console.example.com/*', 'com.example.app:/*', '*'])(
    'the redirect URI %s is rejected because it contains a wildcard',
    (uri) => {
      for (const key of ['redirectURIs', 'postLogoutRedirectURIs'])
        expect(messagesFor(`clients: [{${web}, ${key}: ["${uri}"]}]`)).toEqual([
          `authentication.clients[0] (web).${key}[0]: must be exact, without "*"`,
        ]);
    },
  );
});

test('errors of the configuration never quote a value that can be a secret, whatever is wrong with the value', () => {
  const secret = '7301994433';
  for (const value of [secret, `"${secret}"`, `[${secret}]`, `{a: ${secret}}`, `"${secret}${'x'.repeat(300)}"`]) {
    const messages = messagesFor(`users:
  - {username: a, passwordHash: ${value}}
  - {username: b, passwordRef: ${value}}
  - {username: c, passwordRef: {name: ${value}, key: [${value}]}}
  clients:
  - {name: x, secret: [${value}]}
  - {name: y, secretHash: ${value}}
  - {name: z, secretRef: ${value}}`);
    expect(messages.length).toBeGreaterThan(5);
    expect(messages.join('\n')).not.toContain(secret);
  }
});
