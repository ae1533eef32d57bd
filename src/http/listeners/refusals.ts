/**
 * Refuses requests that Node does not complete or does not pass to the request handler: malformed or slow HTTP/1.1
 * requests, plain HTTP on the TLS port, and CONNECT.
 */
import http from 'node:http';
import type { Http2ServerResponse } from 'node:http2';
import type { Socket } from 'node:net';
import { randomUUID } from 'node:crypto';
import { Duplex } from 'node:stream';
import { badRequest, headersTooLarge, methodNotAllowed, timeout, type StatusError } from '../../runtime/errors.ts';
import { currentResponse } from './current-response.ts';
import type { oauthErrorSchema } from '../meta-schemas.ts';
import { usesOAuthErrors } from '../response/write-error.ts';
import type { TypeOf } from '../schema.ts';

/** Milliseconds for the client to read the response before the connection is cut. */
const linger = 2_000;
/** Maximum bytes of a malformed request that are searched for the method and the path. */
const maxRequestLine = 512;

/** Writes an error response directly to the socket. `path` is '' if it is unknown. */
function writeRawError(socket: Duplex, status: number, problem: StatusError, path = ''): void {
  const content = usesOAuthErrors(path)
    ? ({ error: 'invalid_request', error_description: problem.message } satisfies TypeOf<typeof oauthErrorSchema>)
    : { ...problem.toStatus(), code: status };
  const body = `${JSON.stringify(content)}\n`;
  const headers = {
    'Audit-Id': randomUUID(),
    'Cache-Control': 'no-cache, private',
    'X-Content-Type-Options': 'nosniff',
    ...problem.headers,
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  };
  // Node has detached the socket and removed its own error listener.
  socket.on('error', () => undefined);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${http.STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${body}`);
  const cut = setTimeout(() => socket.destroy(), linger);
  socket.once('close', () => clearTimeout(cut));
}

/** Returns the path in the last packet, if the packet starts with a request. */
const pathOf = ({ rawPacket }: { readonly rawPacket?: Buffer }): string | undefined =>
  /^[A-Z]+ (\/[^ ?]*)/.exec(rawPacket?.toString('latin1', 0, maxRequestLine) ?? '')?.[1];

/** Refuses an HTTP/1.1 request that is malformed, too large or too slow (the event `clientError`). */
export function refuseRequest(error: Error & { code?: string; rawPacket?: Buffer }, socket: Duplex): void {
  // The error response must not be written into the middle of another response.
  if (error.code === 'ECONNRESET' || !socket.writable || currentResponse(socket)?.headersSent === true)
    socket.destroy();
  else if (error.code === 'HPE_HEADER_OVERFLOW') writeRawError(socket, 431, headersTooLarge());
  else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT')
    writeRawError(socket, 408, timeout('the request did not arrive in time'));
  else writeRawError(socket, 400, badRequest('the request is not well-formed HTTP'), pathOf(error));
}

/**
 * Ends a connection without TLS. A plain HTTP request gets a response, as in Go: Node has closed the TLS socket, but
 * not yet the TCP socket.
 */
export function refuseHandshake(
  error: Error & { code?: string },
  socket: Socket & { readonly _parent?: Socket },
): void {
  const { _parent: plain } = socket;
  if (error.code === 'ERR_SSL_HTTP_REQUEST' && plain?.writable === true)
    writeRawError(plain, 400, badRequest('Client sent an HTTP request to an HTTPS server: use https://'));
  socket.destroy();
}

/** Refuses CONNECT: this server is not a forward proxy. */
export function refuseTunnel(_req: unknown, peer: Duplex | Http2ServerResponse): void {
  if (peer instanceof Duplex) writeRawError(peer, 405, methodNotAllowed(['GET', 'HEAD', 'POST']));
  else
    peer
      .on('error', () => undefined)
      .writeHead(405)
      .end();
}
