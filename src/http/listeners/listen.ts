/** The listeners: plain HTTP/1.1, and TLS with HTTP/2 and HTTP/1.1 on one port. Limits against slow and greedy clients are here. */
import http, { type Server, type ServerOptions } from 'node:http';
import http2, {
  constants,
  type Http2SecureServer,
  type Http2ServerResponse,
  type SecureServerOptions,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { randomUUID } from 'node:crypto';
import { Duplex } from 'node:stream';
import type { SecureContextOptions } from 'node:tls';
import { badRequest, headersTooLarge, methodNotAllowed, timeout, type StatusError } from '../../runtime/errors.ts';
import type { Face } from './face.ts';
import type { oauthErrorSchema } from '../meta-schemas.ts';
import type { TypeOf } from '../schema.ts';
import { serveHandshakes } from './web-socket.ts';
import { cutConnection } from '../response/cut-off.ts';
import { speaksOAuth } from '../response/write-error.ts';

/** What both listeners allow a client of HTTP/1.1; times in milliseconds. */
const http1 = {
  maxHeaderSize: 64 * 1024,
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 75_000,
  connectionsCheckingInterval: 2_000,
  // A request without one is answered by a Status of ours.
  requireHostHeader: false,
} satisfies ServerOptions;
/** While a listener closes: a connection is kept alive when the answer that was under way on it is over. */
const idleInterval = 50;
/** Of connections of HTTP/2, which Node leaves open for as long as their clients like. */
const streamlessInterval = 15_000;
const maxConnections = 20_000;
const maxStreams = 1_000;
/** A moment to read the answer; whoever goes on sending, or never reads, is cut off. */
const linger = 2_000;
/** Bytes in which the method and the path are sought of what is no request. */
const longestLine = 512;

/** What never became a request is answered by hand; `path` as far as it is known. */
function answer(socket: Duplex, status: number, problem: StatusError, path = ''): void {
  const told = speaksOAuth(path)
    ? ({ error: 'invalid_request', error_description: problem.message } satisfies TypeOf<typeof oauthErrorSchema>)
    : { ...problem.toStatus(), code: status };
  const body = `${JSON.stringify(told)}\n`;
  const headers = {
    'Audit-Id': randomUUID(),
    'Cache-Control': 'no-cache, private',
    'X-Content-Type-Options': 'nosniff',
    ...problem.headers,
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  };
  // Node has let go of it, with its listener.
  socket.on('error', () => undefined);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${http.STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${body}`);
  const cut = setTimeout(() => socket.destroy(), linger);
  socket.once('close', () => clearTimeout(cut));
}

/** Of what the parser was given last, where that begins with a request. */
const pathOf = ({ rawPacket }: { readonly rawPacket?: Buffer }): string | undefined =>
  /^[A-Z]+ (\/[^ ?]*)/.exec(rawPacket?.toString('latin1', 0, longestLine) ?? '')?.[1];

/** Returns the response of node:http that the connection carries now. */
function responseOn(socket: Duplex): http.ServerResponse | undefined {
  const { _httpMessage: response } = socket as Duplex & { _httpMessage?: http.ServerResponse | null };
  return response ?? undefined;
}

/** Node's parser refused it. */
function refuse(error: Error & { code?: string; rawPacket?: Buffer }, socket: Duplex): void {
  // An answer that is under way must not get another one in its middle.
  if (error.code === 'ECONNRESET' || !socket.writable || responseOn(socket)?.headersSent === true) socket.destroy();
  else if (error.code === 'HPE_HEADER_OVERFLOW') answer(socket, 431, headersTooLarge());
  else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT')
    answer(socket, 408, timeout('the request did not arrive in time'));
  else answer(socket, 400, badRequest('the request is not well-formed HTTP'), pathOf(error));
}

/** CONNECT: nobody tunnels through here. */
function refuseTunnel(_req: unknown, peer: Duplex | Http2ServerResponse): void {
  if (peer instanceof Duplex) answer(peer, 405, methodNotAllowed(['GET', 'HEAD', 'POST']));
  else
    peer
      .on('error', () => undefined)
      .writeHead(405)
      .end();
}

/** Unless the client is told to go on, nobody knows whether what it sends next is the body. */
const expectsContinue =
  (handle: Face): Face =>
  (req, res) => {
    if (res instanceof http.ServerResponse) res.shouldKeepAlive = false;
    handle(req, res);
  };

export interface Listener {
  /** The port that was bound; another than asked for where that was 0. */
  readonly port: number;
  /** New certificates for new connections; those that are open go on with the old ones. */
  setCertificate(certificate: Certificate): void;
  /** Accepts no more, lets requests in flight end, and closes what is left after `grace` milliseconds. */
  close(grace: number): Promise<void>;
}

export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

interface Address {
  readonly host: string;
  readonly port: number;
}

/** Those that are open; a server does not count one that was upgraded among its connections. */
function socketsOf(server: Server | Http2SecureServer): ReadonlySet<Socket> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return sockets;
}

async function bind(server: Server | Http2SecureServer, { host, port }: Address): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return (server.address() as AddressInfo).port;
}

/** Time for clients to receive the resets of their streams before the connections end, in milliseconds. */
const resetTime = 500;

/**
 * Closes a session without requests, which pings and settings would keep open, and one on which nothing was ever sent. Returns the
 * streams that are open.
 */
function closeStreamless(session: ServerHttp2Session): ReadonlySet<ServerHttp2Stream> {
  const streams = new Set<ServerHttp2Stream>();
  let since = performance.now();
  session.on('stream', (stream) => {
    streams.add(stream);
    stream.once('close', () => {
      streams.delete(stream);
      since = performance.now();
    });
  });
  const timer = setInterval(() => {
    if (streams.size > 0 || performance.now() - since < http1.keepAliveTimeout) return;
    if (session.closed) session.destroy();
    else session.close();
  }, streamlessInterval);
  session.once('close', () => clearInterval(timer));
  return streams;
}

export async function listenHTTP(handle: Face, address: Address): Promise<Listener> {
  const server = http.createServer(http1, handle);
  const sockets = socketsOf(server);
  server.maxConnections = maxConnections;
  server.on('clientError', refuse);
  server.on('connect', refuseTunnel);
  // RFC 9110 section 10.1.1: an expectation that is not known may be ignored.
  server.on('checkExpectation', handle);
  server.on('checkContinue', expectsContinue(handle));
  serveHandshakes(server, handle);
  const port = await bind(server, address);
  return {
    port,
    setCertificate: () => undefined,
    close: async (grace) => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      const idle = setInterval(() => server.closeIdleConnections(), idleInterval);
      const timer = setTimeout(() => {
        for (const socket of sockets) cutConnection(responseOn(socket)?.req.httpVersion ?? '', socket);
      }, grace);
      await closed;
      clearInterval(idle);
      clearTimeout(timer);
    },
  };
}

/** `requestCertificate`: ask clients for one; whether it means anything is decided for each request. */
export async function listenTLS(
  handle: Face,
  address: Address,
  certificate: Certificate,
  requestCertificate: boolean,
): Promise<Listener> {
  const context = (current: Certificate): SecureContextOptions => ({
    ...current,
    minVersion: 'TLSv1.2',
    // A resumed session would bring a client certificate that was verified by the rules of its day.
    ...(requestCertificate ? { secureOptions: noTicket } : {}),
  });
  const options: SecureServerOptions & typeof http1 = {
    ...context(certificate),
    ...http1,
    handshakeTimeout: http1.headersTimeout,
    allowHTTP1: true,
    // As node:http has it: the pieces of an answer must not wait for each other's acknowledgement.
    noDelay: true,
    // Whoever asks to be ` bob` is to be refused: a value with white space at its ends Node would leave out.
    strictFieldWhitespaceValidation: false,
    settings: { maxConcurrentStreams: maxStreams, maxHeaderListSize: http1.maxHeaderSize },
    ...(requestCertificate ? { requestCert: true, rejectUnauthorized: false } : {}),
  };
  const server = http2.createSecureServer(options);
  const sessions = new Map<ServerHttp2Session, ReadonlySet<ServerHttp2Stream>>();
  const sockets = socketsOf(server);
  const secure = new WeakSet<object>();
  server.maxConnections = maxConnections;
  // What never was a TLS connection cannot be answered.
  server.on('clientError', (error: Error, socket: Socket) =>
    secure.has(socket) ? refuse(error, socket) : socket.destroy(),
  );
  server.on('session', (session) => {
    sessions.set(session, closeStreamless(session));
    session.once('close', () => sessions.delete(session));
    session.on('error', () => session.destroy());
  });
  server.on('secureConnection', (socket: Socket) => secure.add(socket));
  // A client that reset its stream must not end the process.
  server.on('request', (_req, res: Http2ServerResponse) => res.on('error', () => undefined));
  server.on('request', handle);
  server.on('checkExpectation', handle);
  server.on('checkContinue', expectsContinue(handle));
  server.on('connect', refuseTunnel);
  serveHandshakes(server, handle);
  const port = await bind(server, address);
  return {
    port,
    // It forgets the options of the context before.
    setCertificate: (next) => server.setSecureContext(context(next)),
    close: async (grace) => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const session of sessions.keys()) session.close();
      const idle = setInterval(() => (server as unknown as Partial<Server>).closeIdleConnections?.(), idleInterval);
      const cut = setTimeout(() => {
        // Each stream by itself: `session.destroy` sends the first reset only, and clients take the other streams for complete
        // (http/response/cut-off.ts). The session ends with its last stream, when the resets are sent.
        for (const streams of sessions.values())
          for (const stream of streams) if (!stream.writableFinished) stream.close(constants.NGHTTP2_INTERNAL_ERROR);
      }, grace);
      const end = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, grace + resetTime);
      await closed;
      clearInterval(idle);
      clearTimeout(cut);
      clearTimeout(end);
    },
  };
}

/** SSL_OP_NO_TICKET; with TLS 1.3 OpenSSL then sends stateful tickets, which no cache here keeps. */
const noTicket = 0x4000;
