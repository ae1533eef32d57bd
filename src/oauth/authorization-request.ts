/** An authorization request (RFC 6749 section 4.1.1, OpenID Connect Core section 3.1.2.1). */
import type { Client } from '../accounts/directory/clients.ts';
import type { Directory } from '../accounts/directory/directory.ts';
import { OAuthError } from '../runtime/errors.ts';
import { integerParameter } from '../http/request/parameters.ts';
import { described, oneOf, text } from '../http/schema.ts';
import { authorizationCodeGrantType } from './grants/authorization-code.ts';
import { assertGrantAllowed } from './grants/grant.ts';
import { oauthParameters, readParameters } from './parameters.ts';
import { audienceOf, grantScope, resourceParameter, scopeParameter } from './scope.ts';

const loopback = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]))(?::\d{1,5})?(?=[/?]|$)/;

/**
 * Returns whether a redirect URI is registered. URIs are compared character by character (RFC 6749 section 3.1.2.3). On
 * loopback addresses, any port is accepted (RFC 8252 section 7.3). The URI must be valid, because the pages of this
 * server parse it.
 */
export const isRegistered = (registered: readonly string[], given: string): boolean =>
  URL.canParse(given) &&
  registered.some(
    (one) => one === given || (loopback.test(one) && one.replace(loopback, '$1') === given.replace(loopback, '$1')),
  );

/** Returns whether another program can receive the response at the URI (RFC 8252 section 8.6). */
export const canBeIntercepted = (uri: string): boolean => !uri.startsWith('https:');

/** Adds parameters to the URI. Parameters without a value are omitted (RFC 6749 section 3.1). */
export function withParameters(uri: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).filter((pair): pair is [string, string] => (pair[1] ?? '') !== '');
  if (given.length === 0) return uri;
  return `${uri}${uri.includes('?') ? '&' : '?'}${new URLSearchParams(given).toString()}`;
}

/** The client, and the URI to which the response is sent. */
interface Destination {
  readonly client: Client;
  readonly redirectURI: string;
}

export const prompts: readonly string[] = ['none', 'login', 'consent', 'select_account'];

const prompt = text
  .transform((value): readonly string[] => value.split(' '))
  .refine(
    (all) => all.every((one) => one === 'none') || all.every((one) => one !== 'none' && prompts.includes(one)),
    `must be one of ${prompts.join(', ')}; all except none can be combined, separated by spaces`,
  );

/** Settings of well-known programs that send no code_challenge by default. */
const pkceSettings = [
  'kubelogin --oidc-pkce-method=S256',
  'Headlamp -oidc-use-pkce',
  'oauth2-proxy --code-challenge-method=S256',
  'Grafana use_pkce = true',
  'Argo CD enablePKCEAuthentication: true',
].join(', ');

const shape = {
  client_id: described('Name of the client', text),
  redirect_uri: described('URI to which the browser is redirected; must be registered for the client', text),
  response_type: described('Authorization code flow', oneOf('code')),
  code_challenge: described(
    'PKCE: SHA-256 hash of the `code_verifier`, in base64url',
    text.regex(/^[A-Za-z0-9_-]{43}$/, 'must be a SHA-256 hash in base64url'),
  ),
  code_challenge_method: described('PKCE: how `code_challenge` was derived', oneOf('S256')),
  response_mode: described('The response is in the query of `redirect_uri`', oneOf('query').optional()),
  scope: scopeParameter,
  state: described('Returned unchanged in the response', text.optional()),
  nonce: described('Returned in the `id_token`; at most 512 characters', text.max(512).optional()),
  prompt: described(
    'Pages to show, separated by spaces: `login` or `select_account` to log in again, `consent` to confirm ' +
      'again; `none`, which cannot be combined, fails if a page is needed',
    prompt.optional(),
  ),
  max_age: described(
    'Seconds since the last login after which the user must log in again',
    integerParameter({ min: 0, max: 999_999_999 }, 'a number of seconds').optional(),
  ),
  login_hint: described('Username that the login page shows in its form', text.optional()),
  resource: resourceParameter,
};

export const authorizationParameters = oauthParameters(shape, {
  code_challenge: `PKCE is required (${pkceSettings})`,
});

/** A parsed authorization request. `scope` is the granted part of the requested scope. */
export type AuthorizationRequest = Destination & ReturnType<typeof authorizationParameters.parse>;

const invalid = (description: string): OAuthError => new OAuthError('invalid_request', description);

/**
 * Finds the client and its redirect URI. Errors are shown to the user, because they cannot be redirected to the client
 * (RFC 6749 section 4.1.2.1).
 */
export function destinationOf(query: URLSearchParams, directory: Directory): Destination {
  for (const name of ['client_id', 'redirect_uri'])
    if (query.getAll(name).length > 1) throw invalid(`the parameter "${name}" is repeated`);
  const client = directory.clients.get(query.get('client_id') ?? '');
  if (client === undefined) throw invalid('the application that sent you here is not registered: unknown client_id');
  const redirectURI = query.get('redirect_uri') ?? '';
  if (!isRegistered(client.redirectURIs, redirectURI))
    throw invalid(`the redirect_uri of the application that sent you here is not registered for "${client.name}"`);
  return { client, redirectURI };
}

/** Parses the request. Errors are redirected to the client. */
export function parseAuthorization(
  query: URLSearchParams,
  destination: Destination,
  issuer: string,
): AuthorizationRequest {
  const { client } = destination;
  const given = readParameters(query);
  if (given.has('request')) throw new OAuthError('request_not_supported', 'request objects are not supported');
  if (given.has('request_uri')) throw new OAuthError('request_uri_not_supported', 'request_uri is not supported');
  assertGrantAllowed(client, authorizationCodeGrantType);
  const parameters = authorizationParameters.parse(given);
  // The token request names the resource again (RFC 8707 section 2.2), so the audience is validated here but not
  // stored.
  audienceOf({ resource: parameters.resource }, client, issuer);
  return { ...parameters, ...destination, scope: grantScope(parameters.scope, client.scopes) };
}
