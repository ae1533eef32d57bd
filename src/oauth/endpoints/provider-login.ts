/**
 * Serves logins at an OpenID provider. `POST /oauth/login/{provider}` sends the browser to the provider. The provider
 * then redirects the browser to `GET /oauth/callback/{provider}`. The callback has four steps:
 * 1. Check that this server sent this browser to the provider.
 * 2. Request the identity from the provider.
 * 3. Find the user.
 * 4. Start the session.
 *
 * Failures of step 2 are counted per address.
 */
import { randomBytes } from 'node:crypto';
import type { Request } from 'express';
import { pagesClient } from '../../accounts/directory/clients.ts';
import type { Linking } from '../../accounts/providers/linking.ts';
import type { ProviderRequest } from '../../accounts/providers/provider.ts';
import type { RedirectProviders } from '../../accounts/providers/redirect-providers.ts';
import { PersonRefused, type Person } from '../../accounts/providers/person.ts';
import type { LoginHistories } from '../../accounts/logins/history.ts';
import type { LoginLimiter } from '../../accounts/logins/limit.ts';
import { sameHash, type RefreshTokens } from '../../tokens/refresh-tokens.ts';
import { annotations } from '../../audit/annotations.ts';
import { isReportable, OAuthError } from '../../runtime/errors.ts';
import { durationText } from '../../runtime/duration.ts';
import type { RequestContext, Route } from '../../http/route.ts';
import { described, text } from '../../http/schema.ts';
import { assertOwnPage, logInBrowser, queryOf, resume, type BrowserLoginParts } from '../browser-login.ts';
import { oauthParameters } from '../parameters.ts';
import { cookie, formCookie, providerCookie, readCookie } from '../pages/cookies.ts';
import { failurePage, redirectPage } from '../pages/notices.ts';
import { loginPath } from '../pages/login.ts';
import { formRoute, pageRoute, seeOther, type PageRequest } from '../pages/route.ts';

export interface ProviderLoginParts extends BrowserLoginParts {
  readonly redirectProviders: RedirectProviders;
  readonly linking: Linking;
  readonly loginHistories: LoginHistories;
  readonly limiter: Pick<LoginLimiter, 'during' | 'failed'>;
  readonly refreshTokens: Pick<RefreshTokens, 'derive'>;
  readonly clock: () => number;
}

/** Maximum milliseconds of a login at a provider. The login may require a second factor. */
const maxLoginTime = 600_000;
/** Maximum characters of `next`, because browsers drop cookies of more than 4 KiB. */
const maxNextLength = 2_800;

/** Data in the cookie while the user logs in at the provider. */
interface PendingLogin {
  readonly secret: string;
  readonly provider: string;
  /** Milliseconds since the epoch. */
  readonly until: number;
  /** Path to return to after the login. */
  readonly next: string;
}

const encode = ({ secret, provider, until, next }: PendingLogin): string =>
  [secret, provider, until, Buffer.from(next).toString('base64url')].join('.');

function decode(value: string | undefined): PendingLogin | undefined {
  const [secret, provider, until, next, ...rest] = value?.split('.') ?? [];
  if (secret === undefined || provider === undefined || next === undefined || rest.length > 0) return undefined;
  return { secret, provider, until: Number(until), next: Buffer.from(next, 'base64url').toString('utf8') };
}

const expired = (): OAuthError =>
  new OAuthError(
    'invalid_request',
    'this login has expired or was not started in this browser; go back and start again',
  );

/** Shows failures with a link to `next`. The link leads to the login page again, because the browser has no login. */
async function withFailurePage(page: PageRequest, next: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    if (!isReportable(error) || page.res.headersSent) throw error;
    failurePage(page, error, next);
  }
}

function refuse(seconds: number): never {
  throw new OAuthError('access_denied', `too many failed logins; try again in ${durationText(seconds)}`, {
    status: 429,
    headers: { 'Retry-After': String(seconds) },
  });
}

/** The provider may send further parameters, which accounts/providers reads. */
const callbackParameters = oauthParameters({
  state: described('State that this server sent to the provider', text.optional()),
  code: described('Authorization code of the provider', text.optional()),
  iss: described('Issuer of the provider', text.optional()),
  error: described('Error code of the provider', text.optional()),
  error_description: described('Human-readable description of the error', text.optional()),
});

interface CallbackRequest extends PageRequest {
  readonly path: { readonly provider: string };
  readonly query: ReturnType<typeof callbackParameters.parse>;
}

export function providerLoginRoutes(parts: ProviderLoginParts): Route[] {
  const atProvider = `${loginPath}/:provider`;
  const pathParameters = { provider: 'Name of the identity provider in the configuration' };
  return [
    pageRoute({
      path: atProvider,
      summary: 'Redirect to the login page',
      description: 'Serves browsers that open the address of the form directly.',
      pathParameters,
      handler: ({ res }) => seeOther(res, loginPath),
    }),
    formRoute({
      path: atProvider,
      summary: 'Start a login at an identity provider',
      description:
        'Receives the form of a provider button on the login page. Sends the browser to the OpenID provider with a ' +
        '`Refresh` header. The user has ten minutes to log in at the provider.',
      pathParameters,
      fields: { next: described('Path to return to, as in `POST /oauth/login`', text) },
      handler: (page) => startLogin(parts, page.path.provider, page, page.fields.next),
    }),
    pageRoute({
      path: '/oauth/callback/:provider',
      summary: 'Complete a login at an identity provider',
      description:
        'The OpenID provider redirects the browser here. The server checks `state` against the cookies of the ' +
        'browser, redeems `code`, finds the user and redirects to the page for which the login was started. A ' +
        'user who is disabled or cannot be linked gets 403. Too many failures from an address return 429 with ' +
        '`Retry-After`.',
      pathParameters,
      query: callbackParameters,
      handler: (page) => completeLogin(parts, page),
    }),
  ];
}

/**
 * Returns the state, nonce and verifier that the provider's response must match. These values are derived from both
 * cookies of this browser with a key that only the replicas have. The `state` therefore authenticates the cookies,
 * including the expiry, and is useless in any other browser.
 */
function requestOf(
  { refreshTokens }: ProviderLoginParts,
  req: Request,
  pending: PendingLogin,
): ProviderRequest | undefined {
  const form = readCookie(req, formCookie);
  if (form === undefined) return undefined;
  const derive = (name: string): string =>
    refreshTokens.derive(JSON.stringify(['provider login', name, form, encode(pending)]));
  return { state: derive('state'), nonce: derive('nonce'), verifier: derive('verifier') };
}

async function startLogin(parts: ProviderLoginParts, provider: string, page: PageRequest, next: string): Promise<void> {
  assertOwnPage(next);
  await withFailurePage(page, next, () => sendToProvider(parts, provider, page, next));
}

async function sendToProvider(
  parts: ProviderLoginParts,
  provider: string,
  { req, res, context }: PageRequest,
  next: string,
): Promise<void> {
  const { redirectProviders, clock } = parts;
  if (next.length > maxNextLength)
    throw new OAuthError(
      'invalid_request',
      `the request that needs this login is longer than ${maxNextLength} characters; log in with a password instead`,
    );
  const pending = { secret: randomBytes(32).toString('base64url'), provider, until: clock() + maxLoginTime, next };
  const request = requestOf(parts, req, pending);
  if (request === undefined) throw expired();
  const query = queryOf(next);
  const mustLogIn = query.has('max_age') || /\b(login|select_account)\b/.test(query.get('prompt') ?? '');
  const url = await redirectProviders.authorizationURL(provider, request, mustLogIn, context.sourceIP);
  res.appendHeader('Set-Cookie', cookie(providerCookie, encode(pending)));
  const name = redirectProviders.all().find((one) => one.name === provider)?.displayName ?? provider;
  redirectPage(res, { url, name });
}

async function completeLogin(parts: ProviderLoginParts, page: CallbackRequest): Promise<void> {
  const pending = decode(readCookie(page.req, providerCookie));
  if (pending === undefined) throw expired();
  assertOwnPage(pending.next);
  await withFailurePage(page, pending.next, () => logIn(parts, page, pending));
}

async function requestPerson(
  { redirectProviders, limiter }: ProviderLoginParts,
  provider: string,
  request: ProviderRequest,
  { query, sourceIP }: RequestContext,
): Promise<Person> {
  const attempt = { guesses: 'provider code', address: sourceIP } as const;
  return await limiter.during(attempt, refuse, async () => {
    try {
      return await redirectProviders.person(provider, query, request, sourceIP);
    } catch (error) {
      // `PersonRefused` means that the person has authenticated at the provider, so the code was not guessed.
      if (!(error instanceof PersonRefused)) limiter.failed(attempt);
      throw error;
    }
  });
}

/** Returns the outcome of a login that failed with an error; undefined if the server or the provider failed. */
function outcomeOf(error: unknown): 'Refused' | 'Limited' | undefined {
  if (error instanceof PersonRefused) return 'Refused';
  if (!isReportable(error) || error.code >= 500) return undefined;
  return error.code === 429 ? 'Limited' : 'Refused';
}

async function logIn(parts: ProviderLoginParts, page: CallbackRequest, pending: PendingLogin): Promise<void> {
  const {
    req,
    res,
    context,
    path: { provider },
  } = page;
  const request = requestOf(parts, req, pending);
  const isGenuine = request !== undefined && sameHash(request.state, page.query.state);
  if (!isGenuine || pending.provider !== provider || pending.until <= parts.clock()) throw expired();
  // The cookie is valid for one attempt, whether or not it succeeds.
  res.appendHeader('Set-Cookie', cookie(providerCookie, ''));
  const { auditID, sourceIP, userAgent, log } = context;
  // The annotation has this value until the outcome is known.
  context.annotate(annotations.login, 'Unavailable');
  let outcome: string | undefined;
  try {
    const person = await requestPerson(parts, provider, request, context);
    const account = await parts.linking.accountOf(person);
    const reason = account.active ? 'LoggedIn' : 'Disabled';
    parts.loginHistories.add(account, { reason, client: pagesClient.name, sourceIP, userAgent });
    if (!account.active) {
      outcome = 'Disabled';
      throw new PersonRefused('this user is disabled');
    }
    await logInBrowser(parts, page, { account, person });
    resume(res, pending.next);
  } catch (error) {
    outcome ??= outcomeOf(error);
    if (outcome !== undefined) context.annotate(annotations.login, outcome);
    if (!(error instanceof PersonRefused)) throw error;
    log.info('login failed', { auditID, provider, reason: error.message, client: pagesClient.name, sourceIP });
    throw new OAuthError('access_denied', error.message, { status: 403 });
  }
}
