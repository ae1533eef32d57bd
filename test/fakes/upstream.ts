import { once } from 'node:events';
import http, { type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { headerValues } from '../../src/auth/identity-headers.ts';
import { createUpstream, type Upstream } from '../../src/cluster/client/upstream.ts';
import { addressOf } from '../../src/cluster/wire/connections.ts';

/** What every request that is passed on has of the server's own. */
export const ownToken = 'Bearer of-the-server';

/** The way to a server of the test's own, in the place of kube-apiserver. */
export const upstreamAt = (server: string): Upstream =>
  createUpstream({
    address: addressOf(server, { rejectUnauthorized: true }),
    credential: { headers: async () => ({ Authorization: ownToken }), renew: () => undefined },
  });

/** One request, as kube-apiserver would have seen it. */
export interface Passed {
  readonly method: string;
  readonly url: string;
  /** By lower-case name, every value. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  /** The whole body; rejects if it was broken off. */
  readonly body: Promise<string>;
}

type Serve = (req: IncomingMessage, res: ServerResponse) => void;

/** A server in the place of kube-apiserver, which answers as the test of the moment wants. */
export class FakeKubeApiserver {
  readonly seen: Passed[] = [];
  readonly server: Server = http
    .createServer((req, res) => {
      this.#note(req);
      this.answer(req, res);
    })
    .on('connection', (socket: Socket) => {
      this.sockets.add(socket.on('error', () => undefined));
      socket.once('close', () => this.sockets.delete(socket));
    })
    .on('upgrade', (req, socket) => {
      this.#note(req);
      this.grant(req, socket as Socket);
    });
  answer: Serve = (_, res) => void res.end('{}');
  /** For requests of another protocol. */
  grant: (req: IncomingMessage, socket: Socket) => void = (_, socket) => void socket.destroy();
  /** Those that are open. */
  readonly sockets = new Set<Socket>();

  async listen(): Promise<string> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Those since the last call. */
  taken(): Passed[] {
    return this.seen.splice(0);
  }

  /** Every connection. */
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
