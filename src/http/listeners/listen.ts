/**
 * Listeners: plain HTTP/1.1, and TLS with HTTP/2 and HTTP/1.1 on one port. The listeners limit slow and greedy clients.
 */
import http, { type Server, type ServerOptions } from 'node:http';
import http2, {
  constants,
  type Http2SecureServer,
  type Http2ServerResponse,
  type SecureServerOptions,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import net, { type AddressInfo, type Socket } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import type { HttpHandler } from './http-handler.ts';
import { currentResponse } from './current-response.ts';
import { refuseHandshake, refuseRequest, refuseTunnel } from './refusals.ts';
import { serveHandshakes } from './web-socket.ts';
import { cutConnection } from '../response/cut-off.ts';

/** Limits of HTTP/1.1 clients on both listeners, in bytes and milliseconds. */
const http1 = {
  maxHeaderSize: 64 * 1024,
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 75_000,
  connectionsCheckingInterval: 2_000,
  // A filter checks Host instead, so that the error is a Status.
  requireHostHeader: false,
} satisfies ServerOptions;
/**
 * Interval in milliseconds at which idle connections are closed during shutdown. A connection becomes idle when its
 * last response ends.
 */
const idleInterval = 50;
/** Milliseconds between two checks for HTTP/2 sessions without streams. Node never closes such sessions. */
const streamlessInterval = 15_000;
const maxConnections = 20_000;
const maxStreams = 1_000;

/**
 * Makes the server close the connection after the response, unless a filter sends 100 Continue. Without 100 Continue,
 * the next bytes may be the body.
 */
const expectsContinue =
  (handle: HttpHandler): HttpHandler =>
  (req, res) => {
    if (res instanceof http.ServerResponse) res.shouldKeepAlive = false;
    handle(req, res);
  };

export interface Listener {
  /** The bound port, even if port 0 was requested. */
  readonly port: number;
  readonly sockets: { readonly open: ReadonlySet<Socket>; readonly sentBytes: number };
  /** Sets the certificate of new connections. Open connections keep the previous certificate. */
  setCertificate(certificate: Certificate): void;
  /** Announces in the next response on each HTTP/1.1 connection that the connection ends. */
  drain(): void;
  /**
   * Stops accepting connections and lets requests in flight end. Closes connections without a request after `idle`
   * milliseconds, and all other connections after `grace` milliseconds.
   */
  close(times: CloseTimes): Promise<void>;
}

interface CloseTimes {
  readonly grace: number;
  readonly idle: number;
}

export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

interface Address {
  readonly host: string;
  readonly port: number;
}

/** Open sockets. Unlike the server's own count, they include upgraded connections. */
class Sockets {
  readonly open: Set<Socket> = new Set();
  /** Bytes that were sent over sockets that are now closed. */
  #sent = 0;

  constructor(server: Server | Http2SecureServer) {
    server.on('connection', (socket: Socket) => {
      this.open.add(socket);
      socket.once('close', () => {
        this.open.delete(socket);
        this.#sent += socket.bytesWritten;
      });
    });
  }

  /** Bytes sent over all sockets, including TLS overhead. */
  get sentBytes(): number {
    let sum = this.#sent;
    for (const { bytesWritten } of this.open) sum += bytesWritten;
    return sum;
  }
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

/** Announces in each further HTTP/1.1 response that the connection ends. */
function drain(server: Server | Http2SecureServer): void {
  server.prependListener('request', (_req: unknown, res: http.ServerResponse | Http2ServerResponse) => {
    if (res instanceof http.ServerResponse) res.shouldKeepAlive = false;
  });
}

/**
 * Stops accepting connections. Calls `closeUnused`, which closes connections without a request, after `idle`
 * milliseconds, and then repeatedly. Returns when all connections are closed.
 */
async function closed(server: Server | Http2SecureServer, idle: number, closeUnused: () => void): Promise<void> {
  // The servers' own `close` would close idle connections at once.
  const over = new Promise<void>((resolve) => net.Server.prototype.close.call(server, () => resolve()));
  let interval: NodeJS.Timeout | undefined;
  const start = setTimeout(() => {
    interval = setInterval(closeUnused, idleInterval);
  }, idle);
  await over;
  clearTimeout(start);
  clearInterval(interval);
  // Stops the checks for slow requests that Node runs for each server.
  server.close();
}

/** Milliseconds for clients to receive the resets of their streams before the connections end. */
const resetTime = 500;

/**
 * Closes the session when it has had no streams for as long as an idle HTTP/1.1 connection is kept open. Pings and
 * settings would otherwise keep the session open. Returns the open streams.
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

export async function listenHTTP(handle: HttpHandler, address: Address): Promise<Listener> {
  const server = http.createServer(http1, handle);
  const sockets = new Sockets(server);
  server.maxConnections = maxConnections;
  server.on('clientError', refuseRequest);
  server.on('connect', refuseTunnel);
  // RFC 9110 section 10.1.1: servers are allowed to ignore unknown expectations.
  server.on('checkExpectation', handle);
  server.on('checkContinue', expectsContinue(handle));
  serveHandshakes(server, handle);
  const port = await bind(server, address);
  return {
    port,
    sockets,
    setCertificate: () => undefined,
    drain: () => drain(server),
    close: async ({ grace, idle }) => {
      const timer = setTimeout(() => {
        for (const socket of sockets.open) cutConnection(currentResponse(socket)?.req.httpVersion ?? '', socket);
      }, grace);
      await closed(server, idle, () => server.closeIdleConnections());
      clearTimeout(timer);
    },
  };
}

/**
 * Listens for TLS. `requestCertificate` requests a client certificate, which authentication verifies for each request.
 */
export async function listenTLS(
  handle: HttpHandler,
  address: Address,
  certificate: Certificate,
  requestCertificate: boolean,
): Promise<Listener> {
  const context = (current: Certificate): SecureContextOptions => ({
    ...current,
    minVersion: 'TLSv1.2',
    // A resumed session would carry a client certificate that was verified with earlier CAs.
    ...(requestCertificate ? { secureOptions: noTicket } : {}),
  });
  const options: SecureServerOptions & typeof http1 = {
    ...context(certificate),
    ...http1,
    handshakeTimeout: http1.headersTimeout,
    allowHTTP1: true,
    // node:http has the same default. Pieces of a response must not wait until earlier pieces are acknowledged.
    noDelay: true,
    // With `true`, Node drops headers whose values start or end with white space. Impersonation of ` bob` must be
    // refused, not ignored.
    strictFieldWhitespaceValidation: false,
    settings: { maxConcurrentStreams: maxStreams, maxHeaderListSize: http1.maxHeaderSize },
    ...(requestCertificate ? { requestCert: true, rejectUnauthorized: false } : {}),
  };
  const server = http2.createSecureServer(options);
  const sessions = new Map<ServerHttp2Session, ReadonlySet<ServerHttp2Stream>>();
  const sockets = new Sockets(server);
  const secure = new WeakSet<object>();
  server.maxConnections = maxConnections;
  server.on('clientError', (error: Error, socket: Socket) =>
    secure.has(socket) ? refuseRequest(error, socket) : refuseHandshake(error, socket),
  );
  server.on('session', (session) => {
    sessions.set(session, closeStreamless(session));
    session.once('close', () => sessions.delete(session));
    session.on('error', () => session.destroy());
  });
  const closeSessions = (): void => {
    for (const session of sessions.keys()) session.close();
  };
  server.on('secureConnection', (socket: Socket) => secure.add(socket));
  // An error of a stream that the client reset must not crash the process.
  server.on('request', (_req, res: Http2ServerResponse) => res.on('error', () => undefined));
  server.on('request', handle);
  server.on('checkExpectation', handle);
  server.on('checkContinue', expectsContinue(handle));
  server.on('connect', refuseTunnel);
  serveHandshakes(server, handle);
  const port = await bind(server, address);
  return {
    port,
    sockets,
    // setSecureContext does not keep the options of the previous context.
    setCertificate: (next) => server.setSecureContext(context(next)),
    drain: () => drain(server),
    close: async ({ grace, idle }) => {
      closeSessions();
      const cut = setTimeout(() => {
        // Resets each stream: `session.destroy` sends only the first reset, and clients would treat the other streams
        // as complete (http/response/cut-off.ts). The session ends with its last stream, after the resets were sent.
        for (const streams of sessions.values())
          for (const stream of streams) if (!stream.writableFinished) stream.close(constants.NGHTTP2_INTERNAL_ERROR);
      }, grace);
      const end = setTimeout(() => {
        for (const socket of sockets.open) socket.destroy();
      }, grace + resetTime);
      await closed(server, idle, () => {
        closeSessions();
        (server as unknown as Server).closeIdleConnections();
      });
      clearTimeout(cut);
      clearTimeout(end);
    },
  };
}

/**
 * SSL_OP_NO_TICKET. With TLS 1.3, OpenSSL then sends stateful tickets, which cannot be resumed because there is no
 * session cache.
 */
const noTicket = 0x4000;
