import { connect, type OnReadOpts, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { connect as connectTLS } from 'node:tls';
import { AnswerReader, type Answer } from './answer-reader.ts';

export interface Target {
  readonly host: string;
  readonly port: number;
  readonly tls?: { readonly ca: string; readonly servername: string } | undefined;
}

/** A server that answers nothing for so long has failed. */
const patience = 60_000;

/** One keep-alive connection with one request at a time. */
export class Connection {
  readonly #target: Target;
  readonly #reader = new AnswerReader();
  #socket: Socket | undefined;
  #waiting: { readonly resolve: (answer: Answer) => void; readonly reject: (error: Error) => void } | undefined;

  constructor(target: Target) {
    if (!isLoopback(target.host)) throw new Error(`${target.host} is not on the loopback interface`);
    this.#target = target;
  }

  /** Rejects if the connection breaks; the next request then opens it anew. */
  send(request: Buffer, keepBody = false): Promise<Answer> {
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
    // Every read into the same buffer: a list of megabytes makes no garbage here.
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
    socket.setTimeout(patience, () => socket.destroy(new Error(`no answer for ${patience / 1000} s`)));
    socket.on('error', (error: Error) => this.#waiting?.reject(error));
    socket.on('close', () => {
      this.#socket = undefined;
      this.#waiting?.reject(new Error('the server closed the connection'));
    });
    return socket;
  }

  #receive(bytes: Buffer): void {
    try {
      const answer = this.#reader.read(bytes);
      if (answer === undefined) return;
      const waiting = this.#waiting;
      this.#waiting = undefined;
      waiting?.resolve(answer);
    } catch (error) {
      this.#socket?.destroy(error as Error);
    }
  }
}

/** One request on a connection of its own; the answer has its body. */
export async function ask(target: Target, request: string): Promise<Answer> {
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
