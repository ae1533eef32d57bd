import type { Request, Response } from 'express';
import type { Client } from '../accounts/directory/clients.ts';
import { annotations } from '../audit/annotations.ts';
import { OAuthError } from '../runtime/errors.ts';
import type { RequestContext, Route } from '../http/route.ts';
import { described, text, type Schema } from '../http/schema.ts';
import { authenticateClient, type ClientAuthentication } from './client-authentication.ts';
import { formBody, readForm } from './form.ts';

/** A client learns of its own tokens; one that the configuration lets introspect, of all. */
export const mayKnow = (client: Client, clientID: string): boolean => client.introspection || client.name === clientID;

export interface ClientRequest {
  readonly form: ReadonlyMap<string, string>;
  readonly client: Client;
  readonly context: RequestContext;
  readonly res: Response;
}

interface ClientRoute extends ClientAuthentication, Pick<Route, 'path' | 'summary' | 'answers'> {
  /** Of the form, in the descriptions. */
  readonly formName: string;
  /** What the form must have, and what it may have beside that. */
  readonly fields: Readonly<Record<string, Schema>>;
  readonly optional?: Readonly<Record<string, Schema>>;
}

const clientFields = {
  client_id: described('The client, where it does not authenticate by HTTP Basic', text),
  client_secret: described('Its secret; left out by a public client', text.meta({ format: 'password' })),
};

/** RFC 7009 section 2.1, RFC 7662 section 2.1. */
export const tokenForm = {
  fields: { token: described('An access token or a refresh token', text) },
  optional: { token_type_hint: described('Not needed', text) },
};

/** Where clients post forms to. All begin with the same steps: nothing in the URL, 1 read the form, 2 authenticate the client. */
export const clientRoute = (
  { path, summary, answers, formName, fields, optional = {}, ...options }: ClientRoute,
  handle: (request: ClientRequest) => Promise<void>,
): Route => ({
  method: 'post',
  path,
  summary,
  access: { kind: 'client', schemes: ['client'] },
  body: formBody(fields, { ...optional, ...clientFields }, formName),
  ...(answers === undefined ? {} : { answers }),
  handler: async (req, res, context) => handle({ ...(await readClientRequest(req, context, options)), context, res }),
});

async function readClientRequest(
  req: Request,
  context: RequestContext,
  authentication: ClientAuthentication,
): Promise<Pick<ClientRequest, 'form' | 'client'>> {
  if (context.query.size > 0)
    throw new OAuthError(
      'invalid_request',
      'parameters belong in the body: what stands in the URL is logged on its way',
    );
  const form = await readForm(req, context.arrival);
  const client = await authenticateClient(req, form, context, authentication);
  context.audit?.annotate(annotations.client, client.name);
  return { form, client };
}
