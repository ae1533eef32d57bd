/**
 * The filters of every request, in this order. The order matters for security: a request is authenticated before it is counted and
 * authorized, and counted before it is served. The authentication has limits of its own.
 */
import express, { type NextFunction, type Request, type Response } from 'express';
import type { Auditor } from '../audit/auditor.ts';
import type { Authenticator } from '../auth/authenticators/index.ts';
import type { Authorizer } from '../auth/authorizers/authorizer.ts';
import type { PlatformConfiguration } from '../config/schema.ts';
import { methodNotAllowed, noSuchPath } from '../runtime/errors.ts';
import type { Logger } from '../runtime/logger.ts';
import { Exchange, type RequestFilter } from './exchange.ts';
import { expressOnBothVersions, normalized, type Face } from './listeners/express-on-http2.ts';
import {
  accessLog,
  audit,
  auditEnd,
  auditID,
  authentication,
  authorization,
  awaitingAuthentication,
  deadline,
  expectation,
  home,
  impersonation,
  inFlight,
  parameterLimit,
  protocol,
  queryAsGo,
  requestInfo,
  securityHeaders,
  sourceIP,
  strictTransportSecurity,
  webSocket,
} from './filters/index.ts';
import { HotRoutes } from './router.ts';
import type { OpenWatches } from './open-streams.ts';
import type { Gateway, Handler, Route } from './route.ts';
import { isHandshake } from './listeners/web-socket.ts';
import { requestEnded, writeError } from './response/write-error.ts';

export interface ChainOptions {
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  readonly requests: () => PlatformConfiguration['requests'];
  /** Paths that this face serves without an identity, beside those that every face does. */
  readonly open?: ReadonlySet<string>;
  /** Paths that need an identity but no permission. */
  readonly free?: (path: string) => boolean;
  readonly gateway?: Gateway;
  /** Where browsers that open `/` are led to. */
  readonly home?: string;
  /** Settings for Strict-Transport-Security; without them the header is not sent. */
  readonly strictTransport?: () => PlatformConfiguration['gateway'];
  readonly watches: OpenWatches;
  readonly auditor: Auditor;
  readonly log: Logger;
}

/** Serves these routes behind the filters, to requests of HTTP/1.1 and HTTP/2. */
export function createFace(routes: readonly Route[], options: ChainOptions): Face {
  const { requests, gateway } = options;
  const filters: readonly RequestFilter[] = [
    auditID,
    sourceIP(() => requests().trustedProxies),
    accessLog,
    auditEnd(options.auditor),
    securityHeaders(() => requests().corsAllowedOrigins),
    ...(options.strictTransport === undefined ? [] : [strictTransportSecurity(options.strictTransport)]),
    protocol,
    parameterLimit,
    (exchange) => {
      const { req, res, path, search, query } = exchange;
      exchange.info = requestInfo(req.method, path, query);
      exchange.isProxied = gateway?.prefixes.has(exchange.info.prefix) ?? false;
      if (!exchange.isProxied) return;
      if (search !== '') exchange.info = requestInfo(req.method, path, queryAsGo(search));
      // A console of an aggregated API is a stream too, by whatever name.
      if (isHandshake(res)) exchange.info = { ...exchange.info, isLongRunning: true };
    },
    deadline(writeError),
    home(options.home),
    authentication(options.authenticator, options.open ?? new Set(), awaitingAuthentication(requests)),
    audit(options.auditor),
    inFlight(requests),
    // From here on a stream ends with its identity, also while its rights are asked about.
    options.watches.filter(options.authenticator),
    impersonation(options.authorizer),
    authorization(options.authorizer, options.free ?? (() => false)),
    webSocket,
    expectation,
  ];

  const hot = new HotRoutes(routes);
  const routed = throughExpress(routes);

  async function serve(exchange: Exchange): Promise<void> {
    try {
      for (const filter of filters) {
        const pending = filter(exchange);
        if (pending !== undefined) await pending;
        // A filter or the deadline may have answered.
        if (exchange.res.writableEnded) return exchange.answered();
        // While a filter waited the session may have ended, or the client have gone away, who hears nothing of this.
        if (exchange.isOver) throw requestEnded();
      }
      const { req } = exchange;
      const handler = exchange.isProxied ? gateway?.handler : hot.find(req.method, exchange.path);
      if (handler === undefined) routed(exchange);
      else await runHandler(handler, exchange);
    } catch (error) {
      writeError(exchange, error);
    }
  }
  // Until it comes to Express they are not what it makes of them.
  return (req, res) => void serve(new Exchange(normalized(req) as Request, res as Response, options.log));
}

async function runHandler(handler: Handler, exchange: Exchange): Promise<void> {
  await handler(exchange.req, exchange.res, exchange);
  exchange.answered();
}

/** Express finds the route, or that there is none. */
function throughExpress(routes: readonly Route[]): (exchange: Exchange) => void {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.set('query parser', false);
  const exchanges = new WeakMap<Request, Exchange>();
  const exchangeOf = (req: Request): Exchange => exchanges.get(req) as Exchange;
  for (const { method, path, handler } of routes)
    app[method](path, (req: Request) => runHandler(handler, exchangeOf(req)));
  for (const [path, methods] of methodsOf(routes))
    app.route(path).all(() => {
      throw methodNotAllowed(methods);
    });
  app.use(() => {
    throw noSuchPath();
  });
  app.use((error: unknown, req: Request, _res: Response, _next: NextFunction) => writeError(exchangeOf(req), error));
  const handle = expressOnBothVersions(app);
  return (exchange) => {
    const { req, res } = exchange;
    exchanges.set(req, exchange);
    handle(req, res);
  };
}

function methodsOf(routes: readonly Route[]): Map<string, string[]> {
  const all = new Map<string, string[]>();
  for (const { path, method } of routes) {
    const methods = all.get(path) ?? [];
    methods.push(...(method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()]));
    all.set(path, methods);
  }
  return all;
}
