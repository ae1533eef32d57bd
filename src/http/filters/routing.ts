import type { Response } from 'express';
import { LRUCache } from 'lru-cache';
import type { Exchange, RequestFilter } from '../exchange.ts';
import { redactText } from '../../runtime/redaction.ts';
import { isHandshake } from '../listeners/web-socket.ts';
import type { RequestTarget } from '../request-target.ts';
import type { Gateway, RequestInfo, Route } from '../route.ts';
import { createMatch, type Match } from '../router.ts';
import { parseQueryAsGo, requestInfo } from './request-info.ts';

/** Result of routing, which depends only on the method and the target of a request. */
interface Routing extends Match {
  readonly target: RequestTarget;
  readonly info: RequestInfo;
}

/**
 * Maximum number of cached results, and maximum length of their targets. A result takes about 3 KB, and up to 25 KB
 * with a query of many terms.
 */
const maxCached = 500;
const maxLength = 256;

/**
 * Parses the target into `info` and finds the route: the gateway for its prefixes, otherwise one of `routes`. The
 * results for the latest GETs of resources are cached, because clients repeat them. Routing precedes authentication, so
 * anyone can evict a result or delay its caching, which only costs time.
 */
export function routing(routes: readonly Route[], gateway: Gateway | undefined): RequestFilter {
  const match = createMatch(routes);
  // BoundedCache is not used, because it computes a digest of each long key.
  const cached = new LRUCache<string, Routing>({ max: maxCached });
  /**
   * Targets that were requested once. A result is cached at the second request, because caching the results of targets
   * that are not repeated takes longer than routing.
   */
  const requestedOnce = new Set<string>();

  function find({ req, res, target }: Exchange): Routing {
    const { path, search, query } = target;
    const info = requestInfo(req.method, path, query);
    if (gateway?.prefixes.has(info.prefix) !== true) return { target, info, ...match(req, res, path) };
    const infoAsGo = search === '' ? info : requestInfo(req.method, path, parseQueryAsGo(search));
    return { target, info: infoAsGo, route: gateway, parameters: {} };
  }

  function findCached(exchange: Exchange): Routing {
    const { text } = exchange.target;
    const known = cached.get(text);
    if (known !== undefined) return known;
    const found = find(exchange);
    if (!isCacheable(found)) return found;
    if (requestedOnce.delete(text)) cached.set(text, found);
    else {
      if (requestedOnce.size === maxCached) requestedOnce.clear();
      requestedOnce.add(text);
    }
    return found;
  }

  return (exchange) => {
    const { req, res } = exchange;
    const { target, info, route, parameters } = req.method === 'GET' ? findCached(exchange) : find(exchange);
    exchange.target = target;
    exchange.route = route;
    exchange.isProxied = route === gateway;
    exchange.info = exchange.isProxied ? withHandshake(info, res) : info;
    req.params = parameters;
  };
}

/** Returns false for targets that may contain secrets, which are not kept in memory, and for long targets. */
const isCacheable = ({ target: { text, shown }, info }: Routing): boolean =>
  text.length <= maxLength &&
  info.isResourceRequest &&
  info.subresource === '' &&
  shown === text &&
  redactText(text) === text;

/**
 * Returns the info of a proxied request. A WebSocket to an aggregated API is a stream regardless of the subresource. An
 * example is the console of a virtual machine.
 */
const withHandshake = (info: RequestInfo, res: Response): RequestInfo =>
  isHandshake(res) ? { ...info, isLongRunning: true } : info;
