/**
 * WebSockets (RFC 6455). A handshake goes through the filters like any request, and is refused by an ordinary answer, with which its
 * connection ends; who serves it accepts it. Whose page it is that asks does not matter: no credential here is one that a browser adds by
 * itself.
 */
import type { Request, Response } from 'express';
import { createHash } from 'node:crypto';
import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { isWebSocketRequest, subprotocolOf } from '../../auth/authenticators/web-socket-request.ts';
import { badRequest } from '../../runtime/errors.ts';
import type { Face } from './face.ts';
import { ClientFrames } from './web-socket-frames.ts';

/** RFC 6455 section 1.3. */
const guid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const version = '13';
/** 16 bytes in base64. */
const goodKey = /^[A-Za-z0-9+/]{21}[AQgw]==$/;
/** For the rest of the answer, and for the client's own close, in milliseconds. */
const linger = 2_000;
/** Bytes that wait for a client that sends pings and does not read. */
const mostWaiting = 16 * 1024;

/** A property of the responses to handshakes. */
const mark = Symbol('handshake');

/** Is this the answer to a handshake? */
export const isHandshake = (res: object): boolean => mark in res;

interface Upgrading {
  shouldUpgradeCallback: (req: IncomingMessage) => boolean;
  on(event: 'upgrade', listener: (req: IncomingMessage, socket: Duplex, head: Buffer) => void): unknown;
}

/** As it is with requests that were sent one behind the other. */
function isAnswering(socket: Socket): boolean {
  const { _httpMessage: current } = socket as Socket & { _httpMessage?: object | null };
  return Boolean(current);
}

/** kubectl's older way to exec, attach and port-forward, which only kube-apiserver speaks. */
const isSPDYRequest = ({ httpVersion, headers }: IncomingMessage): boolean =>
  headers.upgrade?.toLowerCase() === 'spdy/3.1' &&
  /(?:^|,)\s*upgrade\s*(?:,|$)/i.test(headers.connection ?? '') &&
  httpVersion === '1.1';

/** Behind a body nobody would know where the new protocol begins. */
const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;

/**
 * Every other upgrade is not heeded, as RFC 9110 section 7.8 allows: the request is answered as if it had not asked. So is one on a
 * connection that has another answer under way.
 */
export function serveHandshakes(server: object, handle: Face): void {
  const upgrading = server as Upgrading;
  upgrading.shouldUpgradeCallback = (req) =>
    (isWebSocketRequest(req) || isSPDYRequest(req)) && !hasBody(req) && !isAnswering(req.socket);
  upgrading.on('upgrade', (req, socket, head) => {
    // From here on nobody else looks after the connection.
    socket.on('error', () => undefined);
    if (head.length > 0) socket.unshift(head);
    const res = Object.assign(new ServerResponse(req), { [mark]: true, shouldKeepAlive: false });
    res.assignSocket(socket as Socket);
    // Node does that for responses whose connection is not upgraded.
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
    throw badRequest(`a WebSocket needs the header Sec-WebSocket-Version: ${version}`, {
      headers: { 'Sec-WebSocket-Version': version },
    });
  if (!goodKey.test(headers['sec-websocket-key'] ?? ''))
    throw badRequest('a WebSocket needs a header Sec-WebSocket-Key of 16 bytes in base64');
}

/** From here on the connection carries frames. What the client sends is not listened to, but for its wish to end. */
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
      // Our own close was the last that is said; the client's is its answer.
      if (!res.writableEnded && (isLast || socket.writableLength < mostWaiting)) socket.write(frame);
      if (!isLast) continue;
      res.end();
      socket.end();
    }
  });
  // Without a close of its own, unless it has answered ours.
  socket.once('end', () => (res.writableEnded ? socket.end() : res.destroy()));
}
