import type { Response } from 'express';
import { isReportable } from '../../runtime/errors.ts';
import { anonymous } from '../../http/access.ts';
import { defineRoute, type RouteDefinition, type RouteRequest } from '../../http/define-route.ts';
import type { Shape, Values } from '../../http/request/parameters.ts';
import type { ResponseDescriptions, Route } from '../../http/route.ts';
import { described, text } from '../../http/schema.ts';
import { withParameters } from '../authorization-request.ts';
import { formBody, type Form } from '../form.ts';
import { oauthParameters, optional, type OAuthParameters } from '../parameters.ts';
import { assertFormToken, formTokenField } from './cookies.ts';
import { failurePage } from './notices.ts';

/** The content of pages is not described further, because only people use them. */
const pageResponses: ResponseDescriptions = {
  200: { description: 'An HTML page', content: { 'text/html': text } },
  303: { description: 'A redirect', headers: { Location: 'A page of this server, or a URI of the client' } },
};

type Anonymous = typeof anonymous;

export type PageRequest = Omit<RouteRequest<string, Anonymous>, 'path'>;

/** Request and response of a page. */
export type PageExchange = Pick<PageRequest, 'req' | 'res'>;

type PageDefinition<P extends string, Q> = RouteDefinition<P, Anonymous, Q, undefined, undefined>;

/** Defines a page. */
export const pageRoute = <const P extends string, Q = undefined>(
  route: Pick<PageDefinition<P, Q>, 'path' | 'summary' | 'description' | 'pathParameters' | 'query' | 'handler'>,
): Route => forPeople(defineRoute({ ...route, method: 'get', access: anonymous, responses: pageResponses }));

interface FormRequest<P extends string, F> extends RouteRequest<P, Anonymous> {
  readonly form: Form;
  /** Fields parsed from the form. */
  readonly fields: F;
}

interface FormRoute<P extends string, S extends Shape> extends Pick<
  PageDefinition<P, undefined>,
  'path' | 'summary' | 'description' | 'pathParameters'
> {
  readonly fields: S;
  /** Further fields, which the API description shows as optional. The handler parses the fields that it needs. */
  readonly furtherFields?: Shape;
  readonly handler: (request: FormRequest<P, Values<S>>) => Promise<void>;
}

/**
 * Serves a form of a page in three steps:
 * 1. Read the form.
 * 2. Check that a page of this server showed the form to this browser.
 * 3. Parse the fields.
 */
export function formRoute<const P extends string, const S extends Shape>({
  fields,
  furtherFields = {},
  handler,
  ...route
}: FormRoute<P, S>): Route {
  const formToken = described('Token of the page that contains the form; must match a cookie of the browser', text);
  const { parse } = oauthParameters(fields);
  return forPeople(
    defineRoute({
      ...route,
      method: 'post',
      access: anonymous,
      body: formBody(oauthParameters({ [formTokenField]: formToken, ...fields, ...optional(furtherFields) })),
      responses: pageResponses,
      async handler({ body: form, ...request }) {
        assertFormToken(request.req, form);
        await handler({ ...request, form, fields: parse(form) });
      },
    }),
  );
}

interface PostedRoute extends Pick<Route, 'path' | 'summary'> {
  readonly description: string;
  readonly query: OAuthParameters<unknown>;
}

/** Accepts the parameters of a page as a form from a client, and redirects the browser to the page. */
export const postedRoute = ({ query, ...route }: PostedRoute): Route =>
  forPeople(
    defineRoute({
      ...route,
      method: 'post',
      access: anonymous,
      body: formBody(query),
      responses: pageResponses,
      handler: ({ res, body }) => seeOther(res, withParameters(route.path, Object.fromEntries(body))),
    }),
  );

/** Serves the route over TLS only, and shows its errors as pages. */
const forPeople = (route: Route): Route => ({
  ...route,
  isPage: true,
  isTLSOnly: true,
  async handler(req, res, context) {
    try {
      await route.handler(req, res, context);
    } catch (error) {
      if (!isReportable(error) || res.headersSent) throw error;
      failurePage({ res, context }, error);
    }
  },
});

/** Sends 303, so that the browser requests the location with GET after any method. */
export function seeOther(res: Response, location: string): void {
  res.statusCode = 303;
  res.setHeader('Location', location);
  res.setHeader('Cache-Control', 'no-store');
  res.setHeader('Content-Length', '0');
  res.end();
}
