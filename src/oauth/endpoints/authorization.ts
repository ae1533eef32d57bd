/**
 * Serves `/oauth/authorize` (RFC 6749 section 3.1, OpenID Connect Core section 3.1.2). All requests share these steps:
 * 1. Find the client and its redirect_uri.
 * 2. Parse the request.
 * 3. Find the login of this browser, or show the login page.
 * 4. Request the user's consent.
 * 5. Redirect the browser with a code.
 *
 * Errors of step 1 are shown to the user, and later errors are redirected to the client.
 */
import type { Directory } from '../../accounts/directory/directory.ts';
import { sessionOwnerOf } from '../../tokens/sessions/session.ts';
import type { Sessions } from '../../tokens/sessions/sessions.ts';
import { annotations } from '../../audit/annotations.ts';
import { describable, isReportable, OAuthError } from '../../runtime/errors.ts';
import {
  authorizationParameters,
  destinationOf,
  parseAuthorization,
  prompts,
  type AuthorizationRequest,
  canBeIntercepted,
  withParameters,
} from '../authorization-request.ts';
import { browserLogin, type BrowserLogin } from '../browser-login.ts';
import type { OAuthEndpoint } from '../json-response.ts';
import { described, text } from '../../http/schema.ts';
import { refreshGrantType } from '../grants/refresh-token.ts';
import { consentPage } from '../pages/consent.ts';
import { donePage } from '../pages/notices.ts';
import type { ShowLogin } from '../pages/login.ts';
import { formRoute, pageRoute, postedRoute, seeOther, type PageRequest } from '../pages/route.ts';
import { parseMilliseconds } from '../../runtime/time.ts';

export interface AuthorizationParts {
  readonly directory: Directory;
  readonly sessions: Sessions;
  readonly issuer: () => string;
  readonly showLogin: ShowLogin;
  readonly clock: () => number;
}

/**
 * Lifetime of a code in milliseconds. RFC 6749 section 4.1.2 allows ten minutes, but a browser needs at most one
 * minute.
 */
const codeLife = 60_000;
const path = '/oauth/authorize';
const consentPath = '/oauth/consent';
/** Maximum consents per login. The oldest consents are dropped, and the user must then consent again. */
const maxConsents = 50;

export function authorizationEndpoint(parts: AuthorizationParts): OAuthEndpoint {
  return {
    routes: [
      pageRoute({
        path,
        summary: 'Request an authorization code',
        description:
          'Starts the authorization code flow with PKCE (RFC 6749 section 4.1, RFC 7636, OpenID Connect Core section ' +
          '3.1.2). The configuration of the client must list this grant. The server shows its login and consent ' +
          'pages if they are needed, then redirects to `redirect_uri` with `code`, `state` and `iss`. The code is ' +
          'valid for one minute and for one use. Errors are redirected too, except that a wrong `client_id` or ' +
          '`redirect_uri` is shown to the user.',
        // The query is parsed in `authorize`, because the client determines where errors are sent.
        query: { ...authorizationParameters, parse: (query) => query },
        handler: (page) => authorize(parts, page, page.query),
      }),
      // OpenID Connect Core section 3.1.2.1 allows clients to send the request as a form by POST. A browser sends
      // cookies only after the redirect from the form.
      postedRoute({
        path,
        summary: 'Request an authorization code with a form',
        description: 'Redirects to `GET /oauth/authorize` with the fields of the form as its query.',
        query: authorizationParameters,
      }),
      pageRoute({
        path: consentPath,
        summary: 'Show that no consent is pending',
        description: 'Tells users who open this address directly to start again in the application.',
        handler: ({ res }) =>
          donePage(res, 'Nothing to authorize', 'Go back to the application that sent you here and start again.'),
      }),
      formRoute({
        path: consentPath,
        summary: 'Allow or deny an authorization request',
        description:
          'Receives the form of the consent page, and continues the request of `GET /oauth/authorize`. A denial is ' +
          'redirected to the client as `access_denied`. A consent is remembered for the client and the scope until ' +
          'the login of the browser expires or is revoked. A client whose `redirect_uri` is not `https` needs a new ' +
          'consent each time.',
        fields: {
          request: described('Query of the authorization request', text),
          decision: described('`allow`; any other value denies the request', text.optional()),
        },
        handler: (page) =>
          authorize(
            parts,
            page,
            new URLSearchParams(page.fields.request),
            page.fields.decision === 'allow' ? 'allow' : 'deny',
          ),
      }),
    ],
    metadata: (at) => ({
      authorization_endpoint: at(path),
      response_types_supported: ['code'],
      response_modes_supported: ['query'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
      prompt_values_supported: prompts,
      request_parameter_supported: false,
      request_uri_parameter_supported: false,
      claims_parameter_supported: false,
    }),
  };
}

/** Runs steps 1 to 5. `decision` is the user's decision in step 4. */
async function authorize(
  parts: AuthorizationParts,
  page: PageRequest,
  query: URLSearchParams,
  decision?: 'allow' | 'deny',
): Promise<void> {
  const { res, context } = page;
  const { auditID, sourceIP, log } = context;
  const destination = destinationOf(query, parts.directory);
  const sendBack = (parameters: Readonly<Record<string, string>>): void => {
    // RFC 9207 defines `iss`.
    const common = { state: query.get('state') ?? undefined, iss: parts.issuer() };
    seeOther(res, withParameters(destination.redirectURI, { ...parameters, ...common }));
  };
  try {
    const request = parseAuthorization(query, destination, parts.issuer());
    const login = await loginFor(parts, page, query, request);
    if (login === undefined) return;
    if (decision === 'deny') {
      annotate(page, request, 'Refused');
      throw new OAuthError('access_denied', 'the user denied the request');
    }
    if (decision === undefined && needsConsent(request, login)) return askConsent(page, query, request, login);
    if (decision === 'allow') await remember(parts, request, login);
    const code = await createCode(parts, request, login);
    annotate(page, request, 'Allowed');
    log.info('client authorized', { auditID, username: login.subject.username, client: request.client.name, sourceIP });
    sendBack({ code });
  } catch (error) {
    if (!isReportable(error)) throw error;
    if (error.cause !== undefined) log.error(error.message, { auditID, error: error.cause });
    sendBack({
      error: error instanceof OAuthError ? error.error : 'temporarily_unavailable',
      error_description: describable(error.message),
    });
  }
}

function annotate({ context }: PageRequest, { client }: AuthorizationRequest, decision: 'Allowed' | 'Refused'): void {
  context.annotate(annotations.client, client.name);
  context.annotate(annotations.authorization, decision);
}

/** Finds the login of step 3. Returns undefined if the login page was sent instead. */
async function loginFor(
  parts: AuthorizationParts,
  page: PageRequest,
  query: URLSearchParams,
  request: AuthorizationRequest,
): Promise<BrowserLogin | undefined> {
  const login = await browserLogin(page, parts);
  if (login !== undefined && !mustLogIn(request, login, parts.clock())) return login;
  if (request.prompt?.includes('none')) throw new OAuthError('login_required', 'the user must log in');
  const next = withParameters(path, Object.fromEntries(query));
  parts.showLogin(page, { next, username: query.get('login_hint') ?? '' });
  return undefined;
}

const mustLogIn = (
  { prompt = [], max_age: maxAge }: AuthorizationRequest,
  { session }: BrowserLogin,
  now: number,
): boolean =>
  prompt.includes('login') ||
  prompt.includes('select_account') ||
  (maxAge !== undefined && now - parseMilliseconds(session.spec.createdAt) > maxAge * 1_000);

/** Shows the consent page of step 4. */
function askConsent(
  page: PageRequest,
  query: URLSearchParams,
  { client, prompt, redirectURI, scope }: AuthorizationRequest,
  { subject: { username } }: BrowserLogin,
): void {
  if (prompt?.includes('none')) throw new OAuthError('consent_required', 'the user must consent');
  consentPage(page, {
    action: consentPath,
    client: client.name,
    redirectURI,
    scope,
    username,
    query: query.toString(),
  });
}

function needsConsent(request: AuthorizationRequest, { session }: BrowserLogin): boolean {
  const { client, prompt, redirectURI } = request;
  if (prompt?.includes('consent')) return true;
  if (!client.consent) return false;
  return canBeIntercepted(redirectURI) || session.status.consents?.includes(consentOf(request)) !== true;
}

/** Returns the key of a consent. A different client or scope needs a new consent. */
const consentOf = ({ client, scope }: AuthorizationRequest): string =>
  [client.name, ...(scope?.split(' ') ?? []).toSorted()].join(' ');

async function remember(
  { sessions }: AuthorizationParts,
  request: AuthorizationRequest,
  { session }: BrowserLogin,
): Promise<void> {
  const before = session.status.consents ?? [];
  const consent = consentOf(request);
  if (!before.includes(consent)) await sessions.setConsents(session, [...before, consent].slice(-maxConsents));
}

/** Creates the code of step 5. */
function createCode(
  { sessions }: AuthorizationParts,
  { client, redirectURI, code_challenge: challenge, nonce, scope }: AuthorizationRequest,
  { session: { metadata, spec } }: BrowserLogin,
): Promise<string> {
  return sessions.codes.create(
    {
      ...sessionOwnerOf(spec),
      clientID: client.name,
      ...(scope === undefined ? {} : { scope }),
      code: {
        redirectURI,
        challenge,
        ...(nonce === undefined ? {} : { nonce }),
        authenticatedAt: spec.createdAt,
        login: metadata.name,
      },
    },
    codeLife,
    client.grantTypes.includes(refreshGrantType),
  );
}
