/**
 * The filters of every request, in this order. The order matters for security: a request is matched to its route, whose `access` says
 * what is demanded, authenticated before it is counted and authorized, and counted before it is served. The authentication has limits of
 * its own.
 */
import type { Request, Response } from 'express';
import type { Auditor } from '../audit/auditor.ts';
import type { Authenticator } from '../auth/authenticators/index.ts';
import type { Authorizer } from '../auth/authorizers/authorizer.ts';
import type { PlatformConfiguration } from '../config/schema.ts';
import type { Logger } from '../runtime/logger.ts';
import { Exchange, type RequestFilter } from './exchange.ts';
import { normalized, type Face } from './listeners/face.ts';
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
  routing,
  securityHeaders,
  sourceIP,
  strictTransportSecurity,
  webSocket,
} from './filters/index.ts';
import type { OpenStreams } from './open-streams.ts';
import type { Gateway, Route } from './route.ts';
import { requestEnded, writeError } from './response/write-error.ts';

export interface ChainOptions {
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  readonly requests: () => PlatformConfiguration['requests'];
  readonly gateway?: Gateway;
  /** Where browsers that open `/` are led to. */
  readonly home?: string;
  /** Settings for Strict-Transport-Security; without them the header is not sent. */
  readonly strictTransport?: () => PlatformConfiguration['gateway'];
  readonly openStreams: OpenStreams;
  readonly auditor: Auditor;
  readonly log: Logger;
}

/** Serves these routes behind the filters, to requests of HTTP/1.1 and HTTP/2. */
export function createFace(routes: readonly Route[], options: ChainOptions): Face {
  const { requests } = options;
  const filters: readonly RequestFilter[] = [
    auditID,
    sourceIP(() => requests().trustedProxies),
    accessLog,
    auditEnd(options.auditor),
    securityHeaders(() => requests().corsAllowedOrigins),
    ...(options.strictTransport === undefined ? [] : [strictTransportSecurity(options.strictTransport)]),
    protocol,
    parameterLimit,
    routing(routes, options.gateway),
    deadline(writeError),
    home(options.home),
    authentication(options.authenticator, awaitingAuthentication(requests)),
    audit(options.auditor),
    inFlight(requests),
    // From here on a stream ends with its identity, also while its rights are asked about.
    options.openStreams.filter(options.authenticator),
    impersonation(options.authorizer),
    authorization(options.authorizer),
    webSocket,
    expectation,
  ];

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
      await exchange.route.handler(exchange.req, exchange.res, exchange);
      exchange.answered();
    } catch (error) {
      writeError(exchange, error);
    }
  }
  // Express' router is all that is used of it: they have none of the methods that its applications add.
  return (req, res) => void serve(new Exchange(normalized(req) as Request, res as Response, options.log));
}
