import type { Request, Response } from 'express';
import { constants } from 'node:http2';
import type { Socket } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import type { AuditBody } from '../audit/bodies.ts';
import type { AuditRecord, Failure } from '../audit/record.ts';
import type { UserInfo } from '../auth/user.ts';
import { StatusError } from '../runtime/errors.ts';
import { sharedRequest } from '../runtime/promises.ts';
import type { Logger } from '../runtime/logger.ts';
import { anonymousURL, shownURL } from '../runtime/redaction.ts';
import { authorizedByPath } from './access.ts';
import { noRoute, type Arrival, type MatchedRoute, type RequestContext, type RequestInfo } from './route.ts';
import { cutConnection, http2StreamOf } from './response/cut-off.ts';
import { UnreadResponses } from './unread-responses.ts';

/** The reason of every abort: Node would make a DOMException with a stack for each. */
const over = Object.assign(new Error('the request is over'), { name: 'AbortError' });

/** For the rest of a request that is answered, in milliseconds. */
const linger = 500;
/** Bytes of an answer: what a stream holds anyway. */
const little = 16 * 1024;

/** Small responses. Each holds some 20 KB, its stream of HTTP/2 included. Readers take milliseconds. */
const smallResponses = new UnreadResponses(4_000);
/** Documents that are the same for everybody. Readers may take seconds, so they are counted apart. */
const documents = new UnreadResponses(1_000);

/** Until the route is matched. */
const unmatched = noRoute(authorizedByPath);

/** One request on its way through the filters, which fill it in; handlers see it as a RequestContext. */
export class Exchange implements RequestContext {
  readonly req: Request;
  readonly res: Response;
  readonly started: number = performance.now();
  /** The path as it came, without the query. */
  readonly path: string;
  /** The query as it came. */
  readonly search: string;
  readonly log: Logger;
  info: RequestInfo;
  route: MatchedRoute = unmatched;
  auditID = '';
  sourceIP = '';
  user: UserInfo | undefined;
  impersonated: UserInfo | undefined;
  /** Served by the gateway. */
  isProxied = false;
  audit: AuditRecord | undefined;
  arrival: Arrival | undefined;
  /** The body of the request, as far as it has arrived and the audit log may show it. */
  sent: AuditBody | undefined;
  /** What was answered in the place of what was asked for. */
  failure: Failure | undefined;
  readonly #url: string;
  #shownURL: string | undefined;
  #query: URLSearchParams | undefined;
  readonly #cleanups: (() => void)[] = [];
  readonly #places: (() => void)[] = [];
  #userListeners: (() => void)[] | undefined;
  #rechecks: (() => void)[] | undefined;
  #userChanged = false;
  #abort: AbortController | undefined;
  #over = false;
  #ended = false;
  #removeUnread: (() => void) | undefined;
  /** Node sets `req.socket` to null once reading the body fails. */
  readonly #socket: Socket;

  constructor(req: Request, res: Response, log: Logger) {
    this.req = req;
    this.res = res;
    this.#socket = req.socket;
    this.log = log;
    this.#url = req.url;
    const at = req.url.indexOf('?');
    this.path = at === -1 ? req.url : req.url.slice(0, at);
    this.search = at === -1 ? '' : req.url.slice(at + 1);
    this.info = {
      path: this.path,
      isResourceRequest: false,
      verb: req.method.toLowerCase(),
      prefix: '',
      group: '',
      version: '',
      namespace: '',
      resource: '',
      subresource: '',
      name: '',
      isLongRunning: false,
    };
    this.#watch();
  }

  get query(): URLSearchParams {
    return (this.#query ??= new URLSearchParams(this.search));
  }

  /** The path and query without secrets; shortened while the caller is not authenticated. */
  get shownURL(): string {
    const shown = (this.#shownURL ??= shownURL(this.#url));
    return this.user === undefined ? anonymousURL(shown) : shown;
  }

  get userAgent(): string {
    return this.req.headers['user-agent'] ?? '';
  }

  /** Made only for those who ask. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#over) this.#abort.abort(over);
    return this.#abort.signal;
  }

  onEnd(cleanup: () => void): void {
    if (this.#ended) cleanup();
    else this.#cleanups.push(cleanup);
  }

  /**
   * For what the request holds that others may want: given back as soon as it is `answered`. Who does not read the answer would keep it
   * for as long as they like.
   */
  onAnswered(giveBack: () => void): void {
    if (this.#ended) giveBack();
    else this.#places.push(giveBack);
  }

  /** Nothing is left to do here but that the answer is read; of a large one it is waited for, since it is held in memory. */
  answered(): void {
    const { writableEnded, writableLength } = this.res;
    if (writableEnded && writableLength <= little) this.#awaitReader(smallResponses);
  }

  freeSlots(): void {
    this.#awaitReader(documents);
  }

  #awaitReader(unread: UnreadResponses): void {
    this.#run(this.#places.splice(0));
    if (!this.#ended) this.#removeUnread ??= unread.add(this);
  }

  /** A listener that comes late is told too. */
  onUserChange(listener: () => void): void {
    (this.#userListeners ??= []).push(listener);
    if (this.#userChanged) listener();
  }

  onRecheck(check: () => Promise<void>, refuse: (error: StatusError) => void): void {
    const checked = sharedRequest(check);
    const recheck = (): void => {
      checked().catch((error: unknown) => {
        if (this.#over) return;
        if (!(error instanceof StatusError))
          this.log.error('recheck of a stream failed', { auditID: this.auditID, error });
        // 429: there is no decision yet.
        else if (error.code < 500 && error.code !== 429) refuse(error);
      });
    };
    (this.#rechecks ??= []).push(recheck);
    if (this.#userChanged) recheck();
  }

  /** Rights may have been lost since the stream began. */
  recheck(): void {
    for (const recheck of this.#rechecks ?? []) recheck();
  }

  /** The same credential, authenticated again. */
  setUser(user: UserInfo): void {
    if (isDeepStrictEqual(user, this.user)) return;
    this.user = user;
    this.#userChanged = true;
    for (const listener of this.#userListeners ?? []) listener();
    this.recheck();
  }

  /** As logged: what was never answered has no status, whatever it might have become; 499 is nginx's word for it. */
  get status(): number {
    return this.res.headersSent || this.res.writableFinished ? this.res.statusCode : 499;
  }

  /** The response is with the network, or the client has gone away. */
  get hasEnded(): boolean {
    return this.#ended;
  }

  /** Nobody waits for an answer any more. */
  get isOver(): boolean {
    return this.#over;
  }

  /** The client went away, the deadline passed or the server drains. */
  abort(reason: unknown = over): void {
    this.#over = true;
    this.#abort?.abort(reason);
  }

  /**
   * Tells the client that the response is incomplete. That ends its connection over HTTP/1.1, and over HTTP/2 if the reset cannot be sent,
   * because the client does not read from TCP.
   */
  cut(): void {
    const { req, res } = this;
    const stream = http2StreamOf(res);
    if (stream === undefined) cutConnection(req.httpVersion, this.#socket);
    else {
      const { session } = stream;
      // Not CANCEL, as in cutOff.
      stream.close(constants.NGHTTP2_INTERNAL_ERROR);
      const late = setTimeout(() => {
        if (!stream.destroyed) session?.destroy();
      }, linger);
      stream.once('close', () => clearTimeout(late));
    }
  }

  /** Not by `close` alone: a client that never ends its request would put that off for as long as it likes. */
  #watch(): void {
    const { res } = this;
    const end = (): void => this.#end();
    res.once('close', end);
    const stream = http2StreamOf(res);
    if (stream === undefined) res.once('finish', end);
    else
      stream.once('finish', () => {
        end();
        // RFC 9113 section 8.1: what is left of the request is not wanted. Not at once: a reset may overtake the end of the answer,
        // which kube-apiserver and every client in Go then take for broken off.
        stream.resume();
        const cut = setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), linger);
        stream.once('close', () => clearTimeout(cut));
      });
    if (res.closed || res.destroyed || stream?.destroyed) end();
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#removeUnread?.();
    this.abort();
    this.#run(this.#places.splice(0));
    this.#run(this.#cleanups);
  }

  #run(cleanups: readonly (() => void)[]): void {
    for (const cleanup of cleanups)
      try {
        cleanup();
      } catch (error) {
        // The others still give back what they hold.
        this.log.error('the end of a request was not looked after', { auditID: this.auditID, error });
      }
  }
}

/** A step that every request takes. It throws to refuse. */
export type RequestFilter = (exchange: Exchange) => void | Promise<void>;
