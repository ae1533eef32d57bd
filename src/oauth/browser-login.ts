import type { Request } from 'express';
import { pagesClient } from '../accounts/built-in-clients.ts';
import type { Directory } from '../accounts/directory.ts';
import type { Session, Sessions } from '../accounts/sessions.ts';
import { subjectOf, type Subject } from '../accounts/subjects.ts';
import { loginCookie, readCookie } from './pages/cookies.ts';

/** Somebody who has logged in to our pages: a session of its own, which gives nobody tokens. */
export interface BrowserLogin {
  readonly session: Session;
  readonly subject: Subject;
}

/** Who is logged in at this browser; undefined also for who must change the password first. Throws 503 when that cannot be told. */
export async function browserLogin(
  req: Request,
  { sessions, directory }: { readonly sessions: Sessions; readonly directory: Directory },
): Promise<BrowserLogin | undefined> {
  const token = readCookie(req, loginCookie);
  const presented = token === undefined ? undefined : await sessions.presented(token);
  if (presented?.isCurrent !== true || presented.session.spec.clientID !== pagesClient.name) return undefined;
  const subject = subjectOf(presented.session, directory);
  return subject === undefined || subject.passwordChangeRequired === true
    ? undefined
    : { session: presented.session, subject };
}
