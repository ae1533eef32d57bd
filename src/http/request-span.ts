/** Serves requests within trace spans. */
import { resources } from '../runtime/metrics/definitions.ts';
import { redactText } from '../runtime/redaction.ts';
import { runWithin, type ServedRequest, type Tracer } from '../runtime/tracing.ts';
import type { Exchange } from './exchange.ts';
import { isSecure } from './listeners/http-handler.ts';

/** Serves a request within a span, which ends with the response. */
export function serveWithin(tracer: Tracer, exchange: Exchange, serve: (exchange: Exchange) => Promise<void>): void {
  const span = tracer.startServer(exchange.req.headers);
  exchange.span = span;
  const isHTTPS = isSecure(exchange.req);
  exchange.onEnd(() => span.end(() => describe(exchange, isHTTPS)));
  runWithin(span, serve, exchange);
}

function describe(exchange: Exchange, isHTTPS: boolean): ServedRequest {
  const { req, path, sourceIP, userAgent, auditID, status } = exchange;
  return {
    method: req.method,
    // The query is omitted, because it may contain secrets.
    path: redactText(path),
    route: routeOf(exchange),
    scheme: isHTTPS ? 'https' : 'http',
    version: req.httpVersionMajor >= 2 ? String(req.httpVersionMajor) : req.httpVersion,
    sourceIP,
    userAgent: redactText(userAgent),
    auditID,
    status: status === 499 ? undefined : status,
  };
}

/**
 * Returns the pattern of the path. The pattern of a forwarded request contains the resource if the resource is known.
 * The pattern contains nothing else that callers choose, because the number of patterns must stay small.
 */
function routeOf({ route, info, isProxied }: Exchange): string | undefined {
  if (!isProxied) return route.path;
  const { prefix, isResourceRequest, group, namespace, resource, name, subresource } = info;
  if (!isResourceRequest) return `/${prefix}/*path`;
  return [
    '',
    prefix,
    ...(group === '' ? [] : [':group']),
    ':version',
    ...(namespace === '' || resource === 'namespaces' ? [] : ['namespaces', ':namespace']),
    resources.bound(resource) === resource ? resource : ':resource',
    ...(name === '' ? [] : [':name']),
    ...(subresource === '' ? [] : [':subresource']),
  ].join('/');
}
