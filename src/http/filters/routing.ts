import type { RequestFilter } from '../exchange.ts';
import { isHandshake } from '../listeners/web-socket.ts';
import type { Gateway, Route } from '../route.ts';
import { createMatch } from '../router.ts';
import { parseQueryAsGo, requestInfo } from './request-info.ts';

/** Parses the URL into `info` and finds the route: the gateway for its prefixes, otherwise one of `routes`. */
export function routing(routes: readonly Route[], gateway: Gateway | undefined): RequestFilter {
  const match = createMatch(routes);
  return (exchange) => {
    const { req, res, path, search, query } = exchange;
    exchange.info = requestInfo(req.method, path, query);
    if (gateway?.prefixes.has(exchange.info.prefix) !== true) {
      exchange.route = match(req, res, path);
      return;
    }
    exchange.isProxied = true;
    exchange.route = gateway;
    if (search !== '') exchange.info = requestInfo(req.method, path, parseQueryAsGo(search));
    // A WebSocket to an aggregated API is a stream regardless of the subresource. An example is the console of a
    // virtual machine.
    if (isHandshake(res)) exchange.info = { ...exchange.info, isLongRunning: true };
  };
}
