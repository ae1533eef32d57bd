import { once } from 'node:events';
import http, { type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { headerValues } from '../../src/auth/identity-headers.ts';
import { createUpstream, type Upstream } from '../../src/cluster/client/upstream.ts';
import { addressOf } from '../../src/cluster/wire/connections.ts';

/** Credential that the server sends in every forwarded request. */
export const ownToken = 'Bearer of-the-server';

/** Returns the connection settings for a test server that replaces kube-apiserver. */
export const upstreamAt = (server: string): Upstream =>
  createUpstream({
    address: addressOf(server, { rejectUnauthorized: true }),
    credential: { headers: async () => ({ Authorization: ownToken }), renew: () => undefined },
  });

/** A request as kube-apiserver receives it. */
export interface Passed {
  readonly method: string;
  readonly url: string;
  /** All values by lower-case name. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  /** The complete body; rejects if it was aborted. */
  readonly body: Promise<string>;
}

type Serve = (req: IncomingMessage, res: ServerResponse) => void;

/** A fake kube-apiserver that responds as the current test specifies. */
export class FakeKubeApiserver {
  readonly seen: Passed[] = [];
  readonly server: Server = http
    .createServer((req, res) => {
      this.#note(req);
      this.serve(req, res);
    })
    .on('connection', (socket: Socket) => {
      this.sockets.add(socket.on('error', () => undefined));
      socket.once('close', () => this.sockets.delete(socket));
    })
    .on('upgrade', (req, socket) => {
      this.#note(req);
      this.grant(req, socket as Socket);
    });
  serve: Serve = (_, res) => void res.end('{}');
  /** Handles upgrade requests. */
  grant: (req: IncomingMessage, socket: Socket) => void = (_, socket) => void socket.destroy();
  /** Open connections. */
  readonly sockets = new Set<Socket>();

  async listen(): Promise<string> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Returns the requests received since the last call of `taken`. */
  taken(): Passed[] {
    return this.seen.splice(0);
  }

  /** Closes all open connections. */
  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  close(): void {
    this.cut();
    this.server.close();
  }

  #note(req: IncomingMessage): void {
    const body = text(req);
    body.catch(() => undefined);
    this.seen.push({ method: req.method ?? '', url: req.url ?? '', headers: headerValues(req), body });
  }
}
