/**
 * Serves `/oauth/logout` (OpenID Connect RP-Initiated Logout 1.0), which revokes the login of the browser and the
 * session of the client.
 */
import type { Client } from '../../accounts/directory/clients.ts';
import type { Directory } from '../../accounts/directory/directory.ts';
import type { Sessions } from '../../tokens/sessions/sessions.ts';
import type { IdentityClaims, Tokens } from '../../tokens/jwt.ts';
import { OAuthError } from '../../runtime/errors.ts';
import { described, text } from '../../http/schema.ts';
import { browserLogin, type BrowserLogin } from '../browser-login.ts';
import type { OAuthEndpoint } from '../json-response.ts';
import { oauthParameters } from '../parameters.ts';
import { cookie, loginCookie } from '../pages/cookies.ts';
import { donePage, logoutPage } from '../pages/notices.ts';
import { formRoute, pageRoute, postedRoute, seeOther, type PageRequest } from '../pages/route.ts';
import { withParameters } from '../authorization-request.ts';

export interface LogoutParts {
  readonly directory: Directory;
  readonly sessions: Sessions;
  readonly tokens: Tokens;
}

const path = '/oauth/logout';
/** Path that receives the confirmation of a logout page. */
export const confirmLogoutPath = '/oauth/logout/confirm';
const invalid = (description: string): OAuthError => new OAuthError('invalid_request', description);

const logoutParameters = oauthParameters({
  id_token_hint: described('`id_token` of the session to revoke; an expired `id_token` is accepted', text.optional()),
  client_id: described('Client to which the `id_token` was issued', text.optional()),
  post_logout_redirect_uri: described(
    'URI to redirect to after the logout; must be registered for the client',
    text.optional(),
  ),
  state: described('Returned unchanged in the redirect', text.optional()),
});

type LogoutParameters = ReturnType<typeof logoutParameters.parse>;

interface LogoutRequest {
  readonly hint: IdentityClaims | undefined;
  /** Registered URI to redirect to after the logout. */
  readonly redirectURI: string | undefined;
  readonly state: string | undefined;
}

function validate({ tokens, directory }: LogoutParts, given: LogoutParameters): LogoutRequest {
  const token = given.id_token_hint;
  const hint = token === undefined ? undefined : tokens.readIdentity(token);
  if (token !== undefined && hint === undefined)
    throw invalid('id_token_hint must be an id_token issued by this server');
  const clientID = given.client_id ?? hint?.aud;
  if (hint !== undefined && hint.aud !== clientID)
    throw invalid('id_token_hint was issued to a client other than client_id');
  const redirectURI = given.post_logout_redirect_uri;
  if (redirectURI !== undefined && !isRegisteredAt(directory.clients.get(clientID ?? ''), redirectURI))
    throw invalid('the post_logout_redirect_uri is not registered for the application that sent you here');
  return { hint, redirectURI, state: given.state };
}

async function revoke(
  { sessions }: LogoutParts,
  { res, context }: PageRequest,
  login: BrowserLogin,
  hint?: IdentityClaims,
): Promise<void> {
  const { session, subject } = login;
  await sessions.revoke(session.metadata.name);
  // The caller has checked that the hint identifies the user who is logged in.
  if (hint !== undefined) await sessions.revoke(hint.sid);
  res.appendHeader('Set-Cookie', cookie(loginCookie, ''));
  const { auditID, sourceIP, log } = context;
  log.info('logout', {
    auditID,
    username: subject.username,
    client: hint?.aud,
    sid: session.metadata.name,
    sourceIP,
  });
}

export function logoutEndpoint(parts: LogoutParts): OAuthEndpoint {
  async function logOut(page: PageRequest, given: LogoutParameters): Promise<void> {
    const request = validate(parts, given);
    const login = await browserLogin(page, parts);
    if (login !== undefined && request.hint?.sub !== login.subject.uid) {
      // Without a matching hint, section 2 of OpenID Connect RP-Initiated Logout requires a confirmation, because any
      // site may have sent the user to this page.
      const { redirectURI } = request;
      logoutPage(page, {
        title: 'Log out?',
        action: confirmLogoutPath,
        username: login.subject.username,
        query: page.context.query.toString(),
        redirectURI,
      });
      return;
    }
    if (login !== undefined) await revoke(parts, page, login, request.hint);
    finish(page, request);
  }

  return {
    routes: [
      pageRoute({
        path,
        summary: 'Log out in the browser',
        description:
          'Revokes the login of the browser and the session of `id_token_hint` (OpenID Connect RP-Initiated ' +
          'Logout 1.0). Then redirects to `post_logout_redirect_uri`, or shows a page if there is none. Without ' +
          'an `id_token_hint` of the user who is logged in, the user must confirm first.',
        query: logoutParameters,
        handler: (page) => logOut(page, page.query),
      }),
      postedRoute({
        path,
        summary: 'Log out in the browser with a form',
        description: 'Redirects to `GET /oauth/logout` with the fields of the form as its query.',
        query: logoutParameters,
      }),
      pageRoute({
        path: confirmLogoutPath,
        summary: 'Redirect to the logout page',
        description: 'Serves browsers that open the address of the form directly.',
        handler: ({ res }) => seeOther(res, path),
      }),
      formRoute({
        path: confirmLogoutPath,
        summary: 'Confirm a logout',
        description:
          'Receives the form of the logout page. Revokes the login of the browser, then redirects to the ' +
          '`post_logout_redirect_uri` of the request, or shows a page if there is none.',
        fields: { request: described('Query of the logout request', text.optional()) },
        async handler(page) {
          const request = validate(parts, logoutParameters.parse(new URLSearchParams(page.fields.request)));
          const login = await browserLogin(page, parts);
          if (login !== undefined) await revoke(parts, page, login);
          finish(page, request);
        },
      }),
    ],
    metadata: (at) => ({ end_session_endpoint: at(path) }),
  };
}

const isRegisteredAt = (client: Client | undefined, uri: string): boolean =>
  client?.postLogoutRedirectURIs.includes(uri) === true;

function finish({ res }: PageRequest, { redirectURI, state }: LogoutRequest): void {
  if (redirectURI !== undefined) seeOther(res, withParameters(redirectURI, { state }));
  else donePage(res, 'You are logged out', 'You can close this page.');
}
