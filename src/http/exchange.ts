import type { Request, Response } from 'express';
import type { UserInfo } from '../auth/user.ts';
import type { Logger } from '../logger.ts';
import type { RequestContext, RequestInfo } from './route.ts';

/** One request on its way through the filters, which fill it in; handlers see it as a RequestContext. */
export class Exchange implements RequestContext {
  readonly req: Request;
  readonly res: Response;
  readonly started: number = performance.now();
  readonly query: URLSearchParams;
  /** The path as it came, without the query. */
  readonly path: string;
  readonly log: Logger;
  info: RequestInfo;
  auditID = '';
  sourceIP = '';
  user: UserInfo | undefined;
  #abort: AbortController | undefined;
  #over = false;

  constructor(req: Request, res: Response, log: Logger) {
    this.req = req;
    this.res = res;
    this.log = log;
    const at = req.url.indexOf('?');
    this.path = at === -1 ? req.url : req.url.slice(0, at);
    this.query = new URLSearchParams(at === -1 ? '' : req.url.slice(at + 1));
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
    };
  }

  /** Made only for those who ask. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#over) this.#abort.abort();
    return this.#abort.signal;
  }

  /** Nobody waits for an answer any more. */
  get isOver(): boolean {
    return this.#over;
  }

  /** The client went away, the deadline passed or the server drains. */
  abort(reason?: unknown): void {
    this.#over = true;
    this.#abort?.abort(reason);
  }
}

/** A step that every request takes. It throws to refuse. */
export type Filter = (exchange: Exchange) => void | Promise<void>;
