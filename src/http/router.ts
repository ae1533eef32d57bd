import express, { type Request, type Response } from 'express';
import { methodNotAllowed } from '../runtime/errors.ts';
import { authorizedByPath, strictest, type UnmatchedPaths } from './access.ts';
import { noRoute, type MatchedRoute, type Route } from './route.ts';

/** Returns what serves a request: its route, or what throws the error of a path or method that has none. */
export type Match = (req: Request, res: Response, path: string) => MatchedRoute;

export function createMatch(routes: readonly Route[], unmatched: readonly UnmatchedPaths[]): Match {
  const hot = new HotRoutes(routes);
  const router = express.Router({ caseSensitive: true });
  // The router calls one of these, or its callback, before it returns: none of them waits.
  let found: MatchedRoute | undefined;
  const serve = (route: MatchedRoute) => () => {
    found = route;
  };
  for (const route of routes) router[route.method](route.path, serve(route));
  for (const [path, members] of Map.groupBy(routes, (route) => route.path))
    router.all(path, serve(withoutMethod(members)));
  const elsewhere = unmatched.map(({ paths, access }) => ({ paths, route: noRoute(access) }));
  const nowhere = noRoute(authorizedByPath);
  return (req, res, path) => {
    found = hot.find(req.method, path);
    if (found === undefined)
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

interface Segment {
  readonly named: Map<string, Segment>;
  any: Segment | undefined;
  route: Route | undefined;
}

const segment = (): Segment => ({ named: new Map(), any: undefined, route: undefined });

/** What Express would take for another spelling of a path, it is left to. */
const plain = /^(?:\/[\w.:-]+)+$/;

/** The routes that are matched without Express' router, by their paths. */
export class HotRoutes {
  readonly #root = segment();

  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      const { method, path, hot } = route;
      if (hot !== true) continue;
      if (method !== 'get' || !plain.test(path)) throw new Error(`${method} ${path} cannot be a hot route`);
      let at = this.#root;
      for (const name of path.split('/')) {
        let next = name.startsWith(':') ? at.any : at.named.get(name);
        if (next === undefined) {
          next = segment();
          if (name.startsWith(':')) at.any = next;
          else at.named.set(name, next);
        }
        at = next;
      }
      // As with Express, the first one counts.
      at.route ??= route;
    }
  }

  /** Undefined: Express is to find out. */
  find(method: string | undefined, path: string): Route | undefined {
    if ((method !== 'GET' && method !== 'HEAD') || !plain.test(path)) return undefined;
    return find(this.#root, path.split('/'), 0);
  }
}

function find({ named, any, route }: Segment, names: readonly string[], depth: number): Route | undefined {
  if (depth === names.length) return route;
  const next = named.get(names[depth] as string);
  return (next && find(next, names, depth + 1)) ?? (any && find(any, names, depth + 1));
}
