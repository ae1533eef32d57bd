import { afterEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import http from 'node:http';
import http2, { type ClientHttp2Session, type Http2Server } from 'node:http2';
import { connect, type AddressInfo } from 'node:net';
import type { Route } from '../../../../src/http/route.ts';
import { StreamedBody } from '../../../../src/http/response/streamed-body.ts';
import { doing, face } from '../../../labs/http.ts';

let server: Http2Server | http.Server;
let client: ClientHttp2Session | undefined;
afterEach(() => {
  client?.destroy();
  server.close();
});

const handlers: readonly (readonly [string, Route['handler']])[] = [
  [
    'that fails after its first bytes',
    (_req, res) => {
      res.write('{"items":[');
      throw new Error('the rest cannot be read');
    },
  ],
  [
    'whose deadline passes after its first bytes',
    async (_req, res, { signal }) => {
      res.write('{"items":[');
      await once(signal, 'abort');
      signal.throwIfAborted();
    },
  ],
  [
    'that is cut off because its reader is too slow',
    (_req, res) => {
      const body = new StreamedBody(res);
      res.write('{"items":[');
      body.cut();
    },
  ],
];

describe.each(handlers)('a response over HTTP/2 %s', (_, handler) => {
  test('a truncated response over HTTP/2 ends with an error, so that clients do not consider it complete', async () => {
    const { app } = face({ routes: [doing(handler)] });
    server = http2.createServer(app as never).listen(0, '127.0.0.1');
    await once(server, 'listening');
    client = http2.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const stream = client.request({ ':path': '/kapis/version?timeout=50ms' });
    // curl and Node.js treat a stream reset with NO_ERROR as the end of a body. Node.js does the same for CANCEL.
    const error = once(stream.resume(), 'error');
    await once(stream, 'close').catch(() => undefined);
    expect(stream.rstCode).toBe(http2.constants.NGHTTP2_INTERNAL_ERROR);
    await expect(error).resolves.toHaveLength(1);
  });
});

// A client treats the end of the connection as the end of a body without a length.
test.each(handlers)('the connection of a response over HTTP/1.0 %s is reset', async (_, handler) => {
  const { app } = face({ routes: [doing(handler)] });
  server = http.createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').resume();
  socket.write('GET /kapis/version?timeout=50ms HTTP/1.0\r\n\r\n');
  await expect(once(socket, 'close')).rejects.toMatchObject({ code: 'ECONNRESET' });
});
