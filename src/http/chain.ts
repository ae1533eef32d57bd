/**
 * Runs every request through the filters in the order below. The order matters for security. Routing precedes
 * authentication, because the route's `access` states the required authentication and rights. The in-flight limits and
 * authorization follow authentication. Requests that wait for authentication have their own limits.
 */
import type { Request, Response } from 'express';
import type { Auditor } from '../audit/auditor.ts';
import type { Authenticator } from '../auth/authenticators/index.ts';
import type { Authorizer } from '../auth/authorizers/authorizer.ts';
import type { PlatformConfiguration } from '../config/schema.ts';
import type { Logger } from '../runtime/logger.ts';
import { tracing } from '../runtime/tracing.ts';
import { Exchange, type RequestFilter } from './exchange.ts';
import { normalized, type HttpHandler } from './listeners/http-handler.ts';
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
  impersonation,
  inFlight,
  pageRedirect,
  parameterLimit,
  protocol,
  routing,
  securityHeaders,
  sourceIP,
  strictTransportSecurity,
  webSocket,
} from './filters/index.ts';
import type { PageOptions } from './filters/browser.ts';
import { countLogin } from './filters/request-metrics.ts';
import type { OpenStreams } from './open-streams.ts';
import type { Gateway, Route } from './route.ts';
import { requestEnded, writeError } from './response/write-error.ts';
import { serveWithin } from './request-span.ts';

export interface ChainOptions extends PageOptions {
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  readonly requests: () => PlatformConfiguration['requests'];
  readonly gateway?: Gateway;
  /** Settings of Strict-Transport-Security. The header is not sent without them. */
  readonly strictTransport?: () => PlatformConfiguration['gateway'];
  /** Fraction of the requests that are logged, from 0 to 1. Default: all. Status 5xx is always logged. */
  readonly requestSampling?: () => number;
  readonly openStreams: OpenStreams;
  readonly auditor: Auditor;
  readonly log: Logger;
}

/** Returns the listener that serves these routes behind the filters, over HTTP/1.1 and HTTP/2. */
export function createHttpHandler(routes: readonly Route[], options: ChainOptions): HttpHandler {
  const { requests } = options;
  const filters: readonly RequestFilter[] = [
    auditID,
    sourceIP(() => requests().trustedProxies),
    accessLog(options.requestSampling),
    auditEnd(options.auditor),
    securityHeaders(() => requests().corsAllowedOrigins),
    ...(options.strictTransport === undefined ? [] : [strictTransportSecurity(options.strictTransport)]),
    protocol,
    parameterLimit,
    routing(routes, options.gateway),
    deadline(writeError),
    pageRedirect(options),
    authentication(options.authenticator, awaitingAuthentication(requests)),
    audit(options.auditor),
    inFlight(requests),
    // This filter precedes the access review, so that a stream also ends if the identity that opened it is revoked
    // during the review.
    options.openStreams.filter(options.authenticator),
    impersonation(options.authorizer, options.gateway),
    authorization(options.authorizer),
    webSocket,
    expectation,
  ];

  async function serve(exchange: Exchange): Promise<void> {
    try {
      for (const filter of filters) {
        const pending = filter(exchange);
        if (pending !== undefined) await pending;
        // A filter or the deadline may have sent the response.
        if (exchange.res.writableEnded) return exchange.responseWritten();
        // While a filter waited, the session may have been revoked or the client may have disconnected.
        if (exchange.isOver) throw requestEnded();
      }
      await exchange.route.handler(exchange.req, exchange.res, exchange);
      exchange.responseWritten();
    } catch (error) {
      writeError(exchange, error);
    } finally {
      countLogin(exchange);
    }
  }
  // Only the router of Express is used, so requests and responses lack the methods that an Express application adds.
  return (req, res) => {
    const exchange = new Exchange(normalized(req) as Request, res as Response, options.log);
    const { tracer } = tracing;
    if (tracer === undefined) void serve(exchange);
    else serveWithin(tracer, exchange, serve);
  };
}
