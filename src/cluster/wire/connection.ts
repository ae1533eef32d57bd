/** One connection to kube-apiserver, which takes one request at a time. */
import type { Socket } from 'node:net';
import { ResponseParser, type ResponseEvents } from './response-parser.ts';

export interface ResponseHandler extends ResponseEvents {
  /** There is no answer, or no more of it. `isSent`: the request may have been done. */
  onError(error: Error, isSent: boolean): void;
}

/** Of an answer. */
export interface ResponseFlow {
  pause(): void;
  resume(): void;
  /** Nobody hears of the answer any more. */
  abort(): void;
}

/** A request on its way, over whichever connection. */
export class Passing implements ResponseFlow {
  readonly request: Sent;
  over: UpstreamConnection | undefined;
  readonly #keeper: Keeper;

  constructor(request: Sent, keeper: Keeper) {
    this.request = request;
    this.#keeper = keeper;
  }

  pause(): void {
    this.over?.pause(this);
  }

  resume(): void {
    this.over?.resume(this);
  }

  abort(): void {
    if (this.over === undefined) this.#keeper.onAbort(this);
    else this.over.abort(this);
  }
}

export interface Sent {
  readonly method: string;
  /** See `headOf`. */
  readonly head: string;
  readonly body?: AsyncIterable<Buffer> | readonly Buffer[] | undefined;
  /** Of the body in bytes, as the head says it; in chunks without. */
  readonly length?: number | undefined;
  /** Until the head of the answer, in milliseconds; 0 for ever. */
  readonly timeout: number;
  /** Between two pieces of the answer, in milliseconds; for ever unless stated. */
  readonly silence?: number;
  readonly handler: ResponseHandler;
}

/** Who keeps connections. */
export interface Keeper {
  /** It may be asked again. */
  onFree(connection: UpstreamConnection): void;
  onClose(connection: UpstreamConnection): void;
  /** It was closed before it said anything to a request that may be sent again, over another. */
  onStale(passing: Passing): void;
  /** It waits for a connection no more. */
  onAbort(passing: Passing): void;
}

export class ResponseTimeout extends Error {}

const tooLate = (): ResponseTimeout => new ResponseTimeout('there is no answer in time');

const connectTimeout = 5_000;
/** Less than kube-apiserver's 90 s, which would close a connection just as it is used. */
const idleTimeout = 60_000;

/** Into which all connections read: what is in it is taken at once. */
const landing = Buffer.allocUnsafeSlow(64 * 1024);

/** As net.ConnectOpts.onread wants it. */
export interface Landing {
  readonly buffer: Buffer;
  readonly callback: (length: number) => boolean;
}

export class UpstreamConnection implements ResponseEvents {
  readonly #socket: Socket;
  readonly #keeper: Keeper;
  readonly #parser = new ResponseParser(this);
  #passing: Passing | undefined;
  #isOpen = false;
  #isSent = false;
  #isBodySent = true;
  #hasHeard = false;
  #hasServed = false;
  #isPaused = false;
  #isRetired = false;
  /** The socket's own timeout begins anew with each byte. */
  #headUntil = Infinity;
  #error: Error | undefined;

  /** `open` begins the connection; `event` tells that it is there. */
  constructor(open: (onread: Landing) => Socket, event: 'connect' | 'secureConnect', keeper: Keeper) {
    this.#keeper = keeper;
    const socket = open({
      buffer: landing,
      callback: (length) => {
        // A copy: what is read next, by whichever connection, lands in the same place.
        this.#read(Buffer.from(landing.subarray(0, length)));
        return !this.#isPaused;
      },
    });
    this.#socket = socket;
    const late = setTimeout(() => this.#fail(new Error('connecting takes too long')), connectTimeout);
    socket.once(event, () => {
      clearTimeout(late);
      this.#isOpen = true;
      this.#write();
    });
    socket.on('timeout', () => this.#fail(tooLate()));
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
      keeper.onClose(this);
    });
  }

  /** It takes no more requests. */
  get isOver(): boolean {
    return this.#socket.destroyed;
  }

  send(passing: Passing): void {
    passing.over = this;
    this.#passing = passing;
    this.#isSent = false;
    if (this.#isOpen) this.#write();
  }

  pause(passing: Passing): void {
    if (this.#passing !== passing) return;
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(passing: Passing): void {
    if (this.#passing === passing) this.#goOn();
  }

  abort(passing: Passing): void {
    if (this.#passing !== passing) return;
    this.#passing = undefined;
    this.#socket.destroy();
  }

  /** Takes no request after the one in flight. */
  retire(): void {
    this.#isRetired = true;
    if (this.#passing === undefined) this.#socket.destroy();
  }

  destroy(): void {
    this.#fail(new Error('this server stops'));
  }

  onHead(status: number, message: string, headers: string[]): void {
    this.#socket.setTimeout(this.#passing?.request.silence ?? 0);
    this.#passing?.request.handler.onHead(status, message, headers);
  }

  onData(chunk: Buffer): void {
    this.#passing?.request.handler.onData(chunk);
  }

  onEnd(trailers: string[]): void {
    const passing = this.#passing;
    this.#passing = undefined;
    passing?.request.handler.onEnd(trailers);
  }

  #write(): void {
    if (this.#passing === undefined) return;
    const { request } = this.#passing;
    this.#parser.expect(request.method);
    this.#socket.setTimeout(request.timeout);
    this.#awaitHead(request);
    this.#isSent = true;
    this.#hasHeard = false;
    if (request.body === undefined) this.#socket.write(request.head, 'latin1');
    else void this.#writeWithBody(this.#passing, request.body);
  }

  #awaitHead({ timeout }: Sent): void {
    this.#headUntil = timeout === 0 ? Infinity : performance.now() + timeout;
  }

  async #writeWithBody(passing: Passing, body: AsyncIterable<Buffer> | readonly Buffer[]): Promise<void> {
    const { head, length } = passing.request;
    const socket = this.#socket;
    this.#isBodySent = false;
    let sent = 0;
    try {
      // Head and first chunk leave together, if that is there: who sends it may wait for the answer first.
      socket.cork();
      socket.write(head, 'latin1');
      setImmediate(uncork, socket);
      for await (const chunk of body) {
        if (this.#passing !== passing) return;
        sent += chunk.length;
        if (length !== undefined && sent > length) throw new Error('the body is longer than was said');
        const hasRoom = length === undefined ? writeChunk(socket, chunk) : socket.write(chunk);
        uncork(socket);
        if (!hasRoom) await drained(socket);
      }
      if (this.#passing !== passing) return;
      if (length === undefined) socket.write('0\r\n\r\n', 'latin1');
      else if (sent < length) throw new Error('the body is shorter than was said');
      uncork(socket);
      this.#isBodySent = true;
      this.#awaitHead(passing.request);
    } catch (error) {
      if (this.#passing === passing) this.#fail(error as Error);
    }
  }

  #read(chunk: Buffer): void {
    this.#hasHeard = true;
    try {
      // Throws for what stands behind the end of an answer, before the next request could take it for its own.
      this.#parser.read(chunk);
      if (this.#parser.isIdle) this.#release();
      else if (this.#parser.awaitsHead && this.#isBodySent && performance.now() > this.#headUntil) throw tooLate();
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  #release(): void {
    this.#goOn();
    // What of the body kube-apiserver did not want would be taken for the next request.
    if (this.#parser.mayGoOn && this.#isBodySent && !this.#isRetired && !this.isOver) {
      this.#hasServed = true;
      this.#socket.setTimeout(idleTimeout);
      this.#keeper.onFree(this);
    } else this.#socket.destroy();
  }

  #goOn(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#socket.resume();
  }

  #fail(error: Error): void {
    const passing = this.#passing;
    this.#passing = undefined;
    this.#socket.destroy();
    if (passing === undefined) return;
    const { request } = passing;
    const isStale = this.#hasServed && !this.#hasHeard && !(error instanceof ResponseTimeout);
    if (isStale && isSafe(request) && request.body === undefined) this.#keeper.onStale(passing);
    else request.handler.onError(error, this.#isSent);
  }
}

/** RFC 9110 section 9.2.1: asking twice does nothing twice. */
export const isSafe = ({ method }: Pick<Sent, 'method'>): boolean => ['GET', 'HEAD', 'OPTIONS'].includes(method);

/** Waits no longer than the connection lives. */
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

/** RFC 9112 section 7.1: a chunk without bytes would be the last. */
function writeChunk(socket: Socket, chunk: Buffer): boolean {
  if (chunk.length === 0) return !socket.writableNeedDrain;
  socket.cork();
  socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1');
  socket.write(chunk);
  const hasRoom = socket.write('\r\n', 'latin1');
  socket.uncork();
  return hasRoom;
}

/** Once corked, whatever was written leaves. */
function uncork(socket: Socket): void {
  if (socket.writableCorked > 0) socket.uncork();
}
