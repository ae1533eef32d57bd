/** Streams a request to kube-apiserver and the response back to the caller, each at the pace of its reader. */
import type { Request, Response } from 'express';
import { Readable } from 'node:stream';
import type { ServerHttp2Stream } from 'node:http2';
import { serviceUnavailable, type StatusError, unauthorized } from '../runtime/errors.ts';
import type { RequestContext } from '../http/route.ts';
import { chunksOf } from '../http/request/body-chunks.ts';
import { cutIfUnread, cutOff } from '../http/response/cut-off.ts';
import {
  failureOf,
  isChange,
  unknownOutcome,
  type ResponseFlow,
  type ResponseHandler,
  type Upstream,
} from '../cluster/client/upstream.ts';
import { headersDown, headersUp } from './headers.ts';
import { valuesByName, writeHead } from './response-head.ts';
import { startTimer, type StopTimer } from './response-timer.ts';
import { upstreamIdentityOf, type UserInfo } from '../auth/user.ts';
import type { UpstreamIdentity } from '../cluster/client/impersonation.ts';

/** Identities with which requests are forwarded, by user. */
const known = new WeakMap<UserInfo, UpstreamIdentity>();

/** Returns the identity of the caller, or of the user whom the caller impersonates. */
export function callerOf({ user, impersonated = user }: RequestContext): UpstreamIdentity {
  if (impersonated === undefined) throw unauthorized();
  let caller = known.get(impersonated);
  if (caller === undefined) {
    caller = upstreamIdentityOf(impersonated);
    known.set(impersonated, caller);
  }
  return caller;
}

/**
 * kube-apiserver flushes a response every 2 to 4 KB, and each write here costs a system call. Data is therefore
 * collected until there are `writeSize` bytes or `writeDelay` milliseconds have passed. Streams write all data of one
 * event-loop turn at once.
 */
const writeSize = 64 * 1024;
const writeDelay = 5;

/**
 * Returns the error of a request that this server aborted: the session was revoked, the user's groups changed or the
 * server is stopping.
 */
export const requestAborted = (request: Pick<Request, 'method'>): StatusError =>
  isChange(request)
    ? unknownOutcome('this request was aborted')
    : serviceUnavailable('this request was aborted; try again', 1);

/**
 * Forwards a request. `buffered` is the request body, if it was already read. Resolves at the end of the response.
 * Throws StatusError if kube-apiserver does not respond.
 */
export function forward(
  upstream: Upstream,
  req: Request,
  res: Response,
  context: RequestContext,
  buffered?: Buffer,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const forwarder = new ResponseForwarder(upstream, req, res, context, (error) =>
      error === undefined ? resolve() : reject(error),
    );
    const body = buffered === undefined ? bodyOf(req) : Readable.from([buffered]);
    const headers = headersUp(req.rawHeaders, context);
    const { 'content-length': length } = req.headers;
    const request = {
      method: req.method,
      target: req.url,
      headers,
      user: callerOf(context),
      body,
      length: buffered?.length ?? (length === undefined ? undefined : Number(length)),
      isLongRunning: context.info.isLongRunning,
    };
    upstream.send(request, forwarder).then(
      (flow) => forwarder.started(flow),
      (error: Error) => forwarder.notSent(error),
    );
  });
}

/** Returns the request body; undefined if there is none. */
function bodyOf(req: Request): AsyncIterable<Buffer> | undefined {
  const { stream } = req as { stream?: ServerHttp2Stream };
  const { 'content-length': length, 'transfer-encoding': encoding } = req.headers;
  const isEmpty = stream === undefined ? encoding === undefined && Number(length ?? 0) === 0 : stream.endAfterHeaders;
  return isEmpty ? undefined : chunksOf(req);
}

/** Returns a response of kube-apiserver to the caller. */
class ResponseForwarder implements ResponseHandler {
  readonly #upstream: Upstream;
  readonly #req: Request;
  readonly #res: Response;
  readonly #context: RequestContext;
  readonly #settle: (error?: Error) => void;
  readonly #stopTimer: StopTimer;
  #flow: ResponseFlow | undefined;
  #isOver = false;
  /** Data received since the last write. */
  #pieces: Buffer[] = [];
  #length = 0;
  #later: NodeJS.Timeout | undefined;
  #isFull = false;
  readonly #resume = (): void => {
    this.#isFull = false;
    this.#flow?.resume();
  };
  readonly #write = (): void => {
    clearTimeout(this.#later);
    this.#later = undefined;
    if (this.#isOver || this.#length === 0 || this.#res.write(this.#taken()) || this.#isFull) return;
    this.#isFull = true;
    this.#flow?.pause();
    this.#res.once('drain', this.#resume);
  };

  constructor(
    upstream: Upstream,
    req: Request,
    res: Response,
    context: RequestContext,
    settle: (error?: Error) => void,
  ) {
    this.#upstream = upstream;
    this.#req = req;
    this.#res = res;
    this.#context = context;
    this.#settle = settle;
    this.#stopTimer = startTimer(context);
    context.onEnd(() => this.#giveUp());
    if (!context.info.isLongRunning) return;
    // kube-apiserver authorized the stream for the user who started it.
    context.onUserChange(() => this.#abort());
    context.signal.addEventListener('abort', () => this.#abort());
  }

  /** Records that the request was sent. */
  started(flow: ResponseFlow): void {
    this.#flow = flow;
    if (this.#isOver) flow.abort();
  }

  notSent(error: Error): void {
    this.#stopTimer('error');
    this.#giveUp(error);
  }

  onHead(status: number, message: string, headers: string[]): void {
    this.#stopTimer('ok');
    if (this.#isOver) return;
    const refusal = ownRefusal(this.#upstream, status, this.#context);
    if (refusal !== undefined) {
      this.#fail(refusal);
      return;
    }
    writeHead(this.#res, status, message, headersDown(headers));
    if (this.#context.info.isLongRunning) this.#res.flushHeaders();
  }

  onData(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#pieces.push(chunk);
    this.#length += chunk.length;
    if (this.#length >= writeSize) this.#write();
    else if (this.#pieces.length === 1) this.#writeSoon();
  }

  #writeSoon(): void {
    if (this.#context.info.isLongRunning) setImmediate(this.#write);
    else this.#later = setTimeout(this.#write, writeDelay);
  }

  onEnd(trailers: string[]): void {
    if (this.#isOver) return;
    if (trailers.length > 0) this.#res.addTrailers(Object.fromEntries(valuesByName(headersDown(trailers))));
    this.#isOver = true;
    clearTimeout(this.#later);
    this.#res.end(this.#length === 0 ? undefined : this.#taken());
    this.#settle();
  }

  onError(error: Error, isSent: boolean): void {
    this.#stopTimer('error');
    if (!this.#isOver) this.#fail(failureOf(error, this.#req, isSent));
  }

  #taken(): Buffer {
    const [first = Buffer.alloc(0), ...more] = this.#pieces;
    const all = more.length === 0 ? first : Buffer.concat(this.#pieces, this.#length);
    this.#pieces = [];
    this.#length = 0;
    return all;
  }

  /** Responds with the error. A response that has started can only be cut off. */
  #fail(error: Error): void {
    const hasStarted = this.#res.headersSent;
    this.#giveUp(hasStarted ? undefined : error);
    if (hasStarted) cutOff(this.#res);
  }

  #giveUp(error?: Error): void {
    if (this.#isOver) return;
    this.#stopTimer('aborted');
    this.#isOver = true;
    clearTimeout(this.#later);
    this.#flow?.abort();
    this.#settle(error);
  }

  /**
   * Ends a watch normally, because its client starts another watch. Any other response is cut off, so that it does not
   * look complete.
   */
  #abort(): void {
    if (this.#isOver) return;
    if (this.#res.headersSent && this.#context.info.verb === 'watch') {
      this.#giveUp();
      this.#res.end();
      cutIfUnread(this.#res);
    } else this.#fail(requestAborted(this.#req));
  }
}

/**
 * Returns the error for a 401 of kube-apiserver. The caller is authenticated, so the 401 concerns this server's own
 * credential.
 */
export function ownRefusal(upstream: Upstream, status: number, { info }: RequestContext): StatusError | undefined {
  // The subresource `proxy` leads to another server, which may request its own credentials.
  if (status !== 401 || info.subresource === 'proxy') return undefined;
  upstream.renewCredential();
  return serviceUnavailable("kube-apiserver does not accept this server's credentials", 1);
}
