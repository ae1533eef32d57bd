/**
 * Suggests a path for a requested path that no route serves. The suggestion depends only on the routes and the
 * requested path, never on objects.
 */
import { editsBetween, maxEdits } from '../config/error-map.ts';
import type { Route } from './route.ts';

const isParameter = (segment: string): boolean => segment.startsWith(':');

/** Returns the edits between a path and a route of the same length; undefined if a segment is not a likely typo. */
function editsOf(path: readonly string[], route: readonly string[]): number | undefined {
  let sum = 0;
  for (const [at, segment] of route.entries()) {
    if (isParameter(segment)) continue;
    const edits = editsBetween(path[at] ?? '', segment);
    if (edits > maxEdits(segment)) return undefined;
    sum += edits;
  }
  return sum;
}

const isPrefix = (path: readonly string[], route: readonly string[]): boolean =>
  route.length < path.length && route.every((segment, at) => isParameter(segment) || segment === path[at]);

/**
 * Returns a function that describes the nearest path. The nearest path is a route whose segments differ by likely
 * typos, otherwise the longest route that is a prefix of the path. The function returns '' if there is no such route.
 */
export function nearestPath(routes: readonly Pick<Route, 'path' | 'removed'>[]): (path: string) => string {
  const known = [...new Set(routes.filter(({ removed }) => removed !== true).map(({ path }) => path))]
    .filter((path) => path !== '/' && !path.includes('*'))
    .map((path) => path.slice(1).split('/'));
  return (path) => {
    const segments = path.replace(/\/$/, '').slice(1).split('/');
    const filled = (route: readonly string[]): string =>
      `/${route.map((segment, at) => (isParameter(segment) ? segments[at] : segment)).join('/')}`;
    let typo: { readonly route: readonly string[]; readonly edits: number } | undefined;
    let prefix: readonly string[] = [];
    for (const route of known) {
      if (route.length > prefix.length && isPrefix(segments, route)) prefix = route;
      const edits = route.length === segments.length ? editsOf(segments, route) : undefined;
      if (edits !== undefined && edits < (typo?.edits ?? Infinity)) typo = { route, edits };
    }
    if (typo !== undefined) return `; did you mean ${filled(typo.route)}?`;
    return prefix.length === 0 ? '' : `; the nearest path is ${filled(prefix)}`;
  };
}
