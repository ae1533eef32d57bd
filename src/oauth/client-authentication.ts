import type { Request } from 'express';
import type { Client, Clients } from '../accounts/directory/clients.ts';
import type { LoginLimiter } from '../accounts/logins/limit.ts';
import { OAuthError } from '../runtime/errors.ts';
import type { RequestContext } from '../http/route.ts';
import { decode } from './form.ts';

/** Authentication methods of clients, as in the metadata (RFC 8414 section 2). */
export const clientAuthenticationMethods: readonly string[] = ['client_secret_basic', 'client_secret_post'];
/** The same with `none`, for public clients. */
export const clientIdentificationMethods: readonly string[] = [...clientAuthenticationMethods, 'none'];

const invalidClient = (description: string): OAuthError => new OAuthError('invalid_client', description);

interface Credentials {
  readonly id: string;
  /** One secret, or two if it could be form-encoded or not. */
  readonly secrets: readonly string[];
}

/**
 * RFC 6749 section 2.3.1: clients form-encode id and secret before they join them, which the library basic-auth does not decode. Names
 * contain no character that is encoded.
 */
function basic(header: string): Credentials {
  const text = Buffer.from(header.slice('basic '.length), 'base64').toString('utf8');
  const at = text.indexOf(':');
  if (at === -1)
    throw invalidClient(
      'the Authorization header holds no client credentials: base64 of "client_id:client_secret" is expected',
    );
  return {
    id: decode(text.slice(0, at), 'client_id in the Authorization header'),
    secrets: meanings(text.slice(at + 1)),
  };
}

/** Many clients do not encode the secret. The number of meanings depends on the text only, so it reveals nothing of the secret. */
function meanings(secret: string): readonly string[] {
  try {
    return [...new Set([decode(secret), secret])];
  } catch {
    return [secret];
  }
}

export interface ClientAuthentication {
  readonly directory: { readonly clients: Pick<Clients, 'get' | 'authenticate'> };
  readonly limiter: Pick<LoginLimiter, 'during' | 'failed' | 'succeeded'>;
  /** Accepts public clients by their name. */
  readonly mayBePublic?: boolean;
}

/**
 * Authenticates a client by HTTP Basic, or by client_id and client_secret in the form. Both at once are 400 (RFC 6749 section 2.3).
 * An unknown client and a wrong secret get the same 401 after the same work; too many of them get 429.
 */
export async function authenticateClient(
  req: Request,
  form: ReadonlyMap<string, string>,
  context: RequestContext,
  { directory, limiter, mayBePublic = false }: ClientAuthentication,
): Promise<Client> {
  const header = req.headers.authorization;
  const inForm = { id: form.get('client_id'), secret: form.get('client_secret') };
  let credentials: Credentials;
  if (header !== undefined && /^basic /i.test(header)) {
    if (inForm.secret !== undefined)
      throw new OAuthError(
        'invalid_request',
        'the client authenticates twice: send its secret in the form or by HTTP Basic, not both',
      );
    credentials = basic(header);
    if (inForm.id !== undefined && inForm.id !== credentials.id)
      throw new OAuthError('invalid_request', 'client_id in the form is another than in the Authorization header');
  } else {
    const { id, secret = mayBePublic && directory.clients.get(id ?? '')?.isPublic === true ? '' : undefined } = inForm;
    if (id === undefined || secret === undefined)
      throw invalidClient('the client must authenticate: client_id and client_secret in the form, or HTTP Basic');
    credentials = { id, secrets: [secret] };
  }
  const client = directory.clients.get(credentials.id);
  // Some libraries send an empty secret for public clients by HTTP Basic.
  if (mayBePublic && client?.isPublic === true && credentials.secrets[0] === '') return client;
  if (client?.hasKnownSecret !== true) return await limited(credentials, context, { directory, limiter });
  // Guesses at a well-known secret gain nothing and cost no hash; a limit would only lock everybody out.
  if (!(await directory.clients.authenticate(client.name, credentials.secrets, context.sourceIP))) throw wrong();
  return client;
}

/** Characters of an unknown name that are logged. */
const longestName = 253;

const wrong = (): OAuthError => invalidClient('the client is unknown or its secret is wrong');

/** Limits concurrent guesses like consecutive ones, as for passwords. */
async function limited(
  { id, secrets }: Credentials,
  { sourceIP, auditID, log }: RequestContext,
  { directory, limiter }: ClientAuthentication,
): Promise<Client> {
  const attempt = { guesses: 'secret', client: id, address: sourceIP } as const;
  const judge = async (): Promise<Client> => {
    const client = await directory.clients.authenticate(id, secrets, sourceIP);
    if (client !== undefined) {
      limiter.succeeded(attempt);
      return client;
    }
    for (const _ of secrets) limiter.failed(attempt);
    log.info('client authentication failed', { auditID, client: id.slice(0, longestName), sourceIP });
    throw wrong();
  };
  return await limiter.during(attempt, refuse, judge, secrets.length);
}

function refuse(seconds: number): never {
  throw new OAuthError('invalid_client', `too many wrong secrets; try again in ${seconds} s`, {
    status: 429,
    headers: { 'Retry-After': String(seconds) },
  });
}
