/**
 * WebSockets (RFC 6455). A handshake passes the filters like any other request. A refused handshake gets an ordinary
 * response, after which the connection is closed. The handler accepts the handshake. Origin is not checked, because
 * browsers never add the credentials that a handshake needs by themselves.
 */
import type { Request, Response } from 'express';
import { createHash } from 'node:crypto';
import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { isWebSocketRequest, subprotocolOf } from '../../auth/authenticators/web-socket-request.ts';
import { badRequest } from '../../runtime/errors.ts';
import { currentResponse } from './current-response.ts';
import type { HttpHandler } from './http-handler.ts';
import { ClientFrames } from './web-socket-frames.ts';

/** RFC 6455 section 1.3. */
const guid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const version = '13';
/** 16 bytes in base64. */
const validKey = /^[A-Za-z0-9+/]{21}[AQgw]==$/;
/** Milliseconds for the client to read the rest of the response and to close the connection. */
const linger = 2_000;
/** Maximum bytes of pongs that wait for a client that does not read. */
const maxWaiting = 16 * 1024;

/** Property that marks the responses to handshakes. */
const mark = Symbol('handshake');

/** Returns true for the response to a handshake. */
export const isHandshake = (res: object): boolean => mark in res;

interface Upgrading {
  shouldUpgradeCallback: (req: IncomingMessage) => boolean;
  on(event: 'upgrade', listener: (req: IncomingMessage, socket: Duplex, head: Buffer) => void): unknown;
}

/** Returns true for the older protocol of kubectl exec, attach and port-forward, which only kube-apiserver supports. */
const isSPDYRequest = ({ httpVersion, headers }: IncomingMessage): boolean =>
  headers.upgrade?.toLowerCase() === 'spdy/3.1' &&
  /(?:^|,)\s*upgrade\s*(?:,|$)/i.test(headers.connection ?? '') &&
  httpVersion === '1.1';

/** Returns true if the request has a body. After a body, it would be unclear where the new protocol starts. */
const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;

/**
 * Passes handshakes to `handle`. The `Upgrade` header of any other request is ignored, as RFC 9110 section 7.8 allows.
 * The header is also ignored on a connection that is still writing another response.
 */
export function serveHandshakes(server: object, handle: HttpHandler): void {
  const upgrading = server as Upgrading;
  upgrading.shouldUpgradeCallback = (req) =>
    (isWebSocketRequest(req) || isSPDYRequest(req)) && !hasBody(req) && currentResponse(req.socket) === undefined;
  upgrading.on('upgrade', (req, socket, head) => {
    // Node has detached the connection and removed its own error listener.
    socket.on('error', () => undefined);
    if (head.length > 0) socket.unshift(head);
    const res = Object.assign(new ServerResponse(req), { [mark]: true, shouldKeepAlive: false });
    res.assignSocket(socket as Socket);
    // Node forwards this event only for connections that are not upgraded.
    socket.on('drain', () => res.emit('drain'));
    res.once('finish', () => {
      const cut = setTimeout(() => socket.destroy(), linger);
      socket.once('close', () => clearTimeout(cut));
      if (res.statusCode !== 101) socket.resume().end();
    });
    handle(req, res);
  });
}

/** Throws 400 for a handshake that cannot be accepted. */
export function checkHandshake({ headers }: Pick<IncomingMessage, 'headers'>): void {
  if (headers['sec-websocket-version'] !== version)
    throw badRequest(`a WebSocket requires the header Sec-WebSocket-Version: ${version}`, {
      headers: { 'Sec-WebSocket-Version': version },
    });
  if (!validKey.test(headers['sec-websocket-key'] ?? ''))
    throw badRequest('a WebSocket requires the header Sec-WebSocket-Key with 16 bytes in base64');
}

/**
 * Accepts the handshake: the connection then carries WebSocket frames. Only the client's pings and closes have an
 * effect.
 */
export function accept(req: Request, res: Response): void {
  const socket = res.socket as Socket;
  const protocol = subprotocolOf(req);
  const key = `${req.headers['sec-websocket-key'] ?? ''}${guid}`;
  res.statusCode = 101;
  res.setHeader('Connection', 'Upgrade');
  res.setHeader('Upgrade', 'websocket');
  res.setHeader('Sec-WebSocket-Accept', createHash('sha1').update(key).digest('base64'));
  if (protocol !== undefined) res.setHeader('Sec-WebSocket-Protocol', protocol);
  res.flushHeaders();
  const frames = new ClientFrames();
  socket.on('data', (chunk: Buffer) => {
    for (const { frame, isLast } of frames.replies(chunk)) {
      // No frame follows the close frame of this server. A close frame of the client is the reply to the close frame of
      // this server.
      if (!res.writableEnded && (isLast || socket.writableLength < maxWaiting)) socket.write(frame);
      if (!isLast) continue;
      res.end();
      socket.end();
    }
  });
  // If the client ends the connection without a close frame, the response is aborted, unless this server has already
  // ended the response.
  socket.once('end', () => (res.writableEnded ? socket.end() : res.destroy()));
}
