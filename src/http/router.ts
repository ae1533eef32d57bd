import express, { type Request, type Response } from 'express';
import { methodNotAllowed } from '../runtime/errors.ts';
import { authorizedByPath, strictest, type UnmatchedPaths } from './access.ts';
import { noRoute, type MatchedRoute, type Route } from './route.ts';

/** Returns what serves a request: its route, or what throws the error of a path or method that has none. */
export type Match = (req: Request, res: Response, path: string) => MatchedRoute;

export function createMatch(routes: readonly Route[], unmatched: readonly UnmatchedPaths[]): Match {
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
  const elsewhere = unmatched.map(({ paths, access }) => ({ paths, route: noRoute(access) }));
  const nowhere = noRoute(authorizedByPath);
  return (req, res, path) => {
    found = undefined;
    router(req, res, (error: unknown) => {
      if (error !== undefined) throw error;
    });
    return found ?? elsewhere.find(({ paths }) => paths.test(path))?.route ?? nowhere;
  };
}

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
