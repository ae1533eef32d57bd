/** An HTTP/1.1 client that checks each byte it receives. */
import net from 'node:net';
import type { Duplex } from 'node:stream';
import tls, { type ConnectionOptions } from 'node:tls';
import { Message, type Request } from './message.ts';
import { FramingError, ResponseReader, type Head } from './response-reader.ts';

export interface Target {
  readonly host: string;
  readonly port: number;
  /** TLS options. */
  readonly tls?: ConnectionOptions;
}

export const connect = ({ host, port, tls: options }: Target): Duplex =>
  options === undefined
    ? net.connect({ host, port })
    : tls.connect({
        host,
        port,
        ALPNProtocols: ['http/1.1'],
        ...(net.isIP(host) === 0 ? { servername: host } : {}),
        ...options,
      });

/**
 * Sends one request on a connection. The server must close the connection after the response. Data after the response
 * is an error.
 */
export const open = (socket: Duplex, request: Request): Promise<Message> =>
  new Connection(socket).request({ ...request, headers: { connection: 'close', ...request.headers } });

/** Sends a request to a URL. The path is sent unchanged; a URL object would normalize it. */
export function openURL(
  url: string,
  options: ConnectionOptions,
  { headers, ...request }: Omit<Request, 'path'>,
): Promise<Message> {
  const [, origin = '', path = ''] = /^(https?:\/\/[^/?#]+)(.*)$/s.exec(url) ?? [];
  const { protocol, hostname, port, host } = new URL(origin);
  const isSecure = protocol === 'https:';
  const target = {
    // In URLs, IPv6 addresses are in brackets.
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(port || (isSecure ? 443 : 80)),
    ...(isSecure ? { tls: options } : {}),
  };
  return open(connect(target), { ...request, path: path || '/', headers: { host, ...headers } });
}

interface Pending {
  readonly request: Request;
  readonly resolve: (message: Message) => void;
  readonly reject: (error: Error) => void;
}

/** A connection for sequential requests. */
export class Connection {
  readonly #socket: Duplex;
  readonly #reader: ResponseReader;
  readonly #closed: Promise<void>;
  #pending: Pending | undefined;
  #message: Message | undefined;
  /** True if the server closes the connection after this response. */
  #isLast = false;
  /** True if the reader abandoned a response. */
  #isAbandoned = false;
  #failure: Error | undefined;

  constructor(socket: Duplex) {
    this.#socket = socket;
    this.#reader = new ResponseReader({
      onHead: (head) => this.#onHead(head),
      onBody: (bytes) => {
        if (this.#message?.push(bytes) === false) socket.pause();
      },
      onEnd: () => {
        if (!this.#isLast) this.#release();
      },
    });
    this.#closed = new Promise((resolve) => socket.once('close', resolve));
    socket.on('data', (bytes: Buffer) => this.#try(() => this.#reader.read(bytes)));
    socket.once('end', () => {
      this.#onSocketEnd();
      socket.end();
    });
    // A server can reset the connection after a complete response.
    socket.on('error', (error) => (this.#reader.isIdle ? this.#release() : this.#fail(error)));
    socket.once('close', () => this.#onSocketEnd());
  }

  /**
   * Sends a request and resolves with the head of the response. The body must be read to its end before the next
   * request.
   */
  request(request: Request): Promise<Message> {
    return new Promise((resolve, reject) => {
      if (this.#isAbandoned) return reject(new Error('the response before this one was left unread'));
      this.#pending = { request, resolve, reject };
      this.#isLast = /\bclose\b/i.test(String(request.headers?.['connection'] ?? ''));
      if (this.#failure !== undefined) return reject(this.#failure);
      this.#try(() => this.#reader.expect(request.method ?? 'GET'));
      this.#socket.write(bytesOf(request));
    });
  }

  /** Throws if the server sent data after the last response. */
  async close(): Promise<void> {
    this.#socket.resume().end();
    await this.#closed;
    if (this.#failure !== undefined) throw this.#failure;
  }

  #onHead(head: Head): void {
    if (head.status === 101) throw new FramingError('this client switches to no other protocol');
    const { request, resolve } = this.#pending as Pending;
    this.#pending = undefined;
    this.#isLast ||= head.headers.connection === 'close';
    const message = new Message(request, head, {
      resume: () => this.#socket.resume(),
      cancel: () => {
        if (this.#message !== message) return;
        this.#isAbandoned = true;
        this.#socket.destroy();
      },
    });
    this.#message = message;
    resolve(message);
  }

  #release(): void {
    const message = this.#message;
    this.#message = undefined;
    message?.push(null);
  }

  #onSocketEnd(): void {
    this.#try(() => {
      this.#reader.end();
      this.#release();
    });
  }

  #try(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  #fail(error: Error): void {
    if (this.#isAbandoned || this.#failure !== undefined) return;
    this.#failure = error;
    this.#pending?.reject(error);
    this.#message?.destroy(error);
    this.#socket.destroy();
  }
}

const hasBody = new Set(['POST', 'PUT', 'PATCH']);

function bytesOf({ method = 'GET', path, headers = {}, body }: Request): Buffer {
  const given = Object.entries(headers).filter(([, value]) => value !== undefined);
  const names = new Set(given.map(([name]) => name.toLowerCase()));
  const content = Buffer.from(body ?? '');
  const fields = [
    ...(names.has('host') ? [] : [['Host', 'platform.example']]),
    ...(names.has('content-length') || names.has('transfer-encoding') || (body === undefined && !hasBody.has(method))
      ? []
      : [['Content-Length', content.length]]),
    ...given.flatMap(([name, value]) => [value].flat().map((one) => [name, one])),
  ];
  const head = `${method} ${path} HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
  if (!names.has('transfer-encoding')) return Buffer.concat([Buffer.from(head, 'latin1'), content]);
  const chunk = content.length === 0 ? [] : [`${content.length.toString(16)}\r\n`, content, '\r\n'];
  return Buffer.concat([
    Buffer.from(head, 'latin1'),
    ...chunk.map((part) => Buffer.from(part)),
    Buffer.from('0\r\n\r\n'),
  ]);
}
