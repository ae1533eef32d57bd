/** A request and its answer, streamed at the pace of who reads. */
import type { Request, Response } from 'express';
import { ServerResponse, type IncomingMessage } from 'node:http';
import type { ServerHttp2Stream } from 'node:http2';
import { badGateway, badRequest, serviceUnavailable, type StatusError, unauthorized } from '../runtime/errors.ts';
import type { RequestContext } from '../http/route.ts';
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
import { upstreamIdentityOf, type UserInfo } from '../auth/user.ts';
import type { UpstreamIdentity } from '../cluster/client/impersonation.ts';

/** Identities under which requests are passed on. */
const known = new WeakMap<UserInfo, UpstreamIdentity>();

/** The caller, or whom the caller may impersonate and asked to be. */
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
 * kube-apiserver flushes an answer every 2 to 4 KB, and each write of ours costs a system call. So we write when there are so many
 * bytes, or after so many milliseconds; of a stream what has come together, at once.
 */
const enough = 64 * 1024;
const patience = 5;

/** Returns the error of a request that this server ended: the session ended, the user's groups changed or the server stops. */
export const passageEnded = (request: Pick<Request, 'method'>): StatusError =>
  isChange(request)
    ? unknownOutcome('this request was ended')
    : serviceUnavailable('this request was ended; try again', 1);

/** Resolves when the answer is over. Throws StatusError where kube-apiserver gives none. */
export function pass(upstream: Upstream, req: Request, res: Response, context: RequestContext): Promise<void> {
  return new Promise((resolve, reject) => {
    const passage = new Passage(upstream, req, res, context, (error) =>
      error === undefined ? resolve() : reject(error),
    );
    const body = bodyOf(req);
    const headers = headersUp(req.rawHeaders, context);
    const { 'content-length': length } = req.headers;
    const request = {
      method: req.method,
      target: req.url,
      headers,
      user: callerOf(context),
      body,
      length: length === undefined ? undefined : Number(length),
      isLongRunning: context.info.isLongRunning,
    };
    upstream.send(request, passage).then((flow) => passage.started(flow), reject);
  });
}

/** Undefined if there is none. */
function bodyOf(req: Request): AsyncIterable<Buffer> | undefined {
  const { stream } = req as { stream?: ServerHttp2Stream };
  const { 'content-length': length, 'transfer-encoding': encoding } = req.headers;
  const isEmpty = stream === undefined ? encoding === undefined && Number(length ?? 0) === 0 : stream.endAfterHeaders;
  return isEmpty ? undefined : chunksOf(req);
}

/**
 * Whole, or this throws: what a client broke off must not look like the end upstream. What kube-apiserver does not want to read is no
 * reason to cut the connection on which its answer goes back, and must be out of the way of the next request.
 */
async function* chunksOf(req: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    yield* req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  } catch (cause) {
    // No fault of kube-apiserver's.
    throw badRequest('the body of the request was broken off', { cause });
  } finally {
    req.resume();
  }
}

/** What happens to an answer on its way back. */
class Passage implements ResponseHandler {
  readonly #upstream: Upstream;
  readonly #req: Request;
  readonly #res: Response;
  readonly #context: RequestContext;
  readonly #settle: (error?: Error) => void;
  #flow: ResponseFlow | undefined;
  #isOver = false;
  /** What has come since the last write. */
  #pieces: Buffer[] = [];
  #length = 0;
  #later: NodeJS.Timeout | undefined;
  #isFull = false;
  readonly #goOn = (): void => {
    this.#isFull = false;
    this.#flow?.resume();
  };
  readonly #write = (): void => {
    clearTimeout(this.#later);
    this.#later = undefined;
    if (this.#isOver || this.#length === 0 || this.#res.write(this.#taken()) || this.#isFull) return;
    this.#isFull = true;
    this.#flow?.pause();
    this.#res.once('drain', this.#goOn);
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
    context.onEnd(() => this.#giveUp());
    if (!context.info.isLongRunning) return;
    // kube-apiserver judges a stream as the one who began it.
    context.onUserChange(() => this.#breakOff());
    context.signal.addEventListener('abort', () => this.#breakOff());
  }

  /** The request is on its way. */
  started(flow: ResponseFlow): void {
    this.#flow = flow;
    if (this.#isOver) flow.abort();
  }

  onHead(status: number, message: string, headers: string[]): void {
    if (this.#isOver) return;
    const refusal = refusalOfOurs(this.#upstream, status, this.#context);
    if (refusal !== undefined) {
      this.#fail(refusal);
      return;
    }
    begin(this.#res, status, message, headersDown(headers));
    if (this.#context.info.isLongRunning) this.#res.flushHeaders();
  }

  onData(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#pieces.push(chunk);
    this.#length += chunk.length;
    if (this.#length >= enough) this.#write();
    else if (this.#pieces.length === 1) this.#writeSoon();
  }

  #writeSoon(): void {
    if (this.#context.info.isLongRunning) setImmediate(this.#write);
    else this.#later = setTimeout(this.#write, patience);
  }

  onEnd(trailers: string[]): void {
    if (this.#isOver) return;
    if (trailers.length > 0) this.#res.addTrailers(Object.fromEntries(pairsOf(headersDown(trailers))));
    this.#isOver = true;
    clearTimeout(this.#later);
    this.#res.end(this.#length === 0 ? undefined : this.#taken());
    this.#settle();
  }

  onError(error: Error, isSent: boolean): void {
    if (!this.#isOver) this.#fail(failureOf(error, this.#req, isSent));
  }

  #taken(): Buffer {
    const [first = Buffer.alloc(0), ...more] = this.#pieces;
    const all = more.length === 0 ? first : Buffer.concat(this.#pieces, this.#length);
    this.#pieces = [];
    this.#length = 0;
    return all;
  }

  /** An answer that has begun cannot say why it ends. */
  #fail(error: Error): void {
    const hasBegun = this.#res.headersSent;
    this.#giveUp(hasBegun ? undefined : error);
    if (hasBegun) cutOff(this.#res);
  }

  #giveUp(error?: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#later);
    this.#flow?.abort();
    this.#settle(error);
  }

  /** A watch may end at any time, and its client begins another; whatever else is not whole must not seem to be. */
  #breakOff(): void {
    if (this.#isOver) return;
    if (this.#res.headersSent && this.#context.info.verb === 'watch') {
      this.#giveUp();
      this.#res.end();
      cutIfUnread(this.#res);
    } else this.#fail(passageEnded(this.#req));
  }
}

/** The caller has been let in: a 401 is about our own credential. */
export function refusalOfOurs(upstream: Upstream, status: number, { info }: RequestContext): StatusError | undefined {
  // Behind a proxy subresource is a server of somebody's, which may ask for what it likes.
  if (status !== 401 || info.subresource === 'proxy') return undefined;
  upstream.credentialRefused();
  return serviceUnavailable("kube-apiserver does not accept this server's credentials", 1);
}

/** Of which HTTP/2 has one value, or Node refuses the whole answer. */
const single = new Set([
  'age',
  'content-encoding',
  'content-language',
  'content-length',
  'content-location',
  'content-md5',
  'content-range',
  'content-type',
  'date',
  'dnt',
  'etag',
  'expires',
  'last-modified',
  'location',
  'retry-after',
  'tk',
  'x-content-type-options',
  // Of requests.
  'authorization',
  'from',
  'host',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'max-forwards',
  'range',
  'referer',
  'upgrade-insecure-requests',
  'user-agent',
]);

/** By name, all values of each; the first where HTTP/2 has but one. */
function pairsOf(headers: readonly string[]): [string, string[]][] {
  const values = new Map<string, string[]>();
  for (let at = 0; at < headers.length; at += 2) {
    const name = (headers[at] ?? '').toLowerCase();
    const before = values.get(name) ?? [];
    if (before.length === 0 || !single.has(name)) values.set(name, [...before, headers[at + 1] ?? '']);
  }
  return [...values];
}

/** RFC 9112 section 4: of what a reason phrase is made. Node reads others, and writes none. */
const phrase = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * The head of kube-apiserver's answer in the place of what the filters have prepared. Throws StatusError 502 for one that cannot be
 * written.
 */
export function begin(res: Response, status: number, message: string | undefined, headers: string[]): void {
  for (const name of ['Cache-Control', 'X-Content-Type-Options']) res.removeHeader(name);
  try {
    // HTTP/2 has no message, and Node would keep one value of each name.
    if (res instanceof ServerResponse)
      res.writeHead(status, message !== undefined && phrase.test(message) ? message : undefined, headers);
    else {
      for (const [name, values] of pairsOf(headers)) (res as Response).setHeader(name, values);
      (res as Response).writeHead(status);
    }
  } catch (cause) {
    for (const [name] of pairsOf(headers)) if (name !== 'audit-id') res.removeHeader(name);
    throw badGateway('kube-apiserver gave an answer that cannot be passed on', { cause });
  }
}
