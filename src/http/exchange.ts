import type { Request, Response } from 'express';
import { constants } from 'node:http2';
import type { Socket } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import type { AuditBody } from '../audit/bodies.ts';
import type { AuditRecord, Failure, Outcome } from '../audit/record.ts';
import type { UserInfo } from '../auth/user.ts';
import { StatusError } from '../runtime/errors.ts';
import { sharedRequest } from '../runtime/promises.ts';
import type { Logger } from '../runtime/logger.ts';
import type { ServerSpan } from '../runtime/tracing.ts';
import { anonymousURL } from '../runtime/redaction.ts';
import { authorizedByPath } from './access.ts';
import { noRoute, type Arrival, type MatchedRoute, type RequestContext, type RequestInfo } from './route.ts';
import { recordSoon } from './records.ts';
import { RequestTarget } from './request-target.ts';
import { cutConnection, http2StreamOf } from './response/cut-off.ts';
import { UnreadResponses } from './unread-responses.ts';

/**
 * Reason that all aborts share. Without a reason, Node would create a DOMException with a stack trace for each abort.
 */
const requestOver = Object.assign(new Error('the request is over'), { name: 'AbortError' });

/** Milliseconds to wait for the rest of a request after its response is sent, and for a reset stream to close. */
const linger = 500;
/** Maximum bytes of a small response, which fits into the buffer of its stream. */
const maxSmallResponse = 16 * 1024;

/**
 * Small responses that clients have not read. Each holds about 20 KB, including the HTTP/2 stream. Clients read small
 * responses within milliseconds.
 */
const smallResponses = new UnreadResponses(4_000);
/** Documents shared by all callers. Clients may take seconds to read a document, so documents have their own limit. */
const documents = new UnreadResponses(1_000);

/** Route of a request until the routing filter has found its route. */
const unmatched = noRoute(authorizedByPath);

export interface Completion extends Outcome {
  /** Seconds from the start of the request to its end. */
  readonly seconds: number;
}

/** State of one request. Filters set its properties, and handlers see it as a RequestContext. */
export class Exchange implements RequestContext {
  readonly req: Request;
  readonly res: Response;
  readonly started: number = performance.now();
  /** Target of the request. The routing filter may replace it with an equal target that is already parsed. */
  target: RequestTarget;
  readonly log: Logger;
  info: RequestInfo;
  route: MatchedRoute = unmatched;
  auditID = '';
  sourceIP = '';
  user: UserInfo | undefined;
  impersonated: UserInfo | undefined;
  /** True if the gateway serves the request. */
  isProxied = false;
  audit: AuditRecord | undefined;
  #annotations: Map<string, string> | undefined;
  arrival: Arrival | undefined;
  /** Collector of the request body for the audit event; undefined if the audit policy records no request bodies. */
  requestBody: AuditBody | undefined;
  /** Span of the request; undefined while tracing is off. */
  span: ServerSpan | undefined;
  /** The error with which the request ended. */
  failure: Failure | undefined;
  readonly #cleanups: (() => void)[] = [];
  readonly #releases: (() => void)[] = [];
  readonly #records: ((completion: Completion) => void)[] = [];
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
    this.target = new RequestTarget(req.url);
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

  /** The path as received, without the query. */
  get path(): string {
    return this.target.path;
  }

  get query(): URLSearchParams {
    return this.target.query;
  }

  /** The path and query without secrets. The path and query are shortened while the caller is not authenticated. */
  get shownURL(): string {
    return this.user === undefined ? anonymousURL(this.target.shown) : this.target.shown;
  }

  annotate(key: string, value: string): void {
    (this.#annotations ??= new Map()).set(key, value);
    this.audit?.annotate(key, value);
  }

  /** Returns the last value of an annotation of the audit event. */
  annotation(key: string): string | undefined {
    return this.#annotations?.get(key);
  }

  get userAgent(): string {
    return this.req.headers['user-agent'] ?? '';
  }

  /** Signal of the request, which is created on first use. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#over) this.#abort.abort(requestOver);
    return this.#abort.signal;
  }

  onEnd(cleanup: () => void): void {
    if (this.#ended) cleanup();
    else this.#cleanups.push(cleanup);
  }

  /** Calls `record` soon after the request has ended. Call this method only before the request is served. */
  onCompleted(record: (completion: Completion) => void): void {
    this.#records.push(record);
  }

  /**
   * Runs `release` when a small response is written, or after `freeSlots`, before the client has read the response. Use
   * this method for shared resources such as slots, which a client that does not read the response could otherwise hold
   * indefinitely. After a large response, `release` runs at the end of the request.
   */
  onResponseWritten(release: () => void): void {
    if (this.#ended) release();
    else this.#releases.push(release);
  }

  /**
   * Reports that the server has written the response. A large response is held in memory, and keeps its slots until the
   * client has read it.
   */
  responseWritten(): void {
    const { writableEnded, writableLength } = this.res;
    if (writableEnded && writableLength <= maxSmallResponse) this.#awaitReader(smallResponses);
  }

  freeSlots(): void {
    this.#awaitReader(documents);
  }

  #awaitReader(unread: UnreadResponses): void {
    this.#run(this.#releases.splice(0));
    if (!this.#ended) this.#removeUnread ??= unread.add(this);
  }

  /** Calls the listener whenever the user changes, and at once if the user has already changed. */
  onUserChange(listener: () => void): void {
    (this.#userListeners ??= []).push(listener);
    if (this.#userChanged) listener();
  }

  onRecheck(check: () => Promise<void>, refuse: (error: StatusError) => void): void {
    const checked = sharedRequest(check);
    const recheck = (): void => {
      checked().catch((error: unknown) => {
        if (this.#over) return;
        if (!(error instanceof StatusError)) this.log.error('stream recheck failed', { auditID: this.auditID, error });
        // Status 429 means that the rights were not reviewed, so the stream continues.
        else if (error.code < 500 && error.code !== 429) refuse(error);
      });
    };
    (this.#rechecks ??= []).push(recheck);
    if (this.#userChanged) recheck();
  }

  /** Repeats the checks of the stream, because the caller may have lost rights since the stream started. */
  recheck(): void {
    for (const recheck of this.#rechecks ?? []) recheck();
  }

  /** Sets the user after the credential of an open stream was authenticated again. */
  setUser(user: UserInfo): void {
    if (isDeepStrictEqual(user, this.user)) return;
    this.user = user;
    this.#userChanged = true;
    for (const listener of this.#userListeners ?? []) listener();
    this.recheck();
  }

  /** Status of the response; 499, as in nginx, if the client disconnected before the response. */
  get status(): number {
    return this.res.headersSent || this.res.writableFinished ? this.res.statusCode : 499;
  }

  /** True once the response was handed to the network, or the client has disconnected. */
  get hasEnded(): boolean {
    return this.#ended;
  }

  /** True once the request is aborted or has ended. No client waits for a response then. */
  get isOver(): boolean {
    return this.#over;
  }

  /**
   * Ends the work for the request, because the client disconnected, the deadline passed, the session was revoked or the
   * server drains.
   */
  abort(reason: unknown = requestOver): void {
    this.#over = true;
    this.#abort?.abort(reason);
  }

  /**
   * Ends the response in a way that shows the client that the response is incomplete. Ends the connection of an
   * HTTP/1.1 client. Also ends the connection of an HTTP/2 client that does not read from TCP, because the reset cannot
   * be sent.
   */
  cut(): void {
    const { req, res } = this;
    const stream = http2StreamOf(res);
    if (stream === undefined) cutConnection(req.httpVersion, this.#socket);
    else {
      const { session } = stream;
      // CANCEL is not used, for the reason given in the comment of `cutOff`.
      stream.close(constants.NGHTTP2_INTERNAL_ERROR);
      const late = setTimeout(() => {
        if (!stream.destroyed) session?.destroy();
      }, linger);
      stream.once('close', () => clearTimeout(late));
    }
  }

  /**
   * Detects the end of the response. The event `close` alone is not enough: a client that never ends its request would
   * delay the event indefinitely.
   */
  #watch(): void {
    const { res } = this;
    const end = (): void => this.#end();
    res.once('close', end);
    const stream = http2StreamOf(res);
    if (stream === undefined) res.once('finish', end);
    else
      stream.once('finish', () => {
        end();
        // RFC 9113 section 8.1: NO_ERROR requests the client to stop sending the request. The reset is delayed because
        // it may overtake the end of the response, which kube-apiserver and all Go clients would then treat as
        // incomplete.
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
    this.#run(this.#releases.splice(0));
    this.#run(this.#cleanups);
    const { status, failure } = this;
    const completion: Completion = {
      time: Date.now(),
      seconds: (performance.now() - this.started) / 1_000,
      status,
      failure,
      isWhole: this.res.writableFinished,
    };
    const record = (): void => this.#run(this.#records.map((one) => () => one(completion)));
    // Bodies do not wait, because the memory of all bodies is limited.
    if (this.audit?.holdsBody === true) record();
    else recordSoon(record);
  }

  #run(steps: readonly (() => void)[]): void {
    for (const step of steps)
      try {
        step();
      } catch (error) {
        // The remaining steps must still run.
        this.log.error('cleanup or record of a request failed', { auditID: this.auditID, error });
      }
  }
}

/** A step that every request passes. A filter throws to refuse the request. */
export type RequestFilter = (exchange: Exchange) => void | Promise<void>;
