/** LDAP server in the process of the test. The server supports simple binds, searches, StartTLS, and faults. */
import { BerReader, BindRequest, ExtendedRequest, PresenceFilter, SearchRequest } from 'ldapts';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { createSecureContext, TLSSocket } from 'node:tls';
import type { Pair } from '../../hack/cluster/pki.ts';
import { ber, done, integer, text } from './ber.ts';

export interface LDAPEntry {
  readonly dn: string;
  readonly attributes?: Readonly<Record<string, readonly (string | Buffer)[]>>;
}

interface Bind {
  readonly operation: 'bind';
  readonly dn: string;
  readonly password: string;
}

interface Search {
  readonly operation: 'search';
  readonly base: string;
  /** Filter of RFC 4515 with attribute names in lower case. */
  readonly filter: string;
  readonly sizeLimit: number;
  /** Attributes by lower-case name. */
  readonly attributes: readonly string[];
}

export type LDAPRequest = Bind | Search | { readonly operation: 'extended'; readonly oid: string };

/** Result code for success (RFC 4511 section 4.1.9). */
const success = 0;
const invalidCredentials = 49;
const responseTags = { bind: 0x61, search: 0x65, extended: 0x78 };

export class LDAPServer {
  /** Passwords by DN. */
  readonly passwords = new Map<string, string>();
  /** Entries that a search returns, by the filter of the search. */
  readonly entries = new Map<string, readonly LDAPEntry[]>();
  readonly requests: LDAPRequest[] = [];
  /** For each request: whether it was sent over TLS, and the server name (SNI) that the client sent. */
  readonly security: { readonly isSecure: boolean; readonly serverName: unknown }[] = [];
  /** All connections so far. */
  readonly sockets: Socket[] = [];
  /**
   * Returns a result code, a replacement of the response, or 'close' to close the connection. Undefined: the default
   * response.
   */
  fault: (request: LDAPRequest, id: number) => number | 'close' | Buffer | undefined = () => undefined;
  /** True if the server reads all requests and sends no response. */
  isSilent = false;
  readonly #server = createServer((socket) => this.#accept(socket));
  #tls: Pair | undefined;
  #isTLS = false;

  /** Starts the server and returns its port. If `startsWithTLS` is true, the server serves ldaps. */
  async listen(tls?: Pair, startsWithTLS = false): Promise<number> {
    this.#tls = tls;
    this.#isTLS = startsWithTLS;
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
  }

  #accept(socket: Socket): void {
    this.sockets.push(socket);
    this.#serve(this.#isTLS ? this.#secure(socket) : socket);
  }

  #secure(socket: Socket): TLSSocket {
    const { certificate, key } = this.#tls ?? {};
    return new TLSSocket(socket, { isServer: true, secureContext: createSecureContext({ cert: certificate, key }) });
  }

  #serve(socket: Socket): void {
    socket.on('error', () => undefined);
    socket.on('data', (message) => {
      if (this.isSilent) return;
      const { id, request } = parse(message);
      this.requests.push(request);
      const isSecure = socket instanceof TLSSocket;
      this.security.push({ isSecure, serverName: isSecure ? socket.servername : undefined });
      const response = this.fault(request, id) ?? this.#respond(request);
      if (response === 'close') socket.destroy();
      else if (Buffer.isBuffer(response)) socket.write(response);
      else {
        const entries = request.operation === 'search' ? (this.entries.get(request.filter) ?? []) : [];
        const result = done(id, responseTags[request.operation], response);
        if (request.operation !== 'extended' || response !== success)
          socket.write(Buffer.concat([...entries.map((entry) => entryMessage(id, entry)), result]));
        else {
          socket.removeAllListeners('data');
          socket.write(result, () => this.#serve(this.#secure(socket)));
        }
      }
    });
  }

  #respond(request: LDAPRequest): number {
    if (request.operation !== 'bind') return success;
    return request.password === (this.passwords.get(request.dn) ?? '') ? success : invalidCredentials;
  }
}

const entryMessage = (id: number, { dn, attributes = {} }: LDAPEntry): Buffer => {
  const list = Object.entries(attributes).map(([name, values]) =>
    ber(0x30, text(name), ber(0x31, ...values.map((value) => ber(4, Buffer.from(value))))),
  );
  return ber(0x30, integer(id), ber(0x64, text(dn), ber(0x30, ...list)));
};

function parse(message: Buffer): { id: number; request: LDAPRequest } {
  const reader = new BerReader(message);
  reader.readSequence();
  const messageId = reader.readInt() ?? 0;
  const tag = reader.readSequence();
  const read = <T extends BindRequest | SearchRequest | ExtendedRequest>(request: T): T => {
    request.parse(reader, []);
    return request;
  };
  if (tag === 0x60) {
    const { dn, password } = read(new BindRequest({ messageId }));
    return { id: messageId, request: { operation: 'bind', dn, password } };
  }
  if (tag === 0x63) {
    const search = read(new SearchRequest({ messageId, filter: new PresenceFilter() }));
    const { baseDN: base, filter, sizeLimit, attributes } = search;
    return { id: messageId, request: { operation: 'search', base, filter: filter.toString(), sizeLimit, attributes } };
  }
  const { oid } = read(new ExtendedRequest({ messageId }));
  return { id: messageId, request: { operation: 'extended', oid } };
}
