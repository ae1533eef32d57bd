/** Pool of persistent connections to one server: one per concurrent request, up to a maximum. */
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTLS, type ConnectionOptions, createSecureContext } from 'node:tls';
import {
  UpstreamConnection,
  PendingRequest,
  type ResponseFlow,
  type ConnectionOwner,
  type ReadOptions,
  type SentRequest,
} from './connection.ts';
import { withoutSpan } from '../../runtime/tracing.ts';
import type { TLSOptions } from '../client/access.ts';

/** Address and TLS options of kube-apiserver. */
export interface Address {
  readonly url: URL;
  /** Host name or address, without the brackets of IPv6. */
  readonly hostname: string;
  /** Prefix of every path: '' or, behind some proxies, a path. */
  readonly prefix: string;
  /** TLS options, replaced when the CA or the client certificate was rotated. */
  readonly tls: ConnectionOptions;
}

/** Creates the secure context once, because each connection would otherwise create its own context of 30 KB. */
export const connectionOptions = ({ ca, cert, key, ...checks }: TLSOptions): ConnectionOptions => ({
  ...checks,
  secureContext: createSecureContext({ ca, cert, key }),
});

/** Returns the address of a server, given its URL without a trailing slash. */
export function addressOf(server: string, tls: TLSOptions): Address {
  const url = new URL(server);
  return {
    url,
    hostname: url.hostname.replace(/^\[|\]$/g, ''),
    prefix: url.pathname === '/' ? '' : url.pathname,
    tls: connectionOptions(tls),
  };
}

const keepAlive = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 15_000 };

const shuttingDown = 'the server is shutting down';

export class Connections implements ConnectionOwner {
  readonly #address: Address;
  readonly #isSecure: boolean;
  /** Options of the open connections. */
  #tls: ConnectionOptions;
  readonly #max: number;
  readonly #all = new Set<UpstreamConnection>();
  /** Idle connections, most recently used last, so that unneeded ones reach their idle timeout. */
  readonly #idle: UpstreamConnection[] = [];
  /** Requests that wait for a connection. */
  readonly #waiting = new Set<PendingRequest>();
  #session: Buffer | undefined;
  #isClosed = false;

  constructor(address: Address, max: number) {
    this.#max = max;
    this.#address = address;
    this.#tls = address.tls;
    this.#isSecure = address.url.protocol === 'https:';
  }

  /** Number of open connections by state. */
  get counts(): { readonly busy: number; readonly idle: number } {
    return { busy: this.#all.size - this.#idle.length, idle: this.#idle.length };
  }

  send(request: SentRequest): ResponseFlow {
    if (this.#isClosed) throw new Error(shuttingDown);
    if (this.#tls !== this.#address.tls) this.#retireAll();
    const pending = new PendingRequest(request, this);
    const connection = this.#takeIdle() ?? (this.#all.size < this.#max ? this.#add() : undefined);
    if (connection === undefined) this.#waiting.add(pending);
    else connection.send(pending);
    return pending;
  }

  close(): void {
    this.#isClosed = true;
    for (const pending of this.#waiting) pending.request.handler.onError(new Error(shuttingDown), false);
    this.#waiting.clear();
    for (const connection of this.#all) connection.destroy();
  }

  /**
   * Replaces all connections: open connections and resumed TLS sessions keep the client certificate of their first
   * handshake.
   */
  #retireAll(): void {
    this.#tls = this.#address.tls;
    this.#session = undefined;
    for (const connection of this.#all) connection.retire();
  }

  onFree(connection: UpstreamConnection): void {
    const next = this.#next();
    if (next === undefined) this.#idle.push(connection);
    else connection.send(next);
  }

  onClose(connection: UpstreamConnection): void {
    this.#all.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
    // A connection whose request is retried has already been replaced.
    const next = this.#all.size < this.#max ? this.#next() : undefined;
    if (next !== undefined) this.#add().send(next);
  }

  onAbort(pending: PendingRequest): void {
    this.#waiting.delete(pending);
  }

  onStale(pending: PendingRequest): void {
    if (this.#isClosed) pending.request.handler.onError(new Error(shuttingDown), false);
    else this.#add().send(pending);
  }

  /**
   * Returns an idle connection. Skips closed connections, which remain in the list until their socket emits `close`.
   */
  #takeIdle(): UpstreamConnection | undefined {
    let connection = this.#idle.pop();
    while (connection?.isClosed === true) connection = this.#idle.pop();
    return connection;
  }

  #next(): PendingRequest | undefined {
    const [next] = this.#waiting;
    if (next !== undefined) this.#waiting.delete(next);
    return next;
  }

  #add(): UpstreamConnection {
    // The connection is not part of this request's span, because it also serves later requests.
    const connection = withoutSpan(
      () => new UpstreamConnection((onread) => this.#open(onread), this.#isSecure ? 'secureConnect' : 'connect', this),
    );
    this.#all.add(connection);
    return connection;
  }

  #open(onread: ReadOptions): Socket {
    const { url, hostname: host } = this.#address;
    const port = url.port === '' ? (this.#isSecure ? 443 : 80) : Number(url.port);
    const options = { ...keepAlive, host, port, onread };
    if (!this.#isSecure) return connect(options);
    const tls = this.#tls;
    const socket = connectTLS({
      ...options,
      // Servers for several clusters need SNI, which Node does not send by default. RFC 6066 section 3 forbids IP
      // addresses in SNI.
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...tls,
      ALPNProtocols: ['http/1.1'],
      ...(this.#session === undefined ? {} : { session: this.#session }),
    });
    // Resuming the session saves half of the next handshake.
    socket.on('session', (session) => {
      if (tls === this.#tls) this.#session = session;
    });
    return socket;
  }
}
