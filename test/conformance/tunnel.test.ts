/** The server opens no tunnels (RFC 9110 section 9.3.6), and CONNECT requests do no harm. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import net from 'node:net';
import { startLab, type Lab } from '../labs/conformance/lab.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await startLab();
});
afterAll(() => lab.stop());

test('the server still serves requests after a CONNECT request whose connection is reset', async () => {
  for (let index = 0; index < 300; index += 1)
    await new Promise<void>((resolve) => {
      const socket = net.connect(lab.ports.http, '127.0.0.1').on('error', () => undefined);
      socket.once('close', () => resolve());
      socket.write('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', () => socket.resetAndDestroy());
    });
  expect((await lab.gateway('/livez')).status).toBe(200);
});
