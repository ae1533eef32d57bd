import type { Request } from 'express';
import type { Client, Clients } from '../accounts/directory/clients.ts';
import type { LoginLimiter } from '../accounts/logins/limit.ts';
import { OAuthError } from '../runtime/errors.ts';
import type { RequestContext } from '../http/route.ts';
import { decode } from './form.ts';

/** The ways in which a client authenticates, as the metadata calls them (RFC 8414 section 2). */
export const clientAuthenticationMethods: readonly string[] = ['client_secret_basic', 'client_secret_post'];
/** The same, for those as well that have no secret. */
export const clientIdentificationMethods: readonly string[] = [...clientAuthenticationMethods, 'none'];

const invalidClient = (description: string): OAuthError => new OAuthError('invalid_client', description);

interface Credentials {
  readonly id: string;
  /** What the client may mean by what it sent: one secret, or two. */
  readonly secrets: readonly string[];
}

/**
 * RFC 6749 section 2.3.1: id and secret are form-encoded before they are put together, which the library basic-auth does not undo. Names
 * are the same either way.
 */
function basic(header: string): Credentials {
  const text = Buffer.from(header.slice('basic '.length), 'base64').toString('utf8');
  const at = text.indexOf(':');
  if (at === -1)
    throw invalidClient(
      'the Authorization header holds no client credentials: base64 of "client_id:client_secret" is expected',
    );
  return { id: decode(text.slice(0, at)), secrets: meanings(text.slice(at + 1)) };
}

/** Many clients leave the encoding out. How many there are says the text alone, and nothing of what is right. */
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
  /** A client that has no secret need show none. */
  readonly mayBePublic?: boolean;
}

/**
 * Which client is asking, by HTTP Basic or by client_id and client_secret in the form. Both at once: 400 (RFC 6749 section 2.3).
 * An unknown client and a wrong secret are the same 401, after the same work; too many of them are 429.
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
  // By HTTP Basic some libraries send an empty secret where there is none.
  if (mayBePublic && client?.isPublic === true && credentials.secrets[0] === '') return client;
  if (client?.hasKnownSecret !== true) return await limited(credentials, context, { directory, limiter });
  // To guess what everybody knows gains nothing and costs nothing, and refused for it would be everybody.
  if (!(await directory.clients.authenticate(client.name, credentials.secrets, context.sourceIP))) throw wrong();
  return client;
}

/** Characters of an unknown name that are logged. */
const longestName = 253;

const wrong = (): OAuthError => invalidClient('the client is unknown or its secret is wrong');

/** As with passwords no more of guesses made at once are judged than of such made one after another. */
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
