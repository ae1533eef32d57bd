import express, { type Request, type Response } from 'express';
import { methodNotAllowed } from '../runtime/errors.ts';
import { authenticated, authorizedByPath, strictest } from './access.ts';
import { nearestPath } from './nearest-path.ts';
import { noRoute, type MatchedRoute, type Route } from './route.ts';
import { RouteTree } from './route-tree.ts';

/** The route that serves a request, and the values of the parameters in its path. */
export interface Match {
  readonly route: MatchedRoute;
  readonly parameters: Readonly<Request['params']>;
}

/**
 * Creates the matcher of these routes. The matcher returns a substitute, whose handler throws 404 or 405, if no route
 * serves a request. A path without a route has the strictest access of the routes below the same first segment. A 404
 * therefore reveals no more than those routes do. All other paths require the right to the path.
 */
export function createMatch(routes: readonly Route[]): (req: Request, res: Response, path: string) => Match {
  const router = express.Router({ caseSensitive: true });
  // The router is synchronous: it calls one of these handlers, or its callback, before it returns.
  let found: MatchedRoute | undefined;
  const serve = (route: MatchedRoute) => () => {
    found = route;
  };
  for (const route of routes) router[route.method](route.path, serve(route));
  for (const [path, members] of Map.groupBy(routes, (route) => route.path))
    router.all(path, serve(withoutMethod(members)));
  const hintFor = nearestPath(routes);
  const unmatched = new Map([['', noRoute(authenticated, hintFor)]]);
  const nested = routes.filter(({ path }) => path.indexOf('/', 1) !== -1);
  for (const [segment, members] of Map.groupBy(nested, (route) => firstSegment(route.path)))
    unmatched.set(segment, noRoute(strictest(members.map(({ access }) => access)), hintFor));
  const elsewhere = noRoute(authorizedByPath, hintFor);
  const tree = new RouteTree(routes);
  return (req, res, path) => {
    const quick = tree.find(req.method, path);
    if (quick !== undefined) return quick;
    found = undefined;
    // Express sets the parameters, or restores this value if it finds no route.
    req.params = {};
    router(req, res, (error: unknown) => {
      if (error !== undefined) throw error;
    });
    return { route: found ?? unmatched.get(firstSegment(path)) ?? elsewhere, parameters: req.params };
  };
}

const writes: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

const firstSegment = (path: string): string => path.split('/', 2)[1] ?? '';

/** Returns a substitute for requests whose path has routes, but none for their method. */
function withoutMethod(routes: readonly Route[]): MatchedRoute {
  const methods = routes.flatMap(({ method }) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()]));
  const { writtenAt } = routes.find((route) => route.writtenAt !== undefined) ?? {};
  return {
    access: strictest(routes.map(({ access }) => access)),
    async handler({ method }, _res, context) {
      const path = writes.has(method) ? await writtenAt?.(context) : undefined;
      throw methodNotAllowed(methods, path === undefined ? '' : `; send ${method} to ${path}`);
    },
  };
}
