/** A directory that is broken, or nobody's friend. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import net, { type AddressInfo, type Socket } from 'node:net';
import { openConnection } from '../../src/accounts/providers/ldap-connection.ts';
import { ber, done, integer, text } from '../fakes/ber.ts';

/** The client counts its messages from 2 on. */
const bound = done(2, 0x61);
const entry = (id: number, dn: string): Buffer => ber(0x30, integer(id), ber(0x64, text(dn), ber(0x30)));

let server: net.Server;
let answer: (socket: Socket, ask: number) => void;
let sent = 0;
beforeAll(async () => {
  server = net.createServer((socket) => {
    let asked = 0;
    socket.on('error', () => undefined);
    socket.on('data', () => answer(socket, (asked += 1)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => void server.close());

const pour = (socket: Socket, chunk: Buffer): void => {
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

describe('of what a directory says', () => {
  test('as much is read as one login can need', async () => {
    const dn = `cn=${'a'.repeat(4_000)}`;
    answer = (socket, ask) => {
      if (ask === 1) socket.write(bound);
      else socket.write(Buffer.concat([...Array.from({ length: 201 }, () => entry(3, dn)), done(3, 0x65)]));
    };
    expect(await search()).toBe(201);
  });

  // evidence: ldap-huge-message
  test('a message that announces gigabytes is not waited for', async () => {
    answer = (socket) => {
      socket.write(Buffer.from([0x30, 0x84, 0x7f, 0xff, 0xff, 0xff]));
      pour(socket, Buffer.alloc(65_536));
    };
    await expect(search()).rejects.toThrow('more than');
    // What the sockets hold is beyond what was read.
    expect(sent).toBeLessThan(50e6);
  });

  // evidence: ldap-endless-response
  test.each([
    ['entries', entry(3, '')],
    ['answers that nobody asked for', done(0, 0x78)],
    ['answers to what was not asked', done(9, 0x65)],
  ])('%s without end are not read to their end', async (_, message) => {
    const chunk = Buffer.concat(Array.from({ length: 20_000 }, () => message));
    answer = (socket, ask) => {
      if (ask === 1) socket.write(bound);
      else pour(socket, chunk);
    };
    await expect(search()).rejects.toThrow('more than');
  });
});
