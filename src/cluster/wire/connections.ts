/** Connections to one server: as many as there are requests at a time, up to a maximum, kept for later ones. */
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTLS, type ConnectionOptions, createSecureContext } from 'node:tls';
import { UpstreamConnection, Passing, type ResponseFlow, type Keeper, type Landing, type Sent } from './connection.ts';
import type { TLSOptions } from '../client/access.ts';

/** Where kube-apiserver is, and how it is known. */
export interface Address {
  readonly url: URL;
  /** Without the brackets of an IPv6 address. */
  readonly hostname: string;
  /** What stands before every path: '' or, behind some proxies, a path. */
  readonly prefix: string;
  /** Replaced when the CA or the client certificate was rotated. */
  readonly tls: ConnectionOptions;
}

/** Made once: each connection would have a secure context of its own, of 30 KB. */
export const connectionOptions = ({ ca, cert, key, ...checks }: TLSOptions): ConnectionOptions => ({
  ...checks,
  secureContext: createSecureContext({ ca, cert, key }),
});

/** `server`: a URL without a slash at the end. */
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

const stopped = 'this server stops';

export class Connections implements Keeper {
  readonly #address: Address;
  readonly #isSecure: boolean;
  /** Options of the open connections. */
  #tls: ConnectionOptions;
  readonly #max: number;
  readonly #all = new Set<UpstreamConnection>();
  /** The last is the one that was used last: who is not needed grows old. */
  readonly #free: UpstreamConnection[] = [];
  /** Those for which there is none. */
  readonly #waiting = new Set<Passing>();
  #session: Buffer | undefined;
  #isClosed = false;

  constructor(address: Address, max: number) {
    this.#max = max;
    this.#address = address;
    this.#tls = address.tls;
    this.#isSecure = address.url.protocol === 'https:';
  }

  send(request: Sent): ResponseFlow {
    if (this.#isClosed) throw new Error(stopped);
    if (this.#tls !== this.#address.tls) this.#retireAll();
    const passing = new Passing(request, this);
    const connection = this.#kept() ?? (this.#all.size < this.#max ? this.#opened() : undefined);
    if (connection === undefined) this.#waiting.add(passing);
    else connection.send(passing);
    return passing;
  }

  close(): void {
    this.#isClosed = true;
    for (const passing of this.#waiting) passing.request.handler.onError(new Error(stopped), false);
    this.#waiting.clear();
    for (const connection of this.#all) connection.destroy();
  }

  /** kube-apiserver knows an open connection, and a TLS session that is resumed, by the client certificate of its first handshake. */
  #retireAll(): void {
    this.#tls = this.#address.tls;
    this.#session = undefined;
    for (const connection of this.#all) connection.retire();
  }

  onFree(connection: UpstreamConnection): void {
    const next = this.#next();
    if (next === undefined) this.#free.push(connection);
    else connection.send(next);
  }

  onClose(connection: UpstreamConnection): void {
    this.#all.delete(connection);
    const at = this.#free.indexOf(connection);
    if (at >= 0) this.#free.splice(at, 1);
    // Those whose requests are sent again have others in their place already.
    const next = this.#all.size < this.#max ? this.#next() : undefined;
    if (next !== undefined) this.#opened().send(next);
  }

  onAbort(passing: Passing): void {
    this.#waiting.delete(passing);
  }

  onStale(passing: Passing): void {
    if (this.#isClosed) passing.request.handler.onError(new Error(stopped), false);
    else this.#opened().send(passing);
  }

  /** One that ends is among them until its socket says so. */
  #kept(): UpstreamConnection | undefined {
    let connection = this.#free.pop();
    while (connection?.isOver === true) connection = this.#free.pop();
    return connection;
  }

  #next(): Passing | undefined {
    const [next] = this.#waiting;
    if (next !== undefined) this.#waiting.delete(next);
    return next;
  }

  #opened(): UpstreamConnection {
    const connection = new UpstreamConnection(
      (onread) => this.#open(onread),
      this.#isSecure ? 'secureConnect' : 'connect',
      this,
    );
    this.#all.add(connection);
    return connection;
  }

  #open(onread: Landing): Socket {
    const { url, hostname: host } = this.#address;
    const port = url.port === '' ? (this.#isSecure ? 443 : 80) : Number(url.port);
    const options = { ...keepAlive, host, port, onread };
    if (!this.#isSecure) return connect(options);
    const tls = this.#tls;
    const socket = connectTLS({
      ...options,
      // By which servers for many clusters tell them apart; Node says none of its own accord, and RFC 6066 section 3 no address.
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...tls,
      ALPNProtocols: ['http/1.1'],
      ...(this.#session === undefined ? {} : { session: this.#session }),
    });
    // Of the next handshake half is saved.
    socket.on('session', (session) => {
      if (tls === this.#tls) this.#session = session;
    });
    return socket;
  }
}
