import type { Response } from 'express';
import type { ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

/** Returns the stream of an HTTP/2 response; undefined over HTTP/1.1. */
export const http2StreamOf = (res: Response): ServerHttp2Stream | undefined =>
  (res as Response & { readonly stream?: ServerHttp2Stream }).stream;

/** Resets the connection now. `resetAndDestroy` alone would wait until the client has read the pending data. */
function reset(socket: Socket): void {
  socket.resetAndDestroy();
  socket.destroy();
}

/** Milliseconds for the client to read the rest of a response that has ended. */
const linger = 2_000;

/** Cuts a response that has ended if its client does not read the rest in time, because unread data holds memory. */
export function cutIfUnread(res: Response): void {
  const cut = setTimeout(() => cutOff(res), linger);
  res.once('close', () => clearTimeout(cut));
}

/** Ends an HTTP/1.1 or HTTP/1.0 connection. */
export function cutConnection(httpVersion: string, socket: Socket): void {
  if (httpVersion === '1.0' && !(socket instanceof TLSSocket)) reset(socket);
  else socket.destroy();
}

/**
 * Ends an incomplete response in a way that the client can detect:
 *
 * - HTTP/1.1: the connection ends before the body does.
 * - HTTP/1.0: the connection is reset, because its end may be the end of the body. TLS needs no reset: without
 *   close_notify, the end is an error.
 * - HTTP/2: the stream is reset with INTERNAL_ERROR. curl and Node treat NO_ERROR, which `destroy` sends without an
 *   error, as the end of the body. Node treats CANCEL the same way.
 */
export function cutOff(res: Response): void {
  const stream = http2StreamOf(res);
  if (stream !== undefined) return void stream.destroy(new Error('the response is incomplete'));
  // A pipelined response must not cut the previous response.
  if (res.socket === null) res.once('socket', (socket: Socket) => socket.destroy());
  else if (res.req.httpVersion === '1.0') cutConnection(res.req.httpVersion, res.socket);
  res.destroy();
}
