/** Connection to kube-apiserver, with one request at a time. */
import type { Socket } from 'node:net';
import { ResponseParser, type ResponseEvents } from './response-parser.ts';

export interface ResponseHandler extends ResponseEvents {
  /** Called when the response is missing or incomplete. `isSent` is true if the request may have been processed. */
  onError(error: Error, isSent: boolean): void;
}

/** Flow control of a response. */
export interface ResponseFlow {
  pause(): void;
  resume(): void;
  /** Aborts the request. The handler is not called again. */
  abort(): void;
}

/** Pending request, which can move to another connection. */
export class PendingRequest implements ResponseFlow {
  readonly request: SentRequest;
  connection: UpstreamConnection | undefined;
  readonly #owner: ConnectionOwner;

  constructor(request: SentRequest, owner: ConnectionOwner) {
    this.request = request;
    this.#owner = owner;
  }

  pause(): void {
    this.connection?.pause(this);
  }

  resume(): void {
    this.connection?.resume(this);
  }

  abort(): void {
    if (this.connection === undefined) this.#owner.onAbort(this);
    else this.connection.abort(this);
  }
}

export interface SentRequest {
  readonly method: string;
  /** Head of the request, as `headOf` returns it. */
  readonly head: string;
  readonly body?: AsyncIterable<Buffer> | readonly Buffer[] | undefined;
  /** Bytes of the body, as in the head; if undefined, the body is chunked. */
  readonly length?: number | undefined;
  /** Milliseconds to wait for the head of the response; 0 for no limit. */
  readonly timeout: number;
  /** Maximum milliseconds between two pieces of the response. Default: no limit. */
  readonly silence?: number;
  readonly handler: ResponseHandler;
}

/** Owner of connections, which call these methods. */
export interface ConnectionOwner {
  /** Called when a connection can be reused. */
  onFree(connection: UpstreamConnection): void;
  onClose(connection: UpstreamConnection): void;
  /** Called when a reused connection closes before the response. The request can be retried on another connection. */
  onStale(pending: PendingRequest): void;
  /** Called when a request that waits for a connection is aborted. */
  onAbort(pending: PendingRequest): void;
}

export class ResponseTimeout extends Error {}

const responseTimeout = (): ResponseTimeout => new ResponseTimeout('no response within the timeout');

const connectTimeout = 5_000;
/**
 * Idle timeout in milliseconds. This timeout is shorter than the 90 s of kube-apiserver, which could otherwise close a
 * connection just when it is used.
 */
const idleTimeout = 60_000;

/** Read buffer that all connections share. Its content is copied immediately. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);

/** Value of net.ConnectOpts.onread. */
export interface ReadOptions {
  readonly buffer: Buffer;
  readonly callback: (length: number) => boolean;
}

export class UpstreamConnection implements ResponseEvents {
  readonly #socket: Socket;
  readonly #owner: ConnectionOwner;
  readonly #parser = new ResponseParser(this);
  #pending: PendingRequest | undefined;
  #isOpen = false;
  #isSent = false;
  #isBodySent = true;
  #hasReceived = false;
  #hasServed = false;
  #isPaused = false;
  #isRetired = false;
  /** Deadline for the head. The timeout of the socket is not enough, because it restarts with each byte. */
  #headUntil = Infinity;
  #error: Error | undefined;

  /** `open` starts the connection; `event` signals that the connection is established. */
  constructor(open: (onread: ReadOptions) => Socket, event: 'connect' | 'secureConnect', owner: ConnectionOwner) {
    this.#owner = owner;
    const socket = open({
      buffer: readBuffer,
      callback: (length) => {
        // Copies the bytes, because the next read of any connection overwrites them.
        this.#read(Buffer.from(readBuffer.subarray(0, length)));
        return !this.#isPaused;
      },
    });
    this.#socket = socket;
    const late = setTimeout(
      () => this.#fail(new Error(`no connection within ${connectTimeout / 1000} s`)),
      connectTimeout,
    );
    socket.once(event, () => {
      clearTimeout(late);
      this.#isOpen = true;
      this.#write();
    });
    socket.on('timeout', () => this.#fail(responseTimeout()));
    socket.on('error', (error: Error) => (this.#error ??= error));
    socket.once('end', () => {
      try {
        this.#parser.finish();
      } catch (error) {
        this.#error ??= error as Error;
      }
      socket.destroy();
    });
    socket.once('close', () => {
      clearTimeout(late);
      this.#fail(this.#error ?? new Error('the connection was closed'));
      owner.onClose(this);
    });
  }

  /** True if the connection accepts no more requests. */
  get isClosed(): boolean {
    return this.#socket.destroyed;
  }

  send(pending: PendingRequest): void {
    pending.connection = this;
    this.#pending = pending;
    this.#isSent = false;
    if (this.#isOpen) this.#write();
  }

  pause(pending: PendingRequest): void {
    if (this.#pending !== pending) return;
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(pending: PendingRequest): void {
    if (this.#pending === pending) this.#resumeReading();
  }

  abort(pending: PendingRequest): void {
    if (this.#pending !== pending) return;
    this.#pending = undefined;
    this.#socket.destroy();
  }

  /** Closes the connection after the request in flight. */
  retire(): void {
    this.#isRetired = true;
    if (this.#pending === undefined) this.#socket.destroy();
  }

  destroy(): void {
    this.#fail(new Error('the server is shutting down'));
  }

  onHead(status: number, message: string, headers: string[]): void {
    this.#socket.setTimeout(this.#pending?.request.silence ?? 0);
    this.#pending?.request.handler.onHead(status, message, headers);
  }

  onData(chunk: Buffer): void {
    this.#pending?.request.handler.onData(chunk);
  }

  onEnd(trailers: string[]): void {
    const pending = this.#pending;
    this.#pending = undefined;
    pending?.request.handler.onEnd(trailers);
  }

  #write(): void {
    if (this.#pending === undefined) return;
    const { request } = this.#pending;
    this.#parser.expect(request.method);
    this.#socket.setTimeout(request.timeout);
    this.#awaitHead(request);
    this.#isSent = true;
    this.#hasReceived = false;
    if (request.body === undefined) this.#socket.write(request.head, 'latin1');
    else void this.#writeWithBody(this.#pending, request.body);
  }

  #awaitHead({ timeout }: SentRequest): void {
    this.#headUntil = timeout === 0 ? Infinity : performance.now() + timeout;
  }

  async #writeWithBody(pending: PendingRequest, body: AsyncIterable<Buffer> | readonly Buffer[]): Promise<void> {
    const { head, length } = pending.request;
    const socket = this.#socket;
    this.#isBodySent = false;
    let sent = 0;
    try {
      // Sends the head together with the first chunk if the chunk is available. Some senders wait for the response
      // before they send the first chunk.
      socket.cork();
      socket.write(head, 'latin1');
      setImmediate(uncork, socket);
      for await (const chunk of body) {
        if (this.#pending !== pending) return;
        sent += chunk.length;
        if (length !== undefined && sent > length)
          throw new Error('the request body is longer than its Content-Length');
        const hasRoom = length === undefined ? writeChunk(socket, chunk) : socket.write(chunk);
        uncork(socket);
        if (!hasRoom) await drained(socket);
      }
      if (this.#pending !== pending) return;
      if (length === undefined) socket.write('0\r\n\r\n', 'latin1');
      else if (sent < length) throw new Error('the request body is shorter than its Content-Length');
      uncork(socket);
      this.#isBodySent = true;
      this.#awaitHead(pending.request);
    } catch (error) {
      if (this.#pending === pending) this.#fail(error as Error);
    }
  }

  #read(chunk: Buffer): void {
    this.#hasReceived = true;
    try {
      // Throws for bytes after the end of a response, so that they do not become the response to the next request.
      this.#parser.read(chunk);
      if (this.#parser.isIdle) this.#release();
      else if (this.#parser.awaitsHead && this.#isBodySent && performance.now() > this.#headUntil)
        throw responseTimeout();
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  #release(): void {
    this.#resumeReading();
    // kube-apiserver would read the rest of an unsent body as the next request.
    if (this.#parser.isReusable && this.#isBodySent && !this.#isRetired && !this.isClosed) {
      this.#hasServed = true;
      this.#socket.setTimeout(idleTimeout);
      this.#owner.onFree(this);
    } else this.#socket.destroy();
  }

  #resumeReading(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#socket.resume();
  }

  #fail(error: Error): void {
    const pending = this.#pending;
    this.#pending = undefined;
    this.#socket.destroy();
    if (pending === undefined) return;
    const { request } = pending;
    const isStale = this.#hasServed && !this.#hasReceived && !(error instanceof ResponseTimeout);
    if (isStale && isSafe(request) && request.body === undefined) this.#owner.onStale(pending);
    else request.handler.onError(error, this.#isSent);
  }
}

/** Returns true for safe methods (RFC 9110 section 9.2.1), which can be retried. */
export const isSafe = ({ method }: Pick<SentRequest, 'method'>): boolean => ['GET', 'HEAD', 'OPTIONS'].includes(method);

/** Resolves when the socket has drained or closed. */
function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const settle = (): void => {
      socket.off('drain', settle);
      socket.off('close', settle);
      resolve();
    };
    if (socket.destroyed) resolve();
    else socket.on('drain', settle).on('close', settle);
  });
}

/** Writes a chunk. Skips an empty chunk, which would end the body (RFC 9112 section 7.1). */
function writeChunk(socket: Socket, chunk: Buffer): boolean {
  if (chunk.length === 0) return !socket.writableNeedDrain;
  socket.cork();
  socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1');
  socket.write(chunk);
  const hasRoom = socket.write('\r\n', 'latin1');
  socket.uncork();
  return hasRoom;
}

/** Sends the buffered writes if the socket is corked. */
function uncork(socket: Socket): void {
  if (socket.writableCorked > 0) socket.uncork();
}
