import type { Request } from 'express';
import type { Client, Directory } from '../accounts/directory.ts';
import { OAuthError } from '../errors.ts';
import type { RequestContext } from '../http/route.ts';
import { authenticateClient } from './client-authentication.ts';
import { readForm } from './form.ts';

/** A client learns of its own tokens; one that the configuration lets introspect, of all. */
export const mayKnow = (client: Client, clientID: string): boolean => client.introspection || client.name === clientID;

export interface ClientRequest {
  readonly form: ReadonlyMap<string, string>;
  readonly client: Client;
}

/** What every endpoint that clients post forms to begins with: nothing in the URL, 1 read the form, 2 authenticate the client. */
export async function readClientRequest(
  req: Request,
  context: RequestContext,
  directory: Directory,
): Promise<ClientRequest> {
  if (context.query.size > 0)
    throw new OAuthError(
      'invalid_request',
      'parameters belong in the body: what stands in the URL is logged on its way',
    );
  const form = await readForm(req);
  return { form, client: await authenticateClient(req, form, directory) };
}
