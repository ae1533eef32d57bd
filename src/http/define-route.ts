/**
 * Defines a route in one place: its schemas describe and parse the request and provide the types of the handler. A
 * request is authorized before its body and parameters are parsed.
 */
import type { Request, Response } from 'express';
import type { UserInfo } from '../auth/user.ts';
import type { Access } from './access.ts';
import type { RequestBody } from './request/json-body.ts';
import type { QueryParameters } from './request/parameters.ts';
import {
  inPath,
  type ParameterDescription,
  type RequestContext,
  type ResponseDescriptions,
  type Route,
} from './route.ts';

/** Parameter names in an Express path: `'name'` for `/users/:name/sessions`. */
export type PathNames<P extends string> = P extends `${string}/${':' | '*'}${infer Name}/${infer Rest}`
  ? Name | PathNames<`/${Rest}`>
  : P extends `${string}/${':' | '*'}${infer Name}`
    ? Name
    : never;

/** Decoded path parameters. A wildcard (`*path`) is the list of its segments. */
export type PathValues<P extends string> = {
  readonly [N in PathNames<P>]: P extends `${string}/*${N}` | `${string}/*${N}/${string}` ? readonly string[] : string;
};

type UserOf<A extends Access> = A['kind'] extends 'authenticated' | 'authorized' ? UserInfo : UserInfo | undefined;

/** The request as `authorize` and `handler` receive it. */
export interface RouteRequest<P extends string, A extends Access> {
  readonly req: Request;
  readonly res: Response;
  readonly context: RequestContext & { readonly user: UserOf<A> };
  readonly path: PathValues<P>;
}

export interface ParsedRequest<P extends string, A extends Access, Q, B, G> extends RouteRequest<P, A> {
  readonly query: Q;
  readonly body: B;
  /** The result of `authorize`. */
  readonly granted: G;
}

export interface RouteDefinition<P extends string, A extends Access, Q, B, G> extends Pick<
  Route,
  'method' | 'summary' | 'removed' | 'writtenAt' | 'isPage'
> {
  readonly path: P;
  /** Markdown that states the required right and other facts for callers. */
  readonly description: string;
  readonly access: A;
  /** Descriptions of the path parameters, by parameter name. */
  readonly pathParameters?: Readonly<Record<PathNames<P>, string>>;
  /** Query parameters. If undefined, the query is ignored. */
  readonly query?: QueryParameters<Q>;
  readonly headers?: readonly ParameterDescription[];
  readonly body?: RequestBody<B>;
  readonly responses: ResponseDescriptions;
  /** Error statuses in addition to those that docs/openapi/error-responses.ts derives from the definition. */
  readonly errors?: readonly number[];
  /** Checks rights that `access` does not cover. Required if `access` is `authorizedByRoute`. */
  readonly authorize?: (request: RouteRequest<P, A>) => G | Promise<G>;
  readonly handler: (request: ParsedRequest<P, A, Q, B, G>) => void | Promise<void>;
}

/** Members of the definition that `access` makes required. */
type Authorized<A extends Access> = A extends { readonly rights: 'authorize' }
  ? { readonly authorize: unknown }
  : object;

export function defineRoute<
  const P extends string,
  const A extends Access,
  Q = undefined,
  B = undefined,
  G = undefined,
>(definition: RouteDefinition<P, A, Q, B, G> & Authorized<A>): Route {
  const {
    pathParameters = {},
    query,
    headers = [],
    body,
    authorize,
    handler,
    ...rest
  } = definition as RouteDefinition<string, A, Q, B, G>;
  return {
    ...rest,
    parameters: [
      ...Object.entries<string>(pathParameters).map(([name, description]) => inPath(name, description)),
      ...(query?.descriptions ?? []),
      ...headers,
    ],
    ...(body === undefined ? {} : { body: body.description }),
    async handler(req, res, context) {
      // The cast is safe: the filters have enforced `access`, and the router has matched `path`.
      const request = { req, res, context, path: req.params } as unknown as RouteRequest<P, A>;
      // Only promises are awaited, because each await takes time.
      const granting = authorize?.(request);
      const granted = (granting instanceof Promise ? await granting : granting) as G;
      await handler({
        ...request,
        granted,
        query: query?.parse(context.query) as Q,
        body: (body && (await body.read(req, context))) as B,
      });
    },
  };
}
