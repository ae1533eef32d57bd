import type { Request, Response } from 'express';
import type { Client } from '../accounts/directory/clients.ts';
import { annotations } from '../audit/annotations.ts';
import { OAuthError } from '../errors.ts';
import type { RequestContext, Route } from '../http/route.ts';
import { authenticateClient, type ClientAuthentication } from './client-authentication.ts';
import { readForm } from './form.ts';

/** A client learns of its own tokens; one that the configuration lets introspect, of all. */
export const mayKnow = (client: Client, clientID: string): boolean => client.introspection || client.name === clientID;

export interface ClientRequest {
  readonly form: ReadonlyMap<string, string>;
  readonly client: Client;
  readonly context: RequestContext;
  readonly res: Response;
}

interface ClientRoute extends ClientAuthentication {
  readonly path: string;
  readonly summary: string;
}

/** Where clients post forms to. All begin with the same steps: nothing in the URL, 1 read the form, 2 authenticate the client. */
export const clientRoute = (
  { path, summary, ...options }: ClientRoute,
  handle: (request: ClientRequest) => Promise<void>,
): Route => ({
  method: 'post',
  path,
  summary,
  open: true,
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
  const form = await readForm(req);
  const client = await authenticateClient(req, form, context, authentication);
  context.audit?.annotate(annotations.client, client.name);
  return { form, client };
}
