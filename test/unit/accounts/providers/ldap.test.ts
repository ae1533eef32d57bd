/** Logins at an LDAP server in the test process. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { lookUp } from '../../../../src/accounts/providers/ldap.ts';
import { CredentialsRefused } from '../../../../src/accounts/providers/provider.ts';
import type { LDAPSettings } from '../../../../src/config/identity-providers.ts';
import { LDAPServer, type LDAPEntry, type LDAPRequest } from '../../../fakes/ldap-server.ts';

const service = { dn: 'cn=service,dc=example', password: 'of the service' };
const dn = 'uid=erin,dc=example';
const typed = 'typed at the login';
const attributes = { subject: 'entryUUID', username: 'uid', email: 'mail', displayName: 'cn' };
const erin = { entryUUID: ['7'], uid: ['erin'], mail: ['erin@example.org'], cn: ['Erin'] };
const ref = { name: 'directory', key: 'password' };

let server: LDAPServer;
let url: string;
/** Subjects of the names that were looked up. */
const found: (string | undefined)[] = [];

beforeEach(async () => {
  server = new LDAPServer();
  url = `ldap://127.0.0.1:${await server.listen()}`;
  server.passwords.set(service.dn, service.password).set(dn, typed);
  server.entries.set('(uid=erin)', [{ dn, attributes: erin }]);
  found.length = 0;
});
afterEach(() => server.close());

interface Login {
  readonly login?: string;
  readonly password?: string;
  readonly bindPassword?: string | undefined;
}

/** Looks up the name, and sends the password unless the entry is rejected. */
const attemptLogin = async (changes: Login = {}, settings: Partial<LDAPSettings> = {}) => {
  const { login, password, bindPassword } = {
    login: 'erin',
    password: typed,
    bindPassword: service.password,
    ...changes,
  };
  const result = await lookUp(
    {
      settings: {
        url,
        startTLS: false,
        bindDN: service.dn,
        bindPasswordRef: ref,
        userSearch: { base: 'dc=example', filter: '(uid={username})', attributes },
        timeout: 5_000,
        ...settings,
      },
      bindPassword,
    },
    login,
  );
  found.push(result.subject);
  try {
    return await result.authenticate(password);
  } finally {
    result.close();
  }
};
const groupSearch = { base: 'ou=groups', filter: '(member={dn})', attribute: 'cn' };
const asGroups = (...names: readonly string[][]): LDAPEntry[] =>
  names.map((cn, at) => ({ dn: `cn=${at},ou=groups`, attributes: { cn } }));
const withEntry = (changed: LDAPEntry['attributes']): void => {
  server.entries.set('(uid=erin)', [{ dn, attributes: { ...erin, ...changed } }]);
};

test('an LDAP login binds as the service account, searches, binds as the entry, and reads the groups as the service account', async () => {
  server.entries.set('(member=uid=erin,dc=example)', asGroups(['engineers'], ['staff']));
  const person = { subject: '7', username: 'erin', email: 'erin@example.org', displayName: 'Erin' };
  await expect(attemptLogin({}, { groupSearch })).resolves.toEqual({ ...person, groups: ['engineers', 'staff'] });
  const bind = { operation: 'bind', ...service };
  expect(server.requests).toEqual([
    bind,
    {
      operation: 'search',
      base: 'dc=example',
      filter: '(uid=erin)',
      sizeLimit: 2,
      attributes: ['entryuuid', 'uid', 'mail', 'cn'],
    },
    { operation: 'bind', dn, password: typed },
    bind,
    {
      operation: 'search',
      base: 'ou=groups',
      filter: '(member=uid=erin,dc=example)',
      sizeLimit: 201,
      attributes: ['cn'],
    },
  ]);
  expect(found).toEqual(['7']);
});

test('an LDAP login without groupSearch returns no groups, and an LDAP login without bindDN searches anonymously', async () => {
  await expect(attemptLogin({ bindPassword: undefined }, { bindDN: undefined })).resolves.toMatchObject({ groups: [] });
  expect(server.requests.filter(({ operation }) => operation === 'bind')).toEqual([
    { operation: 'bind', dn: '', password: '' },
    { operation: 'bind', dn, password: typed },
    { operation: 'bind', dn: '', password: '' },
  ]);
});

test('an LDAP login without bindDN does not send a configured password', async () => {
  await attemptLogin({ bindPassword: service.password }, { bindDN: undefined });
  expect(server.requests[0]).toEqual({ operation: 'bind', dn: '', password: '' });
});

test('an LDAP login never sends an empty password, which the server would accept (RFC 4513 section 5.1.2)', async () => {
  await expect(attemptLogin({ password: '' })).resolves.toBeUndefined();
  expect(server.requests.map((request) => request.operation)).toEqual(['bind', 'search']);
});

test.each([undefined, ''])(
  'an LDAP login sends nothing if the password of bindDN is %j, and the error names the Secret',
  async (password) => {
    await expect(attemptLogin({ bindPassword: password })).rejects.toThrow(
      'the key "password" of the Secret "directory" is missing or empty',
    );
    expect(server.requests).toEqual([]);
  },
);

describe('the entry of an LDAP login', () => {
  test.each<[string, LDAPEntry[]]>([
    ['no entry has the name', []],
    [
      'two entries have the name',
      [
        { dn, attributes: erin },
        { dn: 'uid=other', attributes: erin },
      ],
    ],
    ['the entry has no DN, so that a bind would be anonymous', [{ dn: '', attributes: erin }]],
  ])('the entry of an LDAP login is not found, and the password is not sent, if %s', async (_, entries) => {
    server.entries.set('(uid=erin)', entries);
    await expect(attemptLogin()).resolves.toBeUndefined();
    expect(server.requests.filter((request) => request.operation === 'bind').map((request) => request.dn)).toEqual([
      service.dn,
      service.dn,
    ]);
    expect(found).toEqual([undefined]);
  });

  test.each([
    ['no value', []],
    ['two values', ['7', '8']],
  ])(
    'the entry of an LDAP login is rejected if it has %s of the attribute that identifies it',
    async (_, entryUUID) => {
      withEntry({ entryUUID });
      await expect(attemptLogin()).rejects.toThrow(`the entry ${dn} must have exactly one entryUUID`);
      expect(JSON.stringify(server.requests)).not.toContain(typed);
      expect(found).toEqual([]);
    },
  );

  test.each<[string, LDAPEntry['attributes'], object]>([
    ['no e-mail address', { mail: [] }, { email: null }],
    ['two e-mail addresses', { mail: ['a@example.org', 'b@example.org'] }, { email: 'a@example.org' }],
    ['no names', { uid: [], cn: [] }, { username: undefined, displayName: undefined }],
    ['attributes that are not UTF-8', { cn: [Buffer.from([0x45, 0xff])] }, { displayName: 'E\uFFFD' }],
    ['a username in several spellings', { uid: ['erin', 'e.miller'] }, { username: 'erin' }],
  ])('the entry of an LDAP login is accepted with %s', async (_, changed, expected) => {
    withEntry(changed);
    await expect(attemptLogin()).resolves.toMatchObject(expected);
  });

  test('the entry of an LDAP login is read regardless of the case of its attributes (RFC 4512 section 2.5)', async () => {
    server.entries.set('(uid=erin)', [
      { dn, attributes: { ENTRYUUID: ['7'], Uid: ['erin'], MAIL: ['e@a'], CN: ['E'] } },
    ]);
    await expect(attemptLogin()).resolves.toEqual({
      subject: '7',
      username: 'erin',
      email: 'e@a',
      displayName: 'E',
      groups: [],
    });
  });

  test.each([
    ['objectGUID', '00112233445566778899aabbccddeeff'],
    ['OBJECTGUID', '00112233445566778899aabbccddeeff'],
    ['objectguid', '00112233445566778899aabbccddeeff'],
    // These bytes are also valid UTF-8.
    ['objectGUID', '41424344454647484950515253545556'],
  ])('the entry of an LDAP login is identified by %s in hexadecimal digits: %s', async (subject, bytes) => {
    withEntry({ objectGUID: [Buffer.from(bytes, 'hex')] });
    const userSearch = { base: 'dc=example', filter: '(uid={username})', attributes: { ...attributes, subject } };
    await attemptLogin({}, { userSearch });
    expect(found).toEqual([bytes]);
  });

  test('the entry of an LDAP login is not identified by its DN, which changes when the entry moves', async () => {
    const userSearch = { base: 'dc=example', filter: '(uid={username})', attributes: { ...attributes, subject: 'dn' } };
    await expect(attemptLogin({}, { userSearch })).rejects.toThrow('must have exactly one dn');
  });
});

describe('the groups of an LDAP login', () => {
  test('the groups of an LDAP login are found by the username of the entry, not by the typed name', async () => {
    server.entries.set('(mail=e@example.org)', [{ dn, attributes: erin }]);
    server.entries.set('(memberuid=erin)', asGroups(['engineers']));
    const userSearch = { base: 'dc=example', filter: '(mail={username})', attributes };
    const response = await attemptLogin(
      { login: 'e@example.org' },
      { userSearch, groupSearch: { ...groupSearch, filter: '(memberUid={username})' } },
    );
    expect(response?.groups).toEqual(['engineers']);
  });

  test('the groups of an LDAP login are named by the first value of the attribute, and entries without a value are skipped', async () => {
    server.entries.set('(member=uid=erin,dc=example)', asGroups(['a', 'b'], [], ['c']));
    expect((await attemptLogin({}, { groupSearch }))?.groups).toEqual(['a', 'c']);
  });

  test('the groups of an LDAP login are searched with an empty name if the entry has no username', async () => {
    withEntry({ uid: [] });
    const filter = '(|(member={dn})(memberUid={username}))';
    await attemptLogin({}, { groupSearch: { ...groupSearch, filter } });
    expect(server.requests.at(-1)).toMatchObject({ filter: '(|(member=uid=erin,dc=example)(memberuid=))' });
  });
});

/** Result code `busy` of RFC 4511 section 4.1.9. */
const busy = 51;
const refusals = [19, 48, 49, 53];
const isBindOf =
  (name: string, count = 1) =>
  (request: LDAPRequest): boolean =>
    request.operation === 'bind' &&
    request.dn === name &&
    server.requests.filter((one) => one.operation === 'bind' && one.dn === name).length === count;

describe('an LDAP bind', () => {
  test.each(refusals)('the result code %i of a bind as the LDAP entry is treated as a wrong password', async (code) => {
    server.fault = (request) => (isBindOf(dn)(request) ? code : undefined);
    await expect(attemptLogin()).resolves.toBeUndefined();
  });

  test.each([1, 2, 8, 32, busy, 52, 80])(
    'the result code %i of a bind as the LDAP entry is not treated as a wrong password',
    async (code) => {
      server.fault = (request) => (isBindOf(dn)(request) ? code : undefined);
      await expect(attemptLogin()).rejects.toMatchObject({ code });
    },
  );

  test('a lost connection during a bind as the LDAP entry is not treated as a wrong password', async () => {
    server.fault = (request) => (isBindOf(dn)(request) ? 'close' : undefined);
    await expect(attemptLogin()).rejects.toThrow('Connection closed');
  });

  test.each(refusals)(
    'the result code %i of a bind as bindDN is reported with the name of the Secret',
    async (code) => {
      server.fault = (request) => (isBindOf(service.dn)(request) ? code : undefined);
      const error: unknown = await attemptLogin().catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(CredentialsRefused);
      expect(error).toMatchObject({ cause: { code } });
      const { message } = error as Error;
      expect(message).toContain(`(${code})`);
      expect(message).toContain(
        `the bindDN "${service.dn}" or its password, the key "password" of the Secret "directory"`,
      );
    },
  );

  test.each([busy, 'close'] as const)(
    'the error "%s" of a bind as bindDN is not reported as rejected credentials',
    async (fault) => {
      server.fault = (request) => (isBindOf(service.dn)(request) ? fault : undefined);
      const error: unknown = await attemptLogin().catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(Error);
      expect(error).not.toBeInstanceOf(CredentialsRefused);
    },
  );

  test('a rejected anonymous bind is reported with the advice to set bindDN', async () => {
    server.fault = (request) => (isBindOf('')(request) ? 48 : undefined);
    await expect(attemptLogin({}, { bindDN: undefined, bindPasswordRef: undefined })).rejects.toThrow(
      /^the LDAP server rejects anonymous searches; set bindDN: \w+ \(48\)$/,
    );
  });

  test('the failure of a bind as bindDN after the bind as the LDAP entry does not reveal whether the password was right', async () => {
    server.fault = (request) => (isBindOf(service.dn, 2)(request) ? 49 : undefined);
    await expect(attemptLogin()).rejects.toBeInstanceOf(CredentialsRefused);
  });
});

test.each(['(uid=erin)', '(member=uid=erin,dc=example)'])(
  'the failure of the LDAP search %s is not treated as a wrong password',
  async (filter) => {
    server.fault = (request) => (request.operation === 'search' && request.filter === filter ? busy : undefined);
    await expect(attemptLogin({}, { groupSearch })).rejects.toMatchObject({ code: busy });
  },
);
