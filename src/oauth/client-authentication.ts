import type { Request } from 'express';
import type { Client, Clients } from '../accounts/directory/clients.ts';
import type { LoginLimiter } from '../accounts/logins/limit.ts';
import { OAuthError } from '../runtime/errors.ts';
import { durationText } from '../runtime/duration.ts';
import type { RequestContext } from '../http/route.ts';
import { decode } from './form.ts';

/** Authentication methods of confidential clients (RFC 8414 section 2). */
export const clientAuthenticationMethods: readonly string[] = ['client_secret_basic', 'client_secret_post'];
/** Authentication methods including `none`, for public clients. */
export const clientIdentificationMethods: readonly string[] = [...clientAuthenticationMethods, 'none'];

const invalidClient = (description: string): OAuthError => new OAuthError('invalid_client', description);

interface Credentials {
  readonly id: string;
  /** Possible secrets: the secret as sent, and the form-decoded secret if it differs. */
  readonly secrets: readonly string[];
}

/**
 * Parses HTTP Basic. Clients form-encode the name and the secret before they join them (RFC 6749 section 2.3.1). The
 * library basic-auth does not decode this form encoding. Names contain no characters that need encoding.
 */
function basic(header: string): Credentials {
  const text = Buffer.from(header.slice('basic '.length), 'base64').toString('utf8');
  const at = text.indexOf(':');
  if (at === -1)
    throw invalidClient('Authorization: Basic must be followed by the base64 encoding of "client_id:client_secret"');
  return {
    id: decode(text.slice(0, at), 'client_id in the Authorization header'),
    secrets: readingsOf(text.slice(at + 1)),
  };
}

/**
 * Returns the secret decoded and as sent, because many clients do not encode the secret. The number of results depends
 * only on the text that was sent, so this number reveals nothing about the correct secret.
 */
function readingsOf(secret: string): readonly string[] {
  try {
    return [...new Set([decode(secret), secret])];
  } catch {
    return [secret];
  }
}

export interface ClientAuthentication {
  readonly directory: { readonly clients: Pick<Clients, 'get' | 'authenticate'> };
  readonly limiter: Pick<LoginLimiter, 'during' | 'failed' | 'succeeded'>;
  /** True if a public client is accepted by its name alone. */
  readonly mayBePublic?: boolean;
}

/**
 * Authenticates a client by HTTP Basic, or by client_id and client_secret in the form. Throws 400 for both at once (RFC
 * 6749 section 2.3). Responds to an unknown client and a wrong secret with the same 401 after the same work, and with
 * 429 after too many attempts.
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
        'the client authenticates twice: send the secret in the form or by HTTP Basic, not both',
      );
    credentials = basic(header);
    if (inForm.id !== undefined && inForm.id !== credentials.id)
      throw new OAuthError('invalid_request', 'client_id in the form differs from the one in the Authorization header');
  } else {
    const { id, secret = mayBePublic && directory.clients.get(id ?? '')?.isPublic === true ? '' : undefined } = inForm;
    if (id === undefined || secret === undefined)
      throw invalidClient(
        'the client must authenticate: send client_id and client_secret in the form, or by HTTP Basic',
      );
    credentials = { id, secrets: [secret] };
  }
  const client = directory.clients.get(credentials.id);
  // Some libraries send an empty secret for public clients by HTTP Basic.
  if (mayBePublic && client?.isPublic === true && credentials.secrets[0] === '') return client;
  if (client?.hasKnownSecret !== true) return await limited(credentials, context, { directory, limiter });
  // Guesses at a well-known secret are not limited: they gain nothing and cost no hash. A limit would only lock out all
  // users of the client.
  if (!(await directory.clients.authenticate(client.name, credentials.secrets, context.sourceIP))) throw wrong();
  return client;
}

/** Maximum characters of an unknown name in the log. */
const maxLoggedName = 253;

const wrong = (): OAuthError => invalidClient('unknown client or incorrect secret');

/** Limits concurrent guesses like consecutive ones, as for passwords. */
async function limited(
  { id, secrets }: Credentials,
  { sourceIP, auditID, log }: RequestContext,
  { directory, limiter }: ClientAuthentication,
): Promise<Client> {
  const attempt = { guesses: 'secret', client: id, address: sourceIP } as const;
  const authenticate = async (): Promise<Client> => {
    const client = await directory.clients.authenticate(id, secrets, sourceIP);
    if (client !== undefined) {
      limiter.succeeded(attempt);
      return client;
    }
    for (const _ of secrets) limiter.failed(attempt);
    log.info('client authentication failed', { auditID, client: id.slice(0, maxLoggedName), sourceIP });
    throw wrong();
  };
  return await limiter.during(attempt, refuse, authenticate, secrets.length);
}

function refuse(seconds: number): never {
  throw new OAuthError('invalid_client', `too many incorrect secrets; try again in ${durationText(seconds)}`, {
    status: 429,
    headers: { 'Retry-After': String(seconds) },
  });
}
