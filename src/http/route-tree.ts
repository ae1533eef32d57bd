import type { Route } from './route.ts';

interface FoundRoute {
  readonly route: Route;
  /** Values of the path parameters, by name. */
  readonly parameters: Readonly<Record<string, string>>;
}

interface Leaf {
  readonly route: Route;
  /** Names of the path parameters in order. */
  readonly names: readonly string[];
}

/** A segment of the paths of routes. */
interface Segment {
  readonly literals: Map<string, Segment>;
  parameter: Segment | undefined;
  /** Routes whose path ends here, by method in upper case. */
  readonly leaves: Map<string, Leaf>;
}

/** Matches the paths of routes whose segments are literals or parameters. */
const supported = /^(?:\/(?::\w+|[\w.~@-]+))+$/;
/** Matches paths whose segments are neither empty nor encoded. */
const plain = /^(?:\/[\w.~:@-]+)+$/;

const newSegment = (): Segment => ({ literals: new Map(), parameter: undefined, leaves: new Map() });

/**
 * Finds routes by the segments of a path, in a time that does not depend on the number of routes. Routes with other
 * parts, such as wildcards, are left to Express.
 */
export class RouteTree {
  readonly #root = newSegment();

  constructor(routes: readonly Route[]) {
    for (const route of routes) if (supported.test(route.path)) this.#add(route);
  }

  /**
   * Returns the route for the path. At each segment, a literal precedes a parameter. Returns undefined if there is no
   * route, and for paths that are left to Express: paths that must be decoded or end with a slash.
   */
  find(method: string, path: string): FoundRoute | undefined {
    if (!plain.test(path)) return undefined;
    const values: string[] = [];
    const leaf = search(this.#root, method === 'HEAD' ? 'GET' : method, path.split('/'), 1, values);
    if (leaf === undefined) return undefined;
    const parameters: Record<string, string> = {};
    for (const [at, name] of leaf.names.entries()) parameters[name] = values[at] as string;
    return { route: leaf.route, parameters };
  }

  #add(route: Route): void {
    // Express would choose the earlier route. The pattern is searched as a path, in which `:name` matches only
    // parameters.
    const hiding = this.find(route.method.toUpperCase(), route.path);
    if (hiding !== undefined) throw new Error(`the route ${route.path} follows ${hiding.route.path}, which hides it`);
    const names: string[] = [];
    let segment = this.#root;
    for (const text of route.path.split('/').slice(1))
      if (text.startsWith(':')) {
        names.push(text.slice(1));
        segment = segment.parameter ??= newSegment();
      } else {
        const next = segment.literals.get(text) ?? newSegment();
        segment.literals.set(text, next);
        segment = next;
      }
    segment.leaves.set(route.method.toUpperCase(), { route, names });
  }
}

/** Returns the leaf below `segment` for the texts from `at`, and appends the values of its parameters to `values`. */
function search(
  segment: Segment,
  method: string,
  texts: readonly string[],
  at: number,
  values: string[],
): Leaf | undefined {
  const text = texts[at];
  if (text === undefined) return segment.leaves.get(method);
  const literal = segment.literals.get(text);
  const found = literal && search(literal, method, texts, at + 1, values);
  if (found !== undefined || segment.parameter === undefined) return found;
  values.push(text);
  const other = search(segment.parameter, method, texts, at + 1, values);
  if (other === undefined) values.pop();
  return other;
}
