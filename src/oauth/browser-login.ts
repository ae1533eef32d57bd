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

/** A login to the pages of this server: a session without tokens. */
export interface BrowserLogin {
  readonly session: Session;
  readonly subject: Subject;
}

/**
 * Returns the login of this browser, and identifies its user in the audit record; undefined also if the user must change the password.
 * Throws 503 if the state of sessions is unknown.
 */
export async function browserLogin(
  { req, context }: Pick<PageRequest, 'req' | 'context'>,
  { sessions, directory }: { readonly sessions: Sessions; readonly directory: Directory },
): Promise<BrowserLogin | undefined> {
  const token = readCookie(req, loginCookie);
  const presented = token === undefined ? undefined : await sessions.rotation.presented(token);
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

/** Throws unless the path is one of our pages: this prevents open redirects. */
export function demandOurs(next: string): void {
  if (!/^\/oauth\/(account|authorize|device|login)(\?[!-~]*)?$/.test(next))
    throw new OAuthError('invalid_request', 'the login does not go on there');
}

/** Returns the query of such a path. */
export const queryOf = (next: string): URLSearchParams => new URLSearchParams(next.split('?')[1]);

/** Redirects to the request that the login was for, without the parameters that required the login. */
export function goOn(res: Response, next: string): void {
  const [path = ''] = next.split('?');
  const query = queryOf(next);
  const prompt = (query.get('prompt') ?? '').split(' ').filter((one) => one !== 'login' && one !== 'select_account');
  query.delete('prompt');
  query.delete('max_age');
  const left = prompt.join(' ');
  if (left !== '') query.set('prompt', left);
  seeOther(res, query.size === 0 ? path : `${path}?${query.toString()}`);
}

/** Starts the login of a verified user at this browser, and revokes the previous one. */
export async function beginInBrowser(
  { login, sessions, directory }: BrowserLoginParts,
  { req, res, context }: PageRequest,
  verified: Verified,
): Promise<void> {
  const before = await browserLogin({ req, context }, { sessions, directory });
  const { refreshToken } = await login.begin(verified, { context });
  if (before !== undefined) await sessions.revoke(before.session.metadata.name);
  res.appendHeader('Set-Cookie', cookie(loginCookie, refreshToken));
}
