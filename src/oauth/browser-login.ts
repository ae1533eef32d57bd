import type { Response } from 'express';
import { pagesClient } from '../accounts/directory/clients.ts';
import type { Directory } from '../accounts/directory/directory.ts';
import type { Session } from '../tokens/sessions/session.ts';
import type { Sessions } from '../tokens/sessions/sessions.ts';
import type { Subject } from '../tokens/subject.ts';
import { subjectOf } from '../accounts/directory/subjects.ts';
import { OAuthError } from '../runtime/errors.ts';
import { cookie, loginCookie, readCookie } from './pages/cookies.ts';
import { seeOther, type PageRequest } from './pages/route.ts';
import type { PasswordLogin, Verified } from './password-login.ts';

/** A login to the pages of this server: a session for which no tokens are issued. */
export interface BrowserLogin {
  readonly session: Session;
  readonly subject: Subject;
}

/**
 * Returns the login of this browser, and identifies the user in the audit event. Returns undefined if there is no
 * login, or if the user must change the password. Throws 503 if the session cannot be read.
 */
export async function browserLogin(
  { req, context }: Pick<PageRequest, 'req' | 'context'>,
  { sessions, directory }: { readonly sessions: Sessions; readonly directory: Directory },
): Promise<BrowserLogin | undefined> {
  const token = readCookie(req, loginCookie);
  const presented = token === undefined ? undefined : await sessions.rotation.inspect(token);
  if (presented?.isCurrent !== true || presented.session.spec.clientID !== pagesClient.name) return undefined;
  const { session } = presented;
  const subject = subjectOf(session, directory);
  if (subject === undefined || subject.passwordChangeRequired === true) return undefined;
  context.audit?.identify(subject);
  return { session, subject };
}

export interface BrowserLoginParts {
  readonly login: PasswordLogin;
  readonly sessions: Sessions;
  readonly directory: Directory;
}

export const accountPath = '/oauth/account';

/** Throws unless the path is a page of this server. Prevents open redirects. */
export function assertOwnPage(next: string): void {
  if (!/^\/oauth\/(account|authorize|device|login)(\?[!-~]*)?$/.test(next))
    throw new OAuthError('invalid_request', '"next" must be a path of this server, such as /oauth/account');
}

/** Returns the query of a path. */
export const queryOf = (next: string): URLSearchParams => new URLSearchParams(next.split('?')[1]);

/** Redirects to the request that required the login, without the parameters that would require another login. */
export function resume(res: Response, next: string): void {
  const [path = ''] = next.split('?');
  const query = queryOf(next);
  const prompt = (query.get('prompt') ?? '').split(' ').filter((one) => one !== 'login' && one !== 'select_account');
  query.delete('prompt');
  query.delete('max_age');
  const remaining = prompt.join(' ');
  if (remaining !== '') query.set('prompt', remaining);
  seeOther(res, query.size === 0 ? path : `${path}?${query.toString()}`);
}

/** Starts a login of a verified user in this browser, and revokes the previous login of the browser. */
export async function logInBrowser(
  { login, sessions, directory }: BrowserLoginParts,
  { req, res, context }: PageRequest,
  verified: Verified,
): Promise<void> {
  const previous = await browserLogin({ req, context }, { sessions, directory });
  const { refreshToken } = await login.startSession(verified, { context });
  if (previous !== undefined) await sessions.revoke(previous.session.metadata.name);
  res.appendHeader('Set-Cookie', cookie(loginCookie, refreshToken));
}
