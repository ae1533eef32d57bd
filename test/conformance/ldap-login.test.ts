/** Requests of a login to an LDAP server. */
import { expect, test } from '@jest/globals';
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { lookUp } from '../../src/accounts/providers/ldap.ts';
import { ber, done, integer, text } from '../fakes/ber.ts';

const bind = 0x60;
const search = 0x63;
const invalidCredentials = 49;
const dn = 'uid=erin,dc=example';

/** Offset of the value of a BER element. */
const valueAt = (message: Buffer, at: number): number => {
  const length = message[at + 1] ?? 0;
  return at + 2 + (length < 0x80 ? 0 : length & 0x7f);
};

// evidence: ldap-login-request-count
test('the server sends the same LDAP requests for a failed login whether zero, one or several entries match', async () => {
  const requests: { operation: number; message: string }[] = [];
  const server = net.createServer((socket) =>
    socket.on('data', (message) => {
      const idAt = valueAt(message, valueAt(message, 0));
      const id = message[idAt] ?? 0;
      const operation = message[idAt + 1] ?? 0;
      const names = message.toString('latin1');
      requests.push({ operation, message: names });
      if (operation === bind) return socket.write(done(id, 0x61, names.includes(dn) ? invalidCredentials : 0));
      const attribute = ber(0x30, text('entryUUID'), ber(0x31, text('1')));
      const entry = ber(0x30, integer(id), ber(0x64, text(dn), ber(0x30, attribute)));
      // More entries match than the two requested: the LDAP server sends two entries and sizeLimitExceeded.
      if (names.includes('twin')) return socket.write(Buffer.concat([entry, entry, done(id, 0x65, 4)]));
      return socket.write(Buffer.concat([...(names.includes('erin') ? [entry] : []), done(id, 0x65)]));
    }),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const logIn = async (login: string): Promise<typeof requests> => {
    requests.length = 0;
    const url = `ldap://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const attributes = { subject: 'entryUUID', username: 'uid', email: 'mail', displayName: 'cn' };
    const userSearch = { base: 'dc=example', filter: '(uid={username})', attributes };
    const settings = { url, startTLS: false, bindDN: 'cn=service', userSearch, timeout: 5_000 };
    const found = await lookUp({ settings, bindPassword: 'of the service' }, login);
    expect(await found.authenticate('typed')).toBeUndefined();
    found.close();
    return [...requests];
  };
  const known = await logIn('erin');
  const unknown = await logIn('nobody');
  const ambiguous = await logIn('twin');
  server.close();
  expect(known.map(({ operation }) => operation)).toEqual([bind, search, bind]);
  expect(unknown.map(({ operation }) => operation)).toEqual([bind, search, bind]);
  expect(ambiguous.map(({ operation }) => operation)).toEqual([bind, search, bind]);
  expect(known.filter(({ message }) => message.includes('typed'))).toHaveLength(1);
  expect([...unknown, ...ambiguous].filter(({ message }) => message.includes('typed'))).toEqual([]);
});
