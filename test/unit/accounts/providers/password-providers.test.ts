/** Selection and order of the LDAP providers that receive a login, and reports of their errors. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import { PasswordProviders } from '../../../../src/accounts/providers/password-providers.ts';
import { CredentialsRefused, type LookUp, type ProviderTypes } from '../../../../src/accounts/providers/provider.ts';
import { IdentityProviders } from '../../../../src/accounts/providers/identity-providers.ts';
import { providerTypes } from '../../../../src/accounts/providers/index.ts';
import type { Person } from '../../../../src/accounts/providers/person.ts';
import { LiveConfiguration } from '../../../../src/config/live.ts';
import { configuration } from '../../../fakes/configuration.ts';
import { logOfLines } from '../../../fakes/log.ts';
import { FakeClock } from '../../../labs/cluster-fakes.ts';

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

const result = (changes: Partial<LookUp> = {}): LookUp => ({
  subject: undefined,
  authenticate: async () => undefined,
  close: () => undefined,
  ...changes,
});

let live: LiveConfiguration;
let all: IdentityProviders;
let providers: PasswordProviders;
let lines: () => string[];
/** Host and name of each lookup. */
let lookedUp: [host: string, name: string][];
let bindPasswords: unknown[];
let read: unknown[];
let response: (host: string) => Promise<LookUp>;

const configure = (...identityProviders: object[]): void =>
  live.accept(configuration({ authentication: { identityProviders } }));

beforeEach(() => {
  live = new LiveConfiguration();
  configure(openID, provider('one'), provider('two'));
  lookedUp = [];
  bindPasswords = [];
  read = [];
  response = async () => result();
  const log = logOfLines();
  ({ lines } = log);
  const secrets = {
    read: (ref: unknown) => {
      read.push(ref);
      return 'of the service';
    },
  };
  const types: ProviderTypes = {
    ...providerTypes,
    LDAP: {
      kind: 'password',
      create: ({ ldap }, { secret }) => ({
        lookUp: (name) => {
          const host = new URL(ldap.url).hostname;
          lookedUp.push([host, name]);
          bindPasswords.push(secret);
          return response(host);
        },
      }),
    },
  };
  all = new IdentityProviders({ config: live, secrets, clock: new FakeClock(), log: log.log, types });
  providers = new PasswordProviders(all);
});

type Search = Parameters<PasswordProviders['find']>[1];
const find = (changes: Partial<Search> = {}) =>
  providers.find('erin', { source: '192.0.2.1', isAllowed: () => true, ...changes });
const logIn = async (changes: Partial<Search> = {}): Promise<Person | undefined> => {
  const candidate = await find(changes);
  try {
    return await candidate.authenticate('typed');
  } finally {
    candidate.close();
  }
};
const hosts = (): string[] => lookedUp.map(([host]) => host);

describe('LDAP providers', () => {
  test('LDAP providers that are allowed to receive the password are searched before other providers, in the order of the configuration', async () => {
    await logIn();
    await logIn({ isAllowed: (name) => name === 'two' });
    expect(hosts()).toEqual(['one.example', 'two.example', 'two.example', 'one.example']);
    expect(lookedUp.map(([, name]) => name === 'erin')).toEqual([true, true, true, false]);
  });

  test('LDAP providers after the first provider that has the name are not searched, and the identity from that provider is returned', async () => {
    response = async () => result({ subject: '1', authenticate: async () => person });
    const identity = { provider: 'one', subject: '1' };
    await expect(find()).resolves.toMatchObject({ identity });
    await expect(logIn()).resolves.toMatchObject({ identity });
    expect(hosts()).toEqual(['one.example', 'one.example']);
  });

  test('LDAP providers after the first provider that has the name are searched for a random name if the password is wrong', async () => {
    response = async () => result({ subject: '1' });
    const candidate = await find();
    expect(hosts()).toEqual(['one.example']);
    await expect(candidate.authenticate('wrong')).resolves.toBeUndefined();
    expect(hosts()).toEqual(['one.example', 'two.example']);
    expect(lookedUp[1]?.[1]).not.toBe('erin');
  });

  test('LDAP providers use the password of bindDN from its Secret, and no Secret is read without bindDN', async () => {
    configure(provider('one', { bindDN: 'cn=service', bindPasswordRef }), provider('two'));
    await logIn();
    expect(bindPasswords).toEqual(['of the service', undefined]);
    expect(read).toEqual([bindPasswordRef]);
  });
});

test.each([
  ['a wrong password', async () => undefined],
  ['the right password', async () => person],
  ['an outage', async () => Promise.reject(new Error('connect ECONNREFUSED'))],
])('every connection to an LDAP provider is closed after %s', async (_, authenticate) => {
  const open = new Set<LookUp>();
  response = async () => {
    const found = result({ subject: '1', authenticate, close: () => void open.delete(found) });
    open.add(found);
    return found;
  };
  await logIn().catch(() => undefined);
  expect(lookedUp).not.toEqual([]);
  expect([...open]).toEqual([]);
});

test('an error of an LDAP provider is logged, and the message names the first failed provider in the configuration', async () => {
  response = async () => {
    throw new Error('connect ECONNREFUSED');
  };
  await expect(logIn({ isAllowed: (name) => name === 'two' })).rejects.toMatchObject({
    code: 503,
    message: expect.stringContaining('"one"') as unknown,
  });
  expect(lines().map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { level: 'warn', provider: 'two', error: expect.anything() as unknown },
    { level: 'warn', provider: 'one', error: expect.anything() as unknown },
  ]);
});

describe('the warning of the identity providers', () => {
  const outage = new Error('the search failed', {
    cause: Object.assign(new Error('10.0.0.1'), { code: 'ECONNREFUSED' }),
  });

  test.each<[string, Error, string]>([
    ['the code of the cause of an error', outage, 'ECONNREFUSED'],
    [
      'the code of a connection that failed for several addresses',
      Object.assign(new AggregateError([], ''), { code: 'ETIMEDOUT' }),
      'ETIMEDOUT',
    ],
    ['the class and the number of an error', Object.assign(new TypeError('a\nb'), { code: 51 }), 'TypeError 51'],
    ['no text of an error', new Error('the entry uid=erin is wrong'), 'see the log'],
  ])('the warning names each provider whose last request failed, the time, and %s', async (_what, error, cause) => {
    expect(all.warning()).toBe('');
    response = async (host) => (host === 'one.example' ? Promise.reject(error) : result());
    await logIn().catch(() => undefined);
    expect(all.warning()).toBe(`"one" failed at 1970-01-01T00:16:40.000Z (${cause})`);
    response = async () => Promise.reject(error);
    await logIn({ isAllowed: (name) => name === 'two' }).catch(() => undefined);
    expect(all.warning()).toMatch(/^"one" failed at .*; "two" failed at /);
  });

  test('the warning ends with the next response of the provider', async () => {
    response = async () => Promise.reject(outage);
    await logIn().catch(() => undefined);
    response = async () => result();
    await logIn();
    expect(all.warning()).toBe('');
  });

  test.each([
    ['is no longer configured', [provider('two')]],
    ['has other settings', [provider('one', { url: 'ldaps://other.example' }), provider('two')]],
  ])('the warning omits a provider that %s', async (_what, configured) => {
    response = async (host) => (host === 'one.example' ? Promise.reject(outage) : result());
    await logIn().catch(() => undefined);
    configure(...configured);
    await logIn().catch(() => undefined);
    expect(all.warning()).toBe('');
  });
});

test('an LDAP provider that is removed while it rejects bindDN leaves no configuration warning', async () => {
  response = async () => {
    configure();
    throw new CredentialsRefused('the LDAP server rejects the bindDN');
  };
  await expect(logIn()).rejects.toMatchObject({ code: 503 });
  expect(live.warnings).toEqual([]);
});

describe('connections to one LDAP provider', () => {
  test('connections to one LDAP provider are limited to 4 per address with 8 queued logins, and further logins are rejected', async () => {
    configure(provider('one'));
    const released = Promise.withResolvers<LookUp>();
    response = () => released.promise;
    const logins = Array.from({ length: 12 }, () => logIn());
    await expect(logIn()).rejects.toMatchObject({ code: 429 });
    expect(hosts()).toHaveLength(4);
    released.resolve(result());
    await expect(Promise.all(logins)).resolves.toHaveLength(12);
    await expect(logIn()).resolves.toBeUndefined();
  });

  test('connections to one LDAP provider are available to other addresses while one address uses its whole share', async () => {
    configure(provider('one'));
    response = async () => result({ subject: '1' });
    const held = await Promise.all(Array.from({ length: 4 }, () => find()));
    const waiting = find();
    (await find({ source: '192.0.2.2' })).close();
    expect(hosts()).toHaveLength(5);
    for (const candidate of held) candidate.close();
    (await waiting).close();
  });

  test('connections to one LDAP provider keep their slots from the lookup until the login is rejected', async () => {
    configure(provider('one'));
    response = async () => result({ subject: '1' });
    const candidates = await Promise.all(Array.from({ length: 4 }, () => find()));
    const waiting = find();
    expect(hosts()).toHaveLength(4);
    // The login is rejected without a call of `authenticate`.
    candidates[0]?.close();
    (await waiting).close();
    expect(hosts()).toHaveLength(5);
    for (const candidate of candidates) candidate.close();
    const again = await Promise.all(Array.from({ length: 4 }, () => find()));
    expect(hosts()).toHaveLength(9);
    for (const candidate of again) candidate.close();
  });
});
