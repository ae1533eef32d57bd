/** Connections to broken and malicious LDAP servers. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import net, { type AddressInfo, type Socket } from 'node:net';
import { openConnection } from '../../src/accounts/providers/ldap-connection.ts';
import { ber, done, integer, text } from '../fakes/ber.ts';

// Message IDs of the client start at 2.
const bound = done(2, 0x61);
const entry = (id: number, dn: string): Buffer => ber(0x30, integer(id), ber(0x64, text(dn), ber(0x30)));

let server: net.Server;
let response: (socket: Socket, requestId: number) => void;
let sent = 0;
beforeAll(async () => {
  server = net.createServer((socket) => {
    let requests = 0;
    socket.on('error', () => undefined);
    socket.on('data', () => response(socket, (requests += 1)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => void server.close());

const sendEndlessly = (socket: Socket, chunk: Buffer): void => {
  const write = (): void => {
    while (!socket.destroyed && sent < 100e6) {
      sent += chunk.length;
      if (!socket.write(chunk)) return void socket.once('drain', write);
    }
  };
  write();
};

const search = async (): Promise<number> => {
  sent = 0;
  const url = `ldap://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const settings = { url, startTLS: false, caCertificate: undefined, timeout: 5_000 };
  const connection = await openConnection(settings);
  const { searchEntries } = await connection.run(async (client) => {
    await client.bind('cn=a', 'b');
    return await client.search('dc=a', { scope: 'sub', filter: '(uid=a)' });
  });
  connection.close();
  return searchEntries.length;
};

describe('the LDAP client', () => {
  test('the LDAP client accepts a search response with as many entries as a login can require', async () => {
    const dn = `cn=${'a'.repeat(4_000)}`;
    response = (socket, requestId) => {
      if (requestId === 1) socket.write(bound);
      else socket.write(Buffer.concat([...Array.from({ length: 201 }, () => entry(3, dn)), done(3, 0x65)]));
    };
    expect(await search()).toBe(201);
  });

  // evidence: ldap-huge-message
  test('the LDAP client stops reading at a message that announces gigabytes', async () => {
    response = (socket) => {
      socket.write(Buffer.from([0x30, 0x84, 0x7f, 0xff, 0xff, 0xff]));
      sendEndlessly(socket, Buffer.alloc(65_536));
    };
    await expect(search()).rejects.toThrow('more than');
    // Sockets buffer some data in addition to the data that the client has read.
    expect(sent).toBeLessThan(50e6);
  });

  // evidence: ldap-endless-response
  test.each([
    ['entries', entry(3, '')],
    ['unsolicited responses', done(0, 0x78)],
    ['responses to unknown requests', done(9, 0x65)],
  ])('the LDAP client stops reading an endless sequence of %s', async (_, message) => {
    const chunk = Buffer.concat(Array.from({ length: 20_000 }, () => message));
    response = (socket, requestId) => {
      if (requestId === 1) socket.write(bound);
      else sendEndlessly(socket, chunk);
    };
    await expect(search()).rejects.toThrow('more than');
  });
});
