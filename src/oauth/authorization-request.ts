/** What a client asks for by the browser of somebody (RFC 6749 section 4.1.1, OpenID Connect Core section 3.1.2.1). */
import type { Client } from '../accounts/directory/clients.ts';
import type { Directory } from '../accounts/directory/directory.ts';
import { OAuthError } from '../runtime/errors.ts';
import { inQuery, type ParameterDescription } from '../http/route.ts';
import { count, oneOf, text, type Schema } from '../http/schema.ts';
import { readParameters, required } from './form.ts';
import { authorizationCodeGrantType } from './grants/authorization-code.ts';
import { demandGrant } from './grants/grant.ts';
import { grantScope } from './scope.ts';

const loopback = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]))(?::\d{1,5})?(?=[/?]|$)/;

/**
 * RFC 6749 section 3.1.2.3: character by character; RFC 8252 section 7.3: on loopback addresses at any port. What is registered is a
 * URL, also with the port that was given: our pages read it as one.
 */
export const isRegistered = (registered: readonly string[], given: string): boolean =>
  URL.canParse(given) &&
  registered.some(
    (one) => one === given || (loopback.test(one) && one.replace(loopback, '$1') === given.replace(loopback, '$1')),
  );

/** Whoever listens there has not shown that the URI is theirs (RFC 8252 section 8.6). */
export const provesNobody = (uri: string): boolean => !uri.startsWith('https:');

/** The URI with more parameters, the rest of it unchanged. One without a value is as good as none (RFC 6749 section 3.1). */
export function withParameters(uri: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).filter((pair): pair is [string, string] => (pair[1] ?? '') !== '');
  if (given.length === 0) return uri;
  return `${uri}${uri.includes('?') ? '&' : '?'}${new URLSearchParams(given).toString()}`;
}

/** Whom to answer, and where. */
interface Destination {
  readonly client: Client;
  readonly redirectURI: string;
}

export interface AuthorizationRequest extends Destination {
  readonly scope: string | undefined;
  /** RFC 7636, of the method S256. */
  readonly challenge: string;
  readonly nonce: string | undefined;
  readonly prompt: ReadonlySet<string>;
  /** Seconds since the user last showed who they are. */
  readonly maxAge: number | undefined;
}

const challengeShape = /^[A-Za-z0-9_-]{43}$/;
const longestNonce = 512;

export const prompts: readonly string[] = ['none', 'login', 'consent', 'select_account'];

const mandatory = (name: string, description: string, schema?: Schema): ParameterDescription => ({
  ...inQuery(name, description, schema),
  required: true,
});

export const authorizationParameters: readonly ParameterDescription[] = [
  mandatory('client_id', 'The name of the client'),
  mandatory('redirect_uri', 'Where the user is sent with the code; registered for the client'),
  mandatory('response_type', 'What is asked for', oneOf('code')),
  mandatory('code_challenge', 'PKCE: the SHA-256 of the code_verifier, in base64url', text.regex(challengeShape)),
  mandatory('code_challenge_method', 'PKCE: how it was made', oneOf('S256')),
  inQuery('response_mode', 'How the answer is given', oneOf('query')),
  inQuery('scope', 'Words separated by spaces; "openid" adds an id_token'),
  inQuery('state', 'Comes back as it is'),
  inQuery('nonce', 'Comes back in the id_token', text.max(longestNonce)),
  inQuery(
    'prompt',
    `Whether the user is asked again: ${prompts.join(', ')}; of these words several, separated by spaces`,
  ),
  inQuery(
    'max_age',
    'Seconds since the user last showed who they are, after which they log in again',
    count.max(999_999_999),
  ),
  inQuery('login_hint', 'The username that the login page begins with'),
];

const invalid = (description: string): OAuthError => new OAuthError('invalid_request', description);

/** Throws what people are told: a request that names nobody is answered to nobody (RFC 6749 section 4.1.2.1). */
export function destinationOf(query: URLSearchParams, directory: Directory): Destination {
  for (const name of ['client_id', 'redirect_uri'])
    if (query.getAll(name).length > 1) throw invalid(`the parameter "${name}" is repeated`);
  const client = directory.clients.get(query.get('client_id') ?? '');
  if (client === undefined) throw invalid('the application that sent you here is not known: its client_id is wrong');
  const redirectURI = query.get('redirect_uri') ?? '';
  if (!isRegistered(client.redirectURIs, redirectURI))
    throw invalid(`the redirect_uri of the application that sent you here is not registered for "${client.name}"`);
  return { client, redirectURI };
}

/** Throws what the client is told. */
export function parseAuthorization(query: URLSearchParams, destination: Destination): AuthorizationRequest {
  const { client } = destination;
  const given = readParameters(query);
  if (given.get('request') !== undefined) throw new OAuthError('request_not_supported', 'request objects are not read');
  if (given.get('request_uri') !== undefined)
    throw new OAuthError('request_uri_not_supported', 'request objects are not read');
  if (required(given, 'response_type') !== 'code')
    throw new OAuthError('unsupported_response_type', 'response_type must be "code"');
  demandGrant(client, authorizationCodeGrantType);
  if ((given.get('response_mode') ?? 'query') !== 'query') throw invalid('response_mode must be "query"');
  const challenge = given.get('code_challenge');
  if (challenge === undefined || given.get('code_challenge_method') !== 'S256')
    throw invalid('PKCE is required: code_challenge with code_challenge_method=S256 (RFC 7636)');
  if (!challengeShape.test(challenge)) throw invalid('code_challenge must be a SHA-256 hash in base64url');
  const nonce = given.get('nonce');
  if (nonce !== undefined && nonce.length > longestNonce)
    throw invalid(`nonce must not be longer than ${longestNonce} characters`);
  const maxAge = given.get('max_age');
  if (maxAge !== undefined && !/^\d{1,9}$/.test(maxAge)) throw invalid('max_age must be a number of seconds');
  return {
    ...destination,
    scope: grantScope(given.get('scope'), client.scopes),
    challenge,
    nonce,
    prompt: promptOf(given.get('prompt')),
    maxAge: maxAge === undefined ? undefined : Number(maxAge),
  };
}

function promptOf(value: string | undefined): ReadonlySet<string> {
  const prompt = new Set(value?.split(' '));
  for (const one of prompt) if (!prompts.includes(one)) throw invalid(`prompt may have ${prompts.join(', ')}`);
  if (prompt.has('none') && prompt.size > 1) throw invalid('prompt "none" stands alone');
  return prompt;
}
