// evidence: ldap-connection
import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { InvalidCredentialsError, NoSuchObjectError } from 'ldapts';
import { once } from 'node:events';
import { createAuthority, type Authority, type Pair } from '../../../../hack/cluster/pki.ts';
import {
  fill,
  openConnection,
  resultOf,
  type LDAPConnection,
} from '../../../../src/accounts/providers/ldap-connection.ts';
import { done } from '../../../fakes/ber.ts';
import { LDAPServer } from '../../../fakes/ldap-server.ts';

/** StartTLS request of RFC 4511 section 4.14. */
const startTLSRequest = { operation: 'extended', oid: '1.3.6.1.4.1.1466.20037' };

test.each([
  ['erin', '(uid=erin)'],
  ['*)(uid=*', '(uid=\\2a\\29\\28uid=\\2a)'],
  ['\\2a', '(uid=\\5c2a)'],
  ['a\u0000b', '(uid=a\\00b)'],
  ['{dn}', '(uid={dn})'],
  ['$&$1', '(uid=$&$1)'],
  ['ö', '(uid=ö)'],
])('an LDAP filter contains the name %j as one value (RFC 4515 section 3)', (username, filled) => {
  expect(fill('(uid={username})', { username, dn: 'never' })).toBe(filled);
});

test('an LDAP filter can contain more than one value', () => {
  expect(fill('(|(member={dn})(memberUid={username}))', { dn: 'cn=a (b)', username: 'a' })).toBe(
    '(|(member=cn=a \\28b\\29)(memberUid=a))',
  );
});

test('an LDAP filter keeps placeholders that have no value', () => {
  expect(fill('(&(uid={username})(cn={other}))', { username: 'erin' })).toBe('(&(uid=erin)(cn={other}))');
});

test.each([
  [new InvalidCredentialsError(), 'invalidCredentials (49)'],
  [new NoSuchObjectError(), 'noSuchObject (32)'],
  [new Error('connect ECONNREFUSED'), undefined],
])('the error message of an LDAP error contains the name of its result code: %p', (error, name) => {
  expect(resultOf(error)).toBe(name);
});

describe('a connection to an LDAP server', () => {
  let authority: Authority;
  let certificate: Pair;
  let server: LDAPServer;
  beforeAll(async () => {
    authority = await createAuthority('directory-ca');
    certificate = await authority.issue({ commonName: 'directory', server: ['127.0.0.1', 'localhost'] });
  });
  beforeEach(() => {
    server = new LDAPServer();
    server.passwords.set('cn=a', 'b');
  });
  afterEach(() => server.close());

  type Settings = Parameters<typeof openConnection>[0];
  const open = (settings: Partial<Settings> & Pick<Settings, 'url'>): Promise<LDAPConnection> =>
    openConnection({ startTLS: false, caCertificate: authority.certificate, timeout: 5_000, ...settings });
  const bind = async (settings: Parameters<typeof open>[0]): Promise<void> => {
    const connection = await open(settings);
    await connection.run((client) => client.bind('cn=a', 'b'));
    connection.close();
  };

  test.each([
    ['ldap', '127.0.0.1', false, [{ isSecure: false, serverName: undefined }]],
    ['ldaps', '127.0.0.1', false, [{ isSecure: true, serverName: false }]],
    ['ldaps', 'localhost', false, [{ isSecure: true, serverName: 'localhost' }]],
    [
      'ldap',
      'localhost',
      true,
      [
        { isSecure: false, serverName: undefined },
        { isSecure: true, serverName: 'localhost' },
      ],
    ],
  ])(
    'a connection to the LDAP server at %s://%s with startTLS=%s uses TLS as configured',
    async (scheme, host, startTLS, security) => {
      const port = await server.listen(certificate, scheme === 'ldaps');
      await bind({ url: `${scheme}://${host}:${port}`, startTLS });
      expect(server.security).toEqual(security);
      expect(server.requests.at(-1)).toEqual({ operation: 'bind', dn: 'cn=a', password: 'b' });
      expect(server.sockets).toHaveLength(1);
      expect(server.requests.slice(0, -1)).toEqual(startTLS ? [startTLSRequest] : []);
    },
  );

  test.each([
    ['ldap://127.0.0.77', 389],
    ['ldaps://127.0.0.77', 636],
  ])('a connection to the LDAP server at %s uses port %i by default', async (url, port) => {
    await expect(bind({ url })).rejects.toMatchObject({ code: 'ECONNREFUSED', address: '127.0.0.77', port });
  });

  test('a connection to an LDAP server can use an IPv6 address in brackets', async () => {
    // Port 1 is closed; without IPv6 the connection fails as well.
    await expect(bind({ url: 'ldap://[::1]:1' })).rejects.toMatchObject({ syscall: 'connect', address: '::1' });
  });

  const expectNothingSent = (): void =>
    expect(server.requests.filter((request) => request.operation === 'bind')).toEqual([]);

  describe.each([true, false])('with startTLS=%s', (startTLS) => {
    const start = async (tls: Pair): Promise<string> =>
      `${startTLS ? 'ldap' : 'ldaps'}://127.0.0.1:${await server.listen(tls, !startTLS)}`;

    test.each<[string, () => Promise<Pair>, string]>([
      [
        'another CA',
        async () => (await createAuthority('other')).issue({ commonName: 'directory', server: ['127.0.0.1'] }),
        'unable to verify',
      ],
      [
        'another server',
        () => authority.issue({ commonName: 'directory', server: ['127.0.0.2', 'directory.example'] }),
        'does not match certificate',
      ],
    ])('a connection to an LDAP server over TLS rejects a certificate of %s', async (_, issue, message) => {
      const url = await start(await issue());
      await expect(bind({ url, startTLS })).rejects.toThrow(message);
      expectNothingSent();
    });

    test('a connection to an LDAP server over TLS rejects a certificate of a private CA if no CA is configured', async () => {
      const url = await start(certificate);
      await expect(bind({ url, startTLS, caCertificate: undefined })).rejects.toThrow('unable to verify');
      expectNothingSent();
    });
  });

  test.each<[string, ReturnType<LDAPServer['fault']>, object]>([
    ['refuses TLS', 2, { code: 2 }],
    ['closes the connection', 'close', {}],
  ])('a connection to an LDAP server is not used without TLS when the server %s', async (_, fault, error) => {
    const port = await server.listen(certificate);
    server.fault = () => fault;
    await expect(bind({ url: `ldap://127.0.0.1:${port}`, startTLS: true })).rejects.toMatchObject(error);
    expect(server.requests).toEqual([startTLSRequest]);
  });

  test('a connection to an LDAP server ignores responses received before TLS, which an attacker could have sent', async () => {
    const port = await server.listen(certificate);
    server.passwords.set('cn=a', 'another');
    // The server responds to StartTLS and at once also to a bind that the client has not sent yet.
    server.fault = (_, id) => {
      server.isSilent = true;
      return Buffer.concat([done(id, 0x78), done(2, 0x61), done(3, 0x61)]);
    };
    await expect(bind({ url: `ldap://127.0.0.1:${port}`, startTLS: true, timeout: 100 })).rejects.toThrow(
      'no response within 100 ms',
    );
    expectNothingSent();
  });

  test.each([
    ['a bind', 'ldap', false],
    ['a TLS handshake', 'ldaps', false],
    ['StartTLS', 'ldap', true],
  ])(
    'a connection to an LDAP server fails after the timeout when the server does not respond to %s',
    async (_, scheme, startTLS) => {
      const port = await server.listen();
      server.isSilent = true;
      const login = bind({ url: `${scheme}://127.0.0.1:${port}`, startTLS, timeout: 50 });
      await expect(login).rejects.toMatchObject({
        message: 'no response within 50 ms',
        cause: expect.any(Error) as unknown,
      });
    },
  );

  test('a connection to an LDAP server fails after the timeout when the server does not respond to the TLS handshake after StartTLS', async () => {
    const port = await server.listen();
    server.fault = (_, id) => {
      server.isSilent = true;
      return Buffer.from(done(id, 0x78));
    };
    await expect(bind({ url: `ldap://127.0.0.1:${port}`, startTLS: true, timeout: 50 })).rejects.toThrow(
      'no response within 50 ms',
    );
  });

  test.each(['ldap', 'ldaps'])(
    'a connection to an LDAP server over %s is closed after the last request and after a failed request',
    async (scheme) => {
      const url = `${scheme}://127.0.0.1:${await server.listen(certificate, scheme === 'ldaps')}`;
      await bind({ url });
      server.passwords.set('cn=a', 'another');
      await expect(bind({ url })).rejects.toMatchObject({ code: 49 });
      expect(server.sockets).toHaveLength(2);
      for (const socket of server.sockets) if (!socket.closed) await once(socket, 'close');
    },
  );

  test('a lost connection to an LDAP server is not reopened, since the new connection might not use TLS', async () => {
    const port = await server.listen(certificate, true);
    server.fault = () => 'close';
    const connection = await open({ url: `ldaps://127.0.0.1:${port}` });
    const login = connection.run((client) => client.bind('cn=a', 'b').catch(() => client.bind('cn=a', 'b')));
    await expect(login).rejects.toThrow('the connection was lost');
    expect(server.sockets).toHaveLength(1);
  });
});
