/**
 * What every request crosses, in this order. Ordering is security: an identity is known before it is counted and asked for its
 * rights, and nothing expensive happens before the global limit.
 */
import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import type { Authenticator } from '../auth/authenticators/index.ts';
import type { Authorizer } from '../auth/authorizers/authorizer.ts';
import type { PlatformConfiguration } from '../config/schema.ts';
import { methodNotAllowed, noSuchPath } from '../errors.ts';
import type { Logger } from '../logger.ts';
import { Exchange, type Filter } from './exchange.ts';
import {
  accessLog,
  auditID,
  authentication,
  authorization,
  deadline,
  inFlight,
  perUser,
  protocol,
  requestInfo,
  securityHeaders,
  sourceIP,
} from './filters/index.ts';
import type { OpenWatches } from './open-watches.ts';
import type { Route } from './route.ts';
import { writeError } from './write-error.ts';

export interface ChainOptions {
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  readonly requests: () => PlatformConfiguration['requests'];
  /** Paths that this face serves without an identity, beside those that every face does. */
  readonly open?: ReadonlySet<string>;
  /** Paths that need an identity but no permission. */
  readonly free?: (path: string) => boolean;
  readonly watches: OpenWatches;
  readonly log: Logger;
}

/** An Express application that serves these routes behind the filters. */
export function createFace(routes: readonly Route[], options: ChainOptions): Express {
  const { requests } = options;
  const filters: readonly Filter[] = [
    auditID,
    sourceIP(() => requests().trustedProxies),
    accessLog,
    securityHeaders(() => requests().corsAllowedOrigins),
    protocol,
    (exchange) => {
      exchange.info = requestInfo(exchange.req.method, exchange.path, exchange.query);
    },
    inFlight(() => requests().maxInFlight),
    deadline(writeError),
    authentication(options.authenticator, options.open ?? new Set()),
    options.watches.filter(options.authenticator),
    perUser(() => requests().maxInFlightPerUser),
    authorization(options.authorizer, options.free ?? (() => false)),
  ];

  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.set('query parser', false);

  const exchanges = new WeakMap<Request, Exchange>();
  const exchangeOf = (req: Request, res: Response): Exchange => {
    let exchange = exchanges.get(req);
    if (exchange === undefined) exchanges.set(req, (exchange = new Exchange(req, res, options.log)));
    return exchange;
  };

  app.use(async (req: Request, res: Response, next: NextFunction) => {
    const exchange = exchangeOf(req, res);
    for (const filter of filters) {
      const pending = filter(exchange);
      if (pending !== undefined) await pending;
      // A filter or the deadline may have answered, or the client may have gone away while a filter waited.
      if (res.writableEnded || exchange.isOver) return;
    }
    next();
  });
  for (const { method, path, handler } of routes)
    app[method](path, (req: Request, res: Response) => handler(req, res, exchangeOf(req, res)));
  for (const [path, methods] of methodsOf(routes))
    app.route(path).all(() => {
      throw methodNotAllowed(methods);
    });
  app.use(() => {
    throw noSuchPath();
  });
  app.use((error: unknown, req: Request, res: Response, _next: NextFunction) =>
    writeError(exchangeOf(req, res), error),
  );
  return app;
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
