/** Which LDAP providers get a login, in which order, and what becomes of their errors. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import { Directories } from '../../../../src/accounts/providers/password-providers.ts';
import { BindRefused, type askDirectory, type LDAPLoginRequest } from '../../../../src/accounts/providers/ldap.ts';
import { LiveConfiguration } from '../../../../src/config/live.ts';
import { configuration } from '../../../fakes/configuration.ts';
import { logOfLines } from '../../../fakes/log.ts';

const provider = (name: string, ldap: object = {}): object => ({
  name,
  type: 'LDAP',
  ldap: { url: `ldaps://${name}.example`, userSearch: { base: 'dc=example' }, ...ldap },
});
const clientSecretRef = { name: 'openid', key: 'secret' };
const openID = {
  name: 'sso',
  type: 'OIDC',
  oidc: { issuer: 'https://sso.example', clientID: 'platform', clientSecretRef },
};
const bindPasswordRef = { name: 'directory', key: 'password' };
const person = { subject: '1', username: 'erin', email: null, displayName: undefined, groups: [] };

let live: LiveConfiguration;
let directories: Directories;
let lines: () => string[];
let questions: LDAPLoginRequest[];
let read: unknown[];
let ask: typeof askDirectory;

const configure = (...identityProviders: object[]): void =>
  live.accept(configuration({ authentication: { identityProviders } }));

beforeEach(() => {
  live = new LiveConfiguration();
  configure(openID, provider('one'), provider('two'));
  questions = [];
  read = [];
  ask = async () => undefined;
  const log = logOfLines();
  ({ lines } = log);
  directories = new Directories({
    config: live,
    secrets: {
      read: (ref) => {
        read.push(ref);
        return 'of the service';
      },
    },
    log: log.log,
    ask: (question) => {
      questions.push(question);
      return ask(question);
    },
  });
});

type Login = Parameters<Directories['judge']>[0];
const judge = (changes: Partial<Login> = {}) =>
  directories.judge({
    login: 'erin',
    password: 'typed',
    source: '192.0.2.1',
    providers: () => true,
    found: () => undefined,
    ...changes,
  });
const hosts = (): string[] => questions.map(({ settings }) => new URL(settings.url).hostname);

describe('LDAP providers', () => {
  test.each<[string, Partial<Login>]>([
    ['without a name', { login: '' }],
    ['without a password', { password: '' }],
    ['with a password of 1,025 bytes', { password: 'x'.repeat(1_025) }],
    ['with a password of 513 characters in 1,026 bytes', { password: 'ö'.repeat(513) }],
  ])('get no login %s', async (_, changes) => {
    await expect(judge(changes)).resolves.toBeUndefined();
    expect(questions).toEqual([]);
  });

  test('get a password of 1,024 bytes', async () => {
    await judge({ password: 'x'.repeat(1_024) });
    expect(questions).toHaveLength(2);
  });

  test('get a login in the order of the configuration, those that may have the password first', async () => {
    await judge();
    await judge({ providers: (name) => name === 'two' });
    expect(hosts()).toEqual(['one.example', 'two.example', 'two.example', 'one.example']);
    expect(questions.map(({ password }) => password === 'typed')).toEqual([true, true, true, false]);
  });

  test('report who has the name, with the provider', async () => {
    const found: unknown[] = [];
    ask = async (question) => {
      question.found('1');
      return person;
    };
    await expect(judge({ found: (one) => void found.push(one) })).resolves.toMatchObject({
      identity: { provider: 'one', subject: '1' },
    });
    expect(found).toEqual([{ provider: 'one', subject: '1' }]);
  });

  test('get the password of bindDN from its Secret, and no Secret is read without bindDN', async () => {
    configure(provider('one', { bindDN: 'cn=service', bindPasswordRef }), provider('two'));
    await judge();
    expect(questions.map(({ bindPassword }) => bindPassword)).toEqual(['of the service', undefined]);
    expect(read).toEqual([bindPasswordRef]);
  });
});

test('an error of the caller ends a login by LDAP at once, and is no fault of the provider', async () => {
  const limited = new Error('too many failed logins');
  ask = async (question) => {
    question.found('1');
    return person;
  };
  const login = judge({
    found: () => {
      throw limited;
    },
  });
  await expect(login).rejects.toBe(limited);
  expect(hosts()).toEqual(['one.example']);
  expect(lines()).toEqual([]);
});

test('a fault of an LDAP provider is logged, and the error names the first in the configuration', async () => {
  ask = async () => {
    throw new Error('connect ECONNREFUSED');
  };
  await expect(judge({ providers: (name) => name === 'two' })).rejects.toMatchObject({
    code: 503,
    message: expect.stringContaining('"one"') as unknown,
  });
  expect(lines().map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { level: 'warn', provider: 'two', error: expect.anything() as unknown },
    { level: 'warn', provider: 'one', error: expect.anything() as unknown },
  ]);
});

test('an LDAP provider that was removed while it refused bindDN leaves no warning at the configuration', async () => {
  ask = async () => {
    configure();
    throw new BindRefused('the directory refuses the bindDN');
  };
  await expect(judge()).rejects.toMatchObject({ code: 503 });
  expect(live.warnings).toEqual([]);
});

test('logins at one LDAP provider beyond 8 connections and 8 that wait are refused, until these have ended', async () => {
  configure(provider('one'));
  const released = Promise.withResolvers<undefined>();
  ask = () => released.promise;
  const logins = Array.from({ length: 16 }, () => judge());
  await expect(judge()).rejects.toMatchObject({ code: 429 });
  released.resolve(undefined);
  await expect(Promise.all(logins)).resolves.toHaveLength(16);
  await expect(judge()).resolves.toBeUndefined();
});
