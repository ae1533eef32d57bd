import { connect, type OnReadOpts, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { connect as connectTLS } from 'node:tls';
import { ResponseReader, type ParsedResponse } from './response-reader.ts';

export interface Target {
  readonly host: string;
  readonly port: number;
  readonly tls?: { readonly ca: string; readonly servername: string } | undefined;
}

/** Milliseconds without data after which a server counts as failed. */
const timeout = 60_000;

/** A keep-alive connection that sends one request at a time. */
export class Connection {
  readonly #target: Target;
  readonly #reader = new ResponseReader();
  #socket: Socket | undefined;
  #waiting:
    { readonly resolve: (response: ParsedResponse) => void; readonly reject: (error: Error) => void } | undefined;

  constructor(target: Target) {
    if (!isLoopback(target.host)) throw new Error(`${target.host} is not on the loopback interface`);
    this.#target = target;
  }

  /** Sends a request. Rejects if the connection breaks. The next request then opens a new connection. */
  send(request: Buffer, keepBody = false): Promise<ParsedResponse> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#reader.begin(keepBody);
      this.#socket ??= this.#open();
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#socket?.destroy();
  }

  #open(): Socket {
    const { host, port, tls } = this.#target;
    // All reads use the same buffer, so that large lists create no garbage in this process.
    const onread: OnReadOpts = {
      buffer: Buffer.allocUnsafe(256 * 1024),
      callback: (length, buffer) => {
        this.#receive(Buffer.from(buffer.buffer, buffer.byteOffset, length));
        return true;
      },
    };
    const options = { host, port, noDelay: true, onread };
    const socket =
      tls === undefined ? connect(options) : connectTLS({ ...options, ...tls, ALPNProtocols: ['http/1.1'] });
    socket.setTimeout(timeout, () => socket.destroy(new Error(`no response for ${timeout / 1000} s`)));
    socket.on('error', (error: Error) => this.#waiting?.reject(error));
    socket.on('close', () => {
      this.#socket = undefined;
      this.#waiting?.reject(new Error('the server closed the connection'));
    });
    return socket;
  }

  #receive(bytes: Buffer): void {
    try {
      const response = this.#reader.read(bytes);
      if (response === undefined) return;
      const waiting = this.#waiting;
      this.#waiting = undefined;
      waiting?.resolve(response);
    } catch (error) {
      this.#socket?.destroy(error as Error);
    }
  }
}

/** Sends one request on a dedicated connection. The response includes the body. */
export async function sendOnce(target: Target, request: string): Promise<ParsedResponse> {
  const connection = new Connection(target);
  try {
    return await connection.send(Buffer.from(request, 'latin1'), true);
  } finally {
    connection.close();
  }
}

const isLoopback = (host: string): boolean =>
  Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .some(({ address, internal }) => internal && address === host);
