import type { Response } from 'express';
import type { ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

/** The stream of a response over HTTP/2. */
export const http2StreamOf = (res: Response): ServerHttp2Stream | undefined =>
  (res as Response & { readonly stream?: ServerHttp2Stream }).stream;

/** Resets the connection now: `resetAndDestroy` alone waits for the reader of what is written already. */
function reset(socket: Socket): void {
  socket.resetAndDestroy();
  socket.destroy();
}

/** Milliseconds for the client to read the rest of a response that has ended. */
const linger = 2_000;

/** Cuts a response that is about to end, if its client does not read the rest: it would keep what it holds for as long as it likes. */
export function cutIfUnread(res: Response): void {
  const cut = setTimeout(() => cutOff(res), linger);
  res.once('close', () => clearTimeout(cut));
}

/** Ends a connection of HTTP/1.1 or HTTP/1.0. */
export function cutConnection(httpVersion: string, socket: Socket): void {
  if (httpVersion === '1.0' && !(socket instanceof TLSSocket)) reset(socket);
  else socket.destroy();
}

/**
 * Ends a response that is incomplete, so that its client knows. Over HTTP/1.1 the connection ends before the body does. Over HTTP/1.0
 * the end of the connection may be the end of the body, so the connection is reset; TLS needs no reset, because the end without
 * close_notify is an error. Over HTTP/2 the stream is reset with INTERNAL_ERROR: curl and Node take a reset with NO_ERROR for the end of
 * the body, which is what `destroy` without an error sends, and Node takes CANCEL for it too.
 */
export function cutOff(res: Response): void {
  const stream = http2StreamOf(res);
  if (stream !== undefined) return void stream.destroy(new Error('the response is incomplete'));
  // A pipelined response does not cut the one before it.
  if (res.socket === null) res.once('socket', (socket: Socket) => socket.destroy());
  else if (res.req.httpVersion === '1.0') cutConnection(res.req.httpVersion, res.socket);
  res.destroy();
}
