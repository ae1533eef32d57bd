import { LRUCache } from 'lru-cache';
import type { Request } from 'express';
import type { Exchange, RequestFilter } from '../exchange.ts';
import { isHandshake } from '../listeners/web-socket.ts';
import type { RequestURL } from '../request-url.ts';
import type { Gateway, MatchedRoute, RequestInfo, Route } from '../route.ts';
import { createMatch } from '../router.ts';
import { parseQueryAsGo, requestInfo } from './request-info.ts';

/** What the URL of a GET determines. */
interface Target {
  readonly url: RequestURL;
  readonly info: RequestInfo;
  readonly route: MatchedRoute;
  readonly isProxied: boolean;
  readonly parameters: Request['params'];
}

/** Maximum number of targets, and maximum length of their URLs. Each target takes about 3 KB. */
const maxTargets = 500;
const maxLength = 512;

/**
 * Parses the URL into `info` and finds the route: the gateway for its prefixes, otherwise one of `routes`. Clients often
 * repeat the same URLs, so the results for the latest GETs of resources are kept.
 */
export function routing(routes: readonly Route[], gateway: Gateway | undefined): RequestFilter {
  const match = createMatch(routes);
  const targets = new LRUCache<string, Target>({ max: maxTargets });
  /** URLs that were requested once. If each URL were kept at once, clients that never repeat a URL would pay for it. */
  const seen = new Set<string>();

  function find({ req, res, url }: Exchange): Target {
    const info = requestInfo(req.method, url.path, url.query);
    if (gateway?.prefixes.has(info.prefix) !== true)
      return { url, info, route: match(req, res, url.path), isProxied: false, parameters: req.params };
    const seenByGateway = url.search === '' ? info : requestInfo(req.method, url.path, parseQueryAsGo(url.search));
    return { url, info: seenByGateway, route: gateway, isProxied: true, parameters: {} };
  }

  function findKept(exchange: Exchange): Target {
    const { text } = exchange.url;
    const kept = targets.get(text);
    if (kept !== undefined) return kept;
    const target = find(exchange);
    if (!target.info.isResourceRequest || text.length > maxLength) return target;
    if (seen.delete(text)) targets.set(text, target);
    else {
      if (seen.size === maxTargets) seen.clear();
      seen.add(text);
    }
    return target;
  }

  return (exchange) => {
    const { req, res } = exchange;
    const { url, info, route, isProxied, parameters } = req.method === 'GET' ? findKept(exchange) : find(exchange);
    req.params = parameters;
    exchange.url = url;
    // A WebSocket to an aggregated API is a stream regardless of the subresource. An example is the console of a
    // virtual machine.
    exchange.info = isProxied && isHandshake(res) ? { ...info, isLongRunning: true } : info;
    exchange.route = route;
    exchange.isProxied = isProxied;
  };
}
