import type { Response } from 'express';
import type { Client } from '../accounts/directory/clients.ts';
import { annotations } from '../audit/annotations.ts';
import { OAuthError } from '../runtime/errors.ts';
import { defineRoute } from '../http/define-route.ts';
import type { QueryParameters, Shape, Values } from '../http/request/parameters.ts';
import type { ParameterDescription, RequestContext, ResponseDescriptions, Route } from '../http/route.ts';
import { described, text } from '../http/schema.ts';
import { authenticateClient, type ClientAuthentication } from './client-authentication.ts';
import { formBody, type Form } from './form.ts';
import { oauthParameters, optional } from './parameters.ts';

/**
 * Returns whether the client is allowed to inspect or revoke a token. Clients with `introspection: true` in the
 * configuration are allowed to inspect and revoke all tokens, other clients only their own.
 */
export const canInspect = (client: Client, clientID: string): boolean =>
  client.introspection || client.name === clientID;

export interface ClientRequest<F> {
  readonly form: Form;
  /** Fields parsed from the form. */
  readonly fields: F;
  readonly client: Client;
  readonly context: RequestContext;
  readonly res: Response;
}

interface ClientRoute<S extends Shape>
  extends ClientAuthentication, Required<Pick<Route, 'path' | 'summary' | 'description'>> {
  /** Name of the schema of the form. */
  readonly formName: string;
  readonly fields: S;
  /** Further fields, which the API description shows as optional. The handler parses the fields that it needs. */
  readonly furtherFields?: Shape;
  readonly responses: ResponseDescriptions;
  readonly handler: (request: ClientRequest<Values<S>>) => Promise<void>;
}

const clientFields = {
  client_id: described(
    'Name of the client, unless it authenticates by HTTP Basic; a public client sends only this',
    text.optional(),
  ),
  client_secret: described('Secret of the client', text.meta({ format: 'password' }).optional()),
};

/** RFC 7009 section 2.1, RFC 7662 section 2.1. */
export const tokenFields = {
  token: described('Access token or refresh token', text),
  token_type_hint: described('Ignored: the server recognizes the type of the token', text.optional()),
};

/** Rejects parameters in the URL that `descriptions` does not list, because proxies log URLs. */
export const queryOfClients = (descriptions: readonly ParameterDescription[] = []): QueryParameters<void> => ({
  descriptions,
  parse(query) {
    if ([...query.keys()].some((given) => descriptions.every(({ name }) => name !== given)))
      throw new OAuthError('invalid_request', 'send parameters in the body, not in the URL: proxies log URLs');
  },
});

/**
 * Serves forms of clients in four steps:
 * 1. Reject parameters in the URL.
 * 2. Read the form.
 * 3. Authenticate the client.
 * 4. Parse the fields.
 */
export function clientRoute<const S extends Shape>({
  path,
  summary,
  description,
  formName,
  fields,
  furtherFields = {},
  responses,
  handler,
  ...authentication
}: ClientRoute<S>): Route {
  const { parse } = oauthParameters(fields);
  return defineRoute({
    method: 'post',
    path,
    summary,
    description,
    access: { kind: 'client', schemes: ['client'] },
    query: queryOfClients(),
    body: formBody(oauthParameters({ ...fields, ...optional(furtherFields), ...clientFields }), formName),
    responses,
    async handler({ req, res, context, body: form }) {
      const client = await authenticateClient(req, form, context, authentication);
      context.annotate(annotations.client, client.name);
      await handler({ form, fields: parse(form), client, context, res });
    },
  });
}
