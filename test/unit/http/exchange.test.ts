import { expect, test } from '@jest/globals';
import type { Request, Response } from 'express';
import { once } from 'node:events';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { Exchange } from '../../../src/http/exchange.ts';
import { createLogger } from '../../../src/runtime/logger.ts';
import { readBody } from '../../../src/runtime/promises.ts';

test('a connection is closed when a request that is pipelined behind a watch is rejected', async () => {
  const refused = Promise.withResolvers<Exchange>();
  const server = http.createServer((req, res) => {
    const exchange = new Exchange(req as Request, res as Response, createLogger({ silent: true }));
    if (req.url === '/watch') res.write('event');
    // Node.js sets `req.socket` to null when reading fails.
    else void readBody(req, 1).catch(() => refused.resolve(exchange));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => undefined).resume();
  const closed = once(client, 'close');
  client.write('GET /watch HTTP/1.1\r\nHost: a\r\n\r\nPOST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nlong');
  try {
    const exchange = await refused.promise;
    expect(exchange.req.socket).toBeNull();
    exchange.cut();
    await closed;
  } finally {
    client.destroy();
    server.close();
  }
});
