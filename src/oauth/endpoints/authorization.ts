/**
 * `/oauth/authorize` (RFC 6749 section 3.1, OpenID Connect Core section 3.1.2). The steps are shared by all requests: 1 see whom to
 * answer and where, 2 read what is asked for, 3 see who is logged in, or let them log in, 4 ask them, 5 send them back with a code.
 * What goes wrong in step 1 is told to people, after it to the client.
 */
import type { Directory } from '../../accounts/directory/directory.ts';
import { holderOf } from '../../tokens/sessions/session.ts';
import type { Sessions } from '../../tokens/sessions/sessions.ts';
import { annotations } from '../../audit/annotations.ts';
import { describable, isTold, OAuthError } from '../../runtime/errors.ts';
import {
  authorizationParameters,
  destinationOf,
  parseAuthorization,
  prompts,
  type AuthorizationRequest,
  provesNobody,
  withParameters,
} from '../authorization-request.ts';
import { browserLogin, type BrowserLogin } from '../browser-login.ts';
import type { OAuthEndpoint } from '../json-response.ts';
import { required } from '../form.ts';
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

/** RFC 6749 section 4.1.2 allows ten minutes; a browser needs no more than this. Milliseconds. */
const codeLife = 60_000;
const path = '/oauth/authorize';
const consentPath = '/oauth/consent';
/** Of one login; more are asked about again. */
const mostConsents = 50;

export function authorizationEndpoint({
  directory,
  sessions,
  issuer,
  clock,
  showLogin,
}: AuthorizationParts): OAuthEndpoint {
  /** Steps 1 to 5; `decision` is what the user said in step 4. */
  async function authorize(
    { req, res, context }: PageRequest,
    query: URLSearchParams,
    decision?: 'allow' | 'deny',
  ): Promise<void> {
    const destination = destinationOf(query, directory);
    const answer = (parameters: Readonly<Record<string, string | undefined>>): void =>
      seeOther(
        res,
        withParameters(destination.redirectURI, {
          ...parameters,
          state: query.get('state') ?? undefined,
          // RFC 9207.
          iss: issuer(),
        }),
      );
    try {
      const request = parseAuthorization(query, destination);
      const login = await browserLogin({ req, context }, { sessions, directory });
      if (login === undefined || mustLogIn(request, login)) {
        if (request.prompt.has('none')) throw new OAuthError('login_required', 'nobody is logged in');
        return showLogin(
          { req, res },
          { next: withParameters(path, Object.fromEntries(query)), username: query.get('login_hint') ?? '' },
        );
      }
      const decided = (what: 'Allowed' | 'Refused'): void => {
        context.audit?.annotate(annotations.client, request.client.name);
        context.audit?.annotate(annotations.authorization, what);
      };
      if (decision === 'deny') {
        decided('Refused');
        throw new OAuthError('access_denied', 'the user has refused');
      }
      if (decision === undefined && mustAsk(request, login)) {
        if (request.prompt.has('none')) throw new OAuthError('consent_required', 'the user must be asked');
        return consentPage(
          { req, res },
          {
            action: consentPath,
            client: request.client.name,
            redirectURI: request.redirectURI,
            scope: request.scope,
            username: login.subject.username,
            query: query.toString(),
          },
        );
      }
      if (decision === 'allow') await remember(request, login);
      const code = await issue(request, login);
      decided('Allowed');
      const { auditID, sourceIP, log } = context;
      log.info('authorized', { auditID, username: login.subject.username, client: request.client.name, sourceIP });
      answer({ code });
    } catch (error) {
      if (!isTold(error)) throw error;
      if (error.cause !== undefined) context.log.error(error.message, { auditID: context.auditID, error: error.cause });
      answer({
        error: error instanceof OAuthError ? error.error : 'temporarily_unavailable',
        error_description: describable(error.message),
      });
    }
  }

  const mustLogIn = ({ prompt, maxAge }: AuthorizationRequest, { session }: BrowserLogin): boolean =>
    prompt.has('login') ||
    prompt.has('select_account') ||
    (maxAge !== undefined && clock() - parseMilliseconds(session.spec.createdAt) > maxAge * 1_000);

  async function remember(request: AuthorizationRequest, { session }: BrowserLogin): Promise<void> {
    const said = session.status.consents ?? [];
    const consent = consentOf(request);
    if (!said.includes(consent)) await sessions.setConsents(session, [...said, consent].slice(-mostConsents));
  }

  function issue(
    { client, redirectURI, challenge, nonce, scope }: AuthorizationRequest,
    { session: { metadata, spec } }: BrowserLogin,
  ): Promise<string> {
    return sessions.codes.create(
      {
        ...holderOf(spec),
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

  const summary = 'Lets people log in for a client (RFC 6749, OpenID Connect)';
  const begin = { path, summary, parameters: authorizationParameters };
  return {
    routes: [
      pageRoute(begin, (page) => authorize(page, page.context.query)),
      // OpenID Connect Core section 3.1.2.1 has clients post too. A browser sends no login along from elsewhere, but to what it is led to.
      postedRoute(begin),
      pageRoute(
        { path: consentPath, summary: 'Says to people who come by themselves to begin again' },
        async ({ res }) =>
          donePage(
            res,
            'Nothing is asked here now',
            'Go back to the application that sent you here, and begin again there.',
          ),
      ),
      formRoute(
        {
          path: consentPath,
          summary: 'What the user said to the question of /oauth/authorize',
          fields: { request: 'The query of the request', decision: 'allow, or anything else' },
        },
        (page) =>
          authorize(
            page,
            new URLSearchParams(required(page.form, 'request')),
            page.form.get('decision') === 'allow' ? 'allow' : 'deny',
          ),
      ),
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

/** What the user lets a client have: asked for anything else, they are asked again. */
const consentOf = ({ client, scope }: AuthorizationRequest): string =>
  [client.name, ...(scope?.split(' ') ?? []).toSorted()].join(' ');

function mustAsk(request: AuthorizationRequest, { session }: BrowserLogin): boolean {
  const { client, prompt, redirectURI } = request;
  if (prompt.has('consent')) return true;
  if (!client.consent) return false;
  return provesNobody(redirectURI) || session.status.consents?.includes(consentOf(request)) !== true;
}
