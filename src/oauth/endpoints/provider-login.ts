/**
 * Logins at an identity provider that sends the browser back. `POST /oauth/login/{provider}` sends the browser there;
 * `GET /oauth/callback/{provider}` 1 checks that this server sent this browser there, 2 requests the person from the provider, 3 finds the
 * user, 4 starts the session. Failures of 2 are counted by address.
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
import { isTold, OAuthError } from '../../runtime/errors.ts';
import type { RequestContext, Route } from '../../http/route.ts';
import { described, text } from '../../http/schema.ts';
import { beginInBrowser, demandOurs, goOn, queryOf, type BrowserLoginParts } from '../browser-login.ts';
import { oauthParameters } from '../parameters.ts';
import { cookie, formCookie, providerCookie, readCookie } from '../pages/cookies.ts';
import { failurePage, leavingPage } from '../pages/notices.ts';
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

/** Maximum duration of a login at a provider, which may need a second factor. Milliseconds. */
const longestAway = 600_000;
/** Browsers keep no cookie of more than 4 KiB. */
const longestNext = 2_800;

/** State in the cookie while the user is at the provider. */
interface Away {
  readonly secret: string;
  readonly provider: string;
  /** Milliseconds since the epoch. */
  readonly until: number;
  /** Path to return to after the login. */
  readonly next: string;
}

const encode = ({ secret, provider, until, next }: Away): string =>
  [secret, provider, until, Buffer.from(next).toString('base64url')].join('.');

function decode(value: string | undefined): Away | undefined {
  const [secret, provider, until, next, ...rest] = value?.split('.') ?? [];
  if (secret === undefined || provider === undefined || next === undefined || rest.length > 0) return undefined;
  return { secret, provider, until: Number(until), next: Buffer.from(next, 'base64url').toString('utf8') };
}

const outOfDate = (): OAuthError =>
  new OAuthError('invalid_request', 'this login was not begun here, or too long ago: go back and begin again');

/** Shows failures with a link to `next`, which shows the login page again because the login has failed. */
async function orBack(page: PageRequest, next: string, go: () => Promise<void>): Promise<void> {
  try {
    await go();
  } catch (error) {
    if (!isTold(error) || page.res.headersSent) throw error;
    failurePage(page, error, next);
  }
}

function refuse(seconds: number): never {
  throw new OAuthError('access_denied', `too many failed logins; try again in ${seconds} s`, {
    status: 429,
    headers: { 'Retry-After': String(seconds) },
  });
}

/** The provider reads further parameters (accounts/providers). */
const callbackParameters = oauthParameters({
  state: described('State that this server sent to the provider', text.optional()),
  code: described('Authorization code of the provider', text.optional()),
  iss: described('Issuer of the provider', text.optional()),
  error: described('Error code of the provider', text.optional()),
  error_description: described('Description of the error, for people', text.optional()),
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
        'Receives a button of the login page, and sends the browser to the OpenID provider by a page with a ' +
        '`Refresh` header. The user has ten minutes to log in there.',
      pathParameters,
      fields: { next: described('Path to return to, as at `POST /oauth/login`', text) },
      handler: (page) => leave(parts, page.path.provider, page, page.fields.next),
    }),
    pageRoute({
      path: '/oauth/callback/:provider',
      summary: 'Complete a login at an identity provider',
      description:
        'The OpenID provider redirects the browser here. The server checks `state` against the cookies of the ' +
        'browser, redeems `code`, finds the user and redirects to the page for which the login was started. A ' +
        'user who is disabled or cannot be linked gets 403. Too many failures of an address return 429 with ' +
        '`Retry-After`.',
      pathParameters,
      query: callbackParameters,
      handler: (page) => comeBack(parts, page),
    }),
  ];
}

/**
 * State, nonce and verifier that the provider's response must match, derived from both cookies of this browser with a key that only the
 * replicas have. So `state` authenticates the cookies, expiry included, and fits no other browser.
 */
function requestOf({ refreshTokens }: ProviderLoginParts, req: Request, away: Away): ProviderRequest | undefined {
  const form = readCookie(req, formCookie);
  if (form === undefined) return undefined;
  const derive = (what: string): string =>
    refreshTokens.derive(JSON.stringify(['provider login', what, form, encode(away)]));
  return { state: derive('state'), nonce: derive('nonce'), verifier: derive('verifier') };
}

async function leave(parts: ProviderLoginParts, provider: string, page: PageRequest, next: string): Promise<void> {
  demandOurs(next);
  await orBack(page, next, () => sendTo(parts, provider, page, next));
}

async function sendTo(
  parts: ProviderLoginParts,
  provider: string,
  { req, res, context }: PageRequest,
  next: string,
): Promise<void> {
  const { redirectProviders, clock } = parts;
  if (next.length > longestNext)
    throw new OAuthError('invalid_request', 'what you log in for is too long to be kept; log in here with a password');
  const away = { secret: randomBytes(32).toString('base64url'), provider, until: clock() + longestAway, next };
  const request = requestOf(parts, req, away);
  if (request === undefined) throw outOfDate();
  const query = queryOf(next);
  const again = query.has('max_age') || /\b(login|select_account)\b/.test(query.get('prompt') ?? '');
  const to = await redirectProviders.authorizationURL(provider, request, again, context.sourceIP);
  res.appendHeader('Set-Cookie', cookie(providerCookie, encode(away)));
  const name = redirectProviders.all().find((one) => one.name === provider)?.displayName ?? provider;
  leavingPage(res, { to, name });
}

async function comeBack(parts: ProviderLoginParts, page: CallbackRequest): Promise<void> {
  const away = decode(readCookie(page.req, providerCookie));
  if (away === undefined) throw outOfDate();
  demandOurs(away.next);
  await orBack(page, away.next, () => logIn(parts, page, away));
}

async function personAt(
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
      // A refused person has logged in at the provider: that is no guess.
      if (!(error instanceof PersonRefused)) limiter.failed(attempt);
      throw error;
    }
  });
}

async function logIn(parts: ProviderLoginParts, page: CallbackRequest, away: Away): Promise<void> {
  const {
    req,
    res,
    context,
    path: { provider },
  } = page;
  const request = requestOf(parts, req, away);
  const isOurs = request !== undefined && sameHash(request.state, page.query.state);
  if (!isOurs || away.provider !== provider || away.until <= parts.clock()) throw outOfDate();
  // The cookie is valid for one attempt, successful or not.
  res.appendHeader('Set-Cookie', cookie(providerCookie, ''));
  const { auditID, sourceIP, userAgent, log } = context;
  try {
    const person = await personAt(parts, provider, request, context);
    const account = await parts.linking.accountOf(person);
    const reason = account.active ? 'LoggedIn' : 'Disabled';
    parts.loginHistories.add(account, { reason, client: pagesClient.name, sourceIP, userAgent });
    if (!account.active) throw new PersonRefused('this user is disabled');
    await beginInBrowser(parts, page, { account, person });
    goOn(res, away.next);
  } catch (error) {
    if (!(error instanceof PersonRefused)) throw error;
    log.info('login failed', { auditID, provider, why: error.message, client: pagesClient.name, sourceIP });
    throw new OAuthError('access_denied', error.message, { status: 403 });
  }
}
