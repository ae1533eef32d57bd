import { expect, test } from '@jest/globals';
import type { Request, Response } from 'express';
import { once } from 'node:events';
import http from 'node:http';
import { duplexPair, type Duplex } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { accept, isHandshake, serveHandshakes } from '../../../../src/http/listeners/web-socket.ts';
import { clientFrame, framesIn, handshake } from '../../../fakes/web-socket.ts';

type Seen = (res: Response) => void;

/** Returns the client end of an accepted connection. This client reads only when the test reads. */
function connected(seen: Seen): Duplex {
  const server = http.createServer();
  serveHandshakes(server, (req, res) => {
    accept(req as Request, res as Response);
    seen(res as Response);
  });
  const [client, served] = duplexPair();
  server.emit('connection', served);
  const headers = Object.entries(handshake).map(([name, value]) => `${name}: ${String(value)}\r\n`);
  client.write(`GET / HTTP/1.1\r\nHost: a\r\n${headers.join('')}\r\n`);
  return client;
}

/** Reads all available data without waiting. */
async function readAvailable(client: Duplex): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for (let quiet = 0; quiet < 10; quiet += 1) {
    const chunk = client.read() as Buffer | null;
    if (chunk !== null) {
      chunks.push(chunk);
      quiet = 0;
    }
    await turn();
  }
  const all = Buffer.concat(chunks);
  return all.subarray(all.indexOf('\r\n\r\n') + 4);
}

test('a WebSocket client that sends pings without reading causes a bounded number of pongs', async () => {
  const client = connected(() => undefined);
  const pings = 100_000;
  for (let at = 0; at < pings; at += 1_000) {
    client.write(Buffer.concat(Array.from({ length: 1_000 }, () => clientFrame(0x89, Buffer.alloc(100)))));
    await turn();
  }
  const pongs = framesIn(await readAvailable(client));
  expect(pongs.length).toBeGreaterThan(100);
  expect(pongs.length).toBeLessThan(pings / 20);
  client.destroy();
});

test('no message is sent to a WebSocket client after a close frame', async () => {
  let res: Response | undefined;
  const client = connected((one) => {
    res = one;
  });
  client.write(Buffer.concat([clientFrame(0x88, Buffer.alloc(0)), clientFrame(0x89, Buffer.alloc(0))]));
  expect(framesIn(await readAvailable(client)).map(({ opcode }) => opcode)).toEqual([8]);
  expect(res?.writableEnded).toBe(true);
  client.end();
});

test('the response to a WebSocket client ends when the client disconnects without a close frame', async () => {
  let closed: Promise<unknown> | undefined;
  const client = connected((res) => {
    closed = once(res, 'close');
  });
  await readAvailable(client);
  client.end();
  await expect(closed).resolves.toEqual([]);
});

test('a request for an upgrade to a protocol other than WebSocket is served without the upgrade', async () => {
  const server = http.createServer((_, res) => res.end(String(isHandshake(res))));
  serveHandshakes(server, () => undefined);
  const [client, served] = duplexPair();
  server.emit('connection', served);
  client.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n');
  expect((await readAvailable(client)).toString()).toBe('false');
});
