import { describe, expect, test } from '@jest/globals';
import { configuration } from '../../fakes/configuration.ts';
import { createAuthority } from '../../../hack/cluster/pki.ts';

const base = { name: 'corp', type: 'LDAP' };
const search = { userSearch: { base: 'ou=people,dc=example' } };
const ldap = (changes: object = {}): object => ({
  ...base,
  ldap: { url: 'ldaps://ldap.example', ...search, ...changes },
});

const parse = (...identityProviders: object[]): unknown[] =>
  configuration({ authentication: { identityProviders } }).authentication.identityProviders;
const problem = (...providers: object[]): string => {
  try {
    parse(...providers);
    return 'accepted';
  } catch (error) {
    return (error as Error).message;
  }
};

describe('an LDAP directory', () => {
  test('needs its URL and where people are; all else has defaults', () => {
    expect(parse(ldap())).toEqual([
      {
        ...base,
        mapping: 'lookup',
        ldap: {
          url: 'ldaps://ldap.example',
          startTLS: false,
          timeout: 5_000,
          userSearch: {
            base: 'ou=people,dc=example',
            filter: '(uid={username})',
            attributes: { subject: 'entryUUID', username: 'uid', email: 'mail', displayName: 'cn' },
          },
        },
      },
    ]);
    expect(parse({ ...ldap({ groupSearch: { base: 'ou=groups' } }), mapping: 'auto' })).toMatchObject([
      { mapping: 'auto', ldap: { groupSearch: { base: 'ou=groups', filter: '(member={dn})', attribute: 'cn' } } },
    ]);
  });

  test.each<[string, object]>([
    ['plain on this machine', { url: 'ldap://127.0.0.1:3389' }],
    ['plain on this machine, by IPv6', { url: 'ldap://[::1]' }],
    ['with StartTLS', { url: 'ldap://ldap.example', startTLS: true }],
    ['with an account', { bindDN: 'cn=a', bindPasswordRef: { name: 'a', key: 'b' } }],
    [
      'of Active Directory',
      { userSearch: { base: 'dc=a', filter: '(&(objectClass=user)(sAMAccountName={username}))' } },
    ],
    ['by an extensible match', { groupSearch: { base: 'dc=a', filter: '(member:1.2.840.113556.1.4.1941:={dn})' } }],
  ])('is accepted %s', (_, changes) => {
    expect(problem(ldap(changes))).toBe('accepted');
  });

  test.each<[string, object, string]>([
    ['readable for the network', { url: 'ldap://ldap.example' }, 'ldap.url: must be ldaps://'],
    ['readable for the network, in capitals', { url: 'LDAP://ldap.example' }, 'ldap.url: must be ldaps://'],
    ['with TLS in TLS, in capitals', { url: 'LDAPS://ldap.example', startTLS: true }, 'ldap.startTLS'],
    ['of another scheme', { url: 'https://ldap.example' }, 'ldap.url'],
    ['with a search in its URL', { url: 'ldaps://ldap.example/dc=a' }, 'ldap.url'],
    ['with a password in its URL', { url: 'ldaps://a:b@ldap.example' }, 'ldap.url'],
    ['with TLS in TLS', { startTLS: true }, 'ldap.startTLS'],
    ['with a DN without password', { bindDN: 'cn=a' }, 'must have both'],
    ['with a password without DN', { bindPasswordRef: { name: 'a', key: 'b' } }, 'must have both'],
    ['with a CA that is none', { caCertificate: 'PEM' }, 'ldap.caCertificate'],
    ['without the name in its filter', { userSearch: { base: 'a', filter: '(uid=erin)' } }, '={username}'],
    ['with the name in the place of a filter', { userSearch: { base: 'a', filter: '({username})' } }, '={username}'],
    ['with a filter that does not end', { userSearch: { base: 'a', filter: '(&(uid={username})' } }, 'in parentheses'],
    ['with two filters', { userSearch: { base: 'a', filter: '(uid={username})(a=b)' } }, 'in parentheses'],
    ['with a filter that is none', { userSearch: { base: 'a', filter: 'uid={username}' } }, 'in parentheses'],
    ['with no attribute', { userSearch: { base: 'a', attributes: { subject: 'a)(b' } } }, 'name of an attribute'],
    ['that waits for ever', { timeout: '10m' }, 'ldap.timeout'],
    ['with an unknown key', { tls: false }, 'ldap.tls'],
  ])('is refused %s', (_, changes, message) => {
    expect(problem(ldap(changes))).toContain(message);
  });

  test('may have a CA of its own', async () => {
    const authority = await createAuthority('directory-ca');
    expect(problem(ldap({ caCertificate: authority.certificate }))).toBe('accepted');
    const leaf = await authority.issue({ commonName: 'ldap.example', server: ['ldap.example'] });
    expect(problem(ldap({ caCertificate: leaf.certificate }))).toContain('of a CA');
  });
});

const openID = (changes: object = {}): object => ({
  name: 'sso',
  type: 'OIDC',
  oidc: {
    issuer: 'https://sso.example/realms/one',
    clientID: 'platform',
    clientSecretRef: { name: 'a', key: 'b' },
    ...changes,
  },
});

describe('an OpenID provider', () => {
  test('needs its issuer and what the platform is there; all else has defaults', () => {
    expect(parse(openID())).toMatchObject([
      {
        mapping: 'lookup',
        oidc: {
          scopes: ['openid', 'profile', 'email'],
          claims: { username: 'preferred_username', email: 'email', displayName: 'name' },
        },
      },
    ]);
  });

  test.each<[string, object, string]>([
    ['over plain HTTP', { issuer: 'http://sso.example' }, 'oidc.issuer'],
    ['with a query in its issuer', { issuer: 'https://sso.example?a' }, 'oidc.issuer'],
    ['without a secret', { clientSecretRef: undefined }, 'oidc.clientSecretRef'],
    ['without the scope openid', { scopes: ['profile'] }, 'must have "openid"'],
    ['with two scopes in one', { scopes: ['openid profile'] }, 'oidc.scopes[0]'],
    ['with a claim without a name', { claims: { groups: '' } }, 'oidc.claims.groups'],
    ['with a subject of choice', { claims: { subject: 'email' } }, 'oidc.claims.subject'],
  ])('is refused %s', (_, changes, message) => {
    expect(problem(openID(changes))).toContain(message);
  });
});

describe('a provider', () => {
  test.each(['system', 'platform', 'Corp', 'a:b', '', '-a', 'x'.repeat(64)])('is not called %j', (name) => {
    expect(problem({ ...ldap(), name })).toMatch(/identityProviders\[0\][^.]*\.name: /);
  });

  test('is there once, and of a type that is served', () => {
    expect(problem(ldap(), ldap())).toContain('repeats the name "corp"');
    expect(problem({ ...ldap(), type: 'SAML' })).toContain('identityProviders[0] (corp).type: must be LDAP or OIDC');
    expect(problem({ ...ldap(), type: 'OIDC' })).toContain('identityProviders[0] (corp).oidc: is missing');
    expect(problem({ ...ldap(), mapping: 'mixed' })).toContain('mapping');
  });
});
