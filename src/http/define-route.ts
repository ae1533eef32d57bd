/**
 * A route in one definition: its schemas describe what it takes and returns, parse it, and give the handler its types. A request is
 * authorized before anything of it is parsed.
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

/** Names in a path of Express' syntax: `'name'` for `/users/:name/sessions`. */
export type PathNames<P extends string> = P extends `${string}/${':' | '*'}${infer Name}/${infer Rest}`
  ? Name | PathNames<`/${Rest}`>
  : P extends `${string}/${':' | '*'}${infer Name}`
    ? Name
    : never;

/** Decoded. A wildcard (`*path`) has its segments. */
export type PathValues<P extends string> = {
  readonly [N in PathNames<P>]: P extends `${string}/*${N}` | `${string}/*${N}/${string}` ? readonly string[] : string;
};

type UserOf<A extends Access> = A['kind'] extends 'authenticated' | 'authorized' ? UserInfo : UserInfo | undefined;

/** What `authorize` and `handler` know of a request. */
export interface RouteRequest<P extends string, A extends Access> {
  readonly req: Request;
  readonly res: Response;
  readonly context: RequestContext & { readonly user: UserOf<A> };
  readonly path: PathValues<P>;
}

export interface ParsedRequest<P extends string, A extends Access, Q, B, G> extends RouteRequest<P, A> {
  readonly query: Q;
  readonly body: B;
  /** What `authorize` returned. */
  readonly granted: G;
}

export interface RouteDefinition<P extends string, A extends Access, Q, B, G> extends Pick<
  Route,
  'method' | 'summary' | 'hot' | 'removed'
> {
  readonly path: P;
  /** Sentences in Markdown that state the right that a request needs, and what the caller has to know. */
  readonly description: string;
  readonly access: A;
  /** Descriptions by name. */
  readonly pathParameters?: Readonly<Record<PathNames<P>, string>>;
  /** Without it the query is not looked at. */
  readonly query?: QueryParameters<Q>;
  readonly headers?: readonly ParameterDescription[];
  readonly body?: RequestBody<B>;
  readonly responses: ResponseDescriptions;
  /** Statuses of errors, beside those that follow from the rest of the definition (docs/openapi/error-responses.ts). */
  readonly errors?: readonly number[];
  /** Demands rights that `access` does not; `authorizedByRoute` does not compile without it. */
  readonly authorize?: (request: RouteRequest<P, A>) => G | Promise<G>;
  readonly handler: (request: ParsedRequest<P, A, Q, B, G>) => void | Promise<void>;
}

/** What `access` demands of the definition. */
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
      // The filters have enforced `access`, and the router has matched `path`.
      const request = { req, res, context, path: req.params } as unknown as RouteRequest<P, A>;
      // Hot routes: nothing is awaited that there is not.
      const granted = (authorize && (await authorize(request))) as G;
      await handler({
        ...request,
        granted,
        query: query?.parse(context.query) as Q,
        body: (body && (await body.read(req, context))) as B,
      });
    },
  };
}
