import express, { type Request, type Response } from 'express';
import { methodNotAllowed } from '../runtime/errors.ts';
import { authenticated, authorizedByPath, strictest } from './access.ts';
import { noRoute, type MatchedRoute, type Route } from './route.ts';

/** Returns what serves a request: its route, or what throws the error of a path or method that has none. */
export type Match = (req: Request, res: Response, path: string) => MatchedRoute;

/**
 * A path without a route has the strictest access among the routes below the same first segment, so that 404 reveals no more to a caller
 * than those routes do. Other paths need the right to the path.
 */
export function createMatch(routes: readonly Route[]): Match {
  const router = express.Router({ caseSensitive: true });
  // The router calls one of these, or its callback, before it returns: none of them waits.
  let found: MatchedRoute | undefined;
  const serve = (route: MatchedRoute) => () => {
    found = route;
  };
  // Express tries one route after the other.
  const hotFirst = routes.toSorted((a, b) => Number(b.hot ?? false) - Number(a.hot ?? false));
  for (const route of hotFirst) router[route.method](route.path, serve(route));
  for (const [path, members] of Map.groupBy(routes, (route) => route.path))
    router.all(path, serve(withoutMethod(members)));
  const unmatched = new Map([['', noRoute(authenticated)]]);
  const nested = routes.filter(({ path }) => path.indexOf('/', 1) !== -1);
  for (const [segment, members] of Map.groupBy(nested, (route) => firstSegment(route.path)))
    unmatched.set(segment, noRoute(strictest(members.map(({ access }) => access))));
  const elsewhere = noRoute(authorizedByPath);
  return (req, res, path) => {
    found = undefined;
    router(req, res, (error: unknown) => {
      if (error !== undefined) throw error;
    });
    return found ?? unmatched.get(firstSegment(path)) ?? elsewhere;
  };
}

const firstSegment = (path: string): string => path.split('/', 2)[1] ?? '';

/** For methods that none of the routes of a path has. */
function withoutMethod(routes: readonly Route[]): MatchedRoute {
  const methods = routes.flatMap(({ method }) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()]));
  return {
    access: strictest(routes.map(({ access }) => access)),
    handler: () => {
      throw methodNotAllowed(methods);
    },
  };
}
