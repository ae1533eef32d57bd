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

describe('an LDAP identity provider', () => {
  test('an LDAP identity provider requires its URL and a search base, and has defaults for everything else', () => {
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
    ['without TLS on the loopback interface', { url: 'ldap://127.0.0.1:3389' }],
    ['without TLS on the loopback interface (IPv6)', { url: 'ldap://[::1]' }],
    ['with StartTLS', { url: 'ldap://ldap.example', startTLS: true }],
    ['with a service account', { bindDN: 'cn=a', bindPasswordRef: { name: 'a', key: 'b' } }],
    [
      'for Active Directory',
      { userSearch: { base: 'dc=a', filter: '(&(objectClass=user)(sAMAccountName={username}))' } },
    ],
    ['with an extensible match', { groupSearch: { base: 'dc=a', filter: '(member:1.2.840.113556.1.4.1941:={dn})' } }],
  ])('an LDAP identity provider %s is accepted', (_, changes) => {
    expect(problem(ldap(changes))).toBe('accepted');
  });

  test.each<[string, object, string]>([
    ['without TLS over the network', { url: 'ldap://ldap.example' }, 'ldap.url: must be ldaps://'],
    ['without TLS over the network (scheme in capitals)', { url: 'LDAP://ldap.example' }, 'ldap.url: must be ldaps://'],
    ['with StartTLS inside TLS (scheme in capitals)', { url: 'LDAPS://ldap.example', startTLS: true }, 'ldap.startTLS'],
    ['with a URL scheme other than ldap and ldaps', { url: 'https://ldap.example' }, 'ldap.url'],
    ['with a search in its URL', { url: 'ldaps://ldap.example/dc=a' }, 'ldap.url'],
    ['with a password in its URL', { url: 'ldaps://a:b@ldap.example' }, 'ldap.url'],
    ['with StartTLS inside TLS', { startTLS: true }, 'ldap.startTLS'],
    ['with a DN but no password', { bindDN: 'cn=a' }, 'must have both'],
    ['with a password but no DN', { bindPasswordRef: { name: 'a', key: 'b' } }, 'must have both'],
    ['with an invalid CA', { caCertificate: 'PEM' }, 'ldap.caCertificate'],
    ['without {username} in its filter', { userSearch: { base: 'a', filter: '(uid=erin)' } }, '={username}'],
    ['without an attribute name in its filter', { userSearch: { base: 'a', filter: '({username})' } }, '={username}'],
    ['with an unterminated filter', { userSearch: { base: 'a', filter: '(&(uid={username})' } }, 'in parentheses'],
    ['with two filters', { userSearch: { base: 'a', filter: '(uid={username})(a=b)' } }, 'in parentheses'],
    ['with an invalid filter', { userSearch: { base: 'a', filter: 'uid={username}' } }, 'in parentheses'],
    ['with an invalid attribute', { userSearch: { base: 'a', attributes: { subject: 'a)(b' } } }, 'an attribute name'],
    ['with an excessive timeout', { timeout: '10m' }, 'ldap.timeout'],
    ['with an unknown key', { tls: false }, 'ldap.tls'],
  ])('an LDAP identity provider %s is rejected', (_, changes, message) => {
    expect(problem(ldap(changes))).toContain(message);
  });

  test('an LDAP identity provider can have its own CA', async () => {
    const authority = await createAuthority('directory-ca');
    expect(problem(ldap({ caCertificate: authority.certificate }))).toBe('accepted');
    const leaf = await authority.issue({ commonName: 'ldap.example', server: ['ldap.example'] });
    expect(problem(ldap({ caCertificate: leaf.certificate }))).toContain('CA certificate');
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
  test('an OpenID provider requires its issuer and its client, and has defaults for everything else', () => {
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
    ['without the scope openid', { scopes: ['profile'] }, 'must contain "openid"'],
    ['with two scopes in one list item', { scopes: ['openid profile'] }, 'oidc.scopes[0]'],
    ['with a claim without a name', { claims: { groups: '' } }, 'oidc.claims.groups'],
    ['with a configured subject claim', { claims: { subject: 'email' } }, 'oidc.claims.subject'],
  ])('an OpenID provider %s is rejected', (_, changes, message) => {
    expect(problem(openID(changes))).toContain(message);
  });
});

describe('an identity provider', () => {
  test.each(['system', 'platform', 'Corp', 'a:b', '', '-a', 'x'.repeat(64)])(
    'an identity provider cannot have the name %j',
    (name) => {
      expect(problem({ ...ldap(), name })).toMatch(/identityProviders\[0\][^.]*\.name: /);
    },
  );

  test('an identity provider must have a unique name and a supported type', () => {
    expect(problem(ldap(), ldap())).toContain('duplicate name "corp"');
    expect(problem({ ...ldap(), type: 'SAML' })).toContain('identityProviders[0] (corp).type: must be LDAP or OIDC');
    expect(problem({ ...ldap(), type: 'OIDC' })).toContain('identityProviders[0] (corp).oidc: is missing');
    expect(problem({ ...ldap(), mapping: 'mixed' })).toContain('mapping');
  });
});
