import type { Handler, Route } from './route.ts';

interface Segment {
  readonly named: Map<string, Segment>;
  any: Segment | undefined;
  handler: Handler | undefined;
}

const segment = (): Segment => ({ named: new Map(), any: undefined, handler: undefined });

/** What Express would take for another spelling of a path, it is left to. */
const plain = /^(?:\/[\w.:-]+)+$/;

/** The routes that are served without a way through Express' router, by their paths. */
export class HotRoutes {
  readonly #root = segment();

  constructor(routes: readonly Route[]) {
    for (const { method, path, hot, handler } of routes) {
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
      at.handler ??= handler;
    }
  }

  /** Undefined: Express is to find out. */
  find(method: string | undefined, path: string): Handler | undefined {
    if ((method !== 'GET' && method !== 'HEAD') || !plain.test(path)) return undefined;
    return find(this.#root, path.split('/'), 0);
  }
}

function find({ named, any, handler }: Segment, names: readonly string[], depth: number): Handler | undefined {
  if (depth === names.length) return handler;
  const next = named.get(names[depth] as string);
  return (next && find(next, names, depth + 1)) ?? (any && find(any, names, depth + 1));
}
