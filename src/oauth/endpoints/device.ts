/**
 * Serves `/oauth/device` (RFC 8628 section 3.3), the page where users enter the code of a device and authorize the
 * device.
 */
import { pagesClient } from '../../accounts/directory/clients.ts';
import type { Directory } from '../../accounts/directory/directory.ts';
import type { LoginLimiter } from '../../accounts/logins/limit.ts';
import { sessionOwnerOf, type Session } from '../../tokens/sessions/session.ts';
import type { Sessions } from '../../tokens/sessions/sessions.ts';
import { annotations } from '../../audit/annotations.ts';
import type { Values } from '../../http/request/parameters.ts';
import type { Route } from '../../http/route.ts';
import { described, text } from '../../http/schema.ts';
import { browserLogin, type BrowserLogin } from '../browser-login.ts';
import { deviceConsentPage, userCodePage } from '../pages/device.ts';
import { donePage } from '../pages/notices.ts';
import type { ShowLogin } from '../pages/login.ts';
import { oauthParameters } from '../parameters.ts';
import { formRoute, pageRoute, type PageRequest } from '../pages/route.ts';
import { withParameters } from '../authorization-request.ts';
import { shown, userCodeIn } from '../user-code.ts';
import { durationText } from '../../runtime/duration.ts';

export interface DeviceParts {
  readonly directory: Directory;
  readonly sessions: Sessions;
  readonly limiter: LoginLimiter;
  readonly showLogin: ShowLogin;
}

export const devicePath = '/oauth/device';
const action = devicePath;
/** Maximum characters of a wrong code that the page shows again. */
const maxShown = 20;

const userCodeParameter = { user_code: described('Code that the device shows', text.optional()) };
const fields = {
  ...userCodeParameter,
  decision: described(
    '`allow` authorizes the device, any other value denies it. If the parameter is missing, the page asks for confirmation',
    text.optional(),
  ),
};

export function deviceRoutes(parts: DeviceParts): Route[] {
  return [
    pageRoute({
      path: devicePath,
      summary: 'Show the device login page',
      description:
        'Shows a form for the code that a device displays (RFC 8628 section 3.3). If the user is not logged in, the login page is shown instead.',
      query: oauthParameters(userCodeParameter),
      handler: (page) => show(parts, page, page.query.user_code),
    }),
    formRoute({
      path: devicePath,
      summary: 'Allow or deny a device',
      description:
        'Receives the forms of the device login page. With the code alone, the page shows the client and the ' +
        'address of the device and asks for confirmation. Wrong codes are limited like wrong passwords.',
      fields,
      handler: (page) => enter(parts, page, page.fields),
    }),
  ];
}

async function show(parts: DeviceParts, page: PageRequest, typed = ''): Promise<void> {
  if ((await loginFor(parts, page, typed)) !== undefined)
    userCodePage(page, { action, userCode: typed.slice(0, maxShown) });
}

/** Asks the user to confirm the device that has this code, then applies the decision. */
async function enter(
  parts: DeviceParts,
  page: PageRequest,
  { user_code: typed = '', decision }: Values<typeof fields>,
): Promise<void> {
  const login = await loginFor(parts, page, typed);
  const session = login && (await find(parts, page, typed, login));
  if (login === undefined || session === undefined) return;
  if (decision !== undefined) return await decide(parts, page, session, login, decision === 'allow');
  const { clientID, scope, code } = session.spec;
  deviceConsentPage(page, {
    action,
    userCode: shown(userCodeIn(typed) ?? ''),
    client: clientID,
    scope,
    sourceIP: code?.sourceIP ?? '',
    username: login.subject.username,
  });
}

/** Returns the login of this browser; undefined if the login page was sent instead. */
async function loginFor(parts: DeviceParts, page: PageRequest, typed: string): Promise<BrowserLogin | undefined> {
  const login = await browserLogin(page, parts);
  if (login === undefined) parts.showLogin(page, { next: withParameters(devicePath, { user_code: typed }) });
  return login;
}

/**
 * Returns the session of the device; undefined if an error page was sent. Wrong codes are limited like failed logins,
 * but counted separately.
 */
async function find(
  { sessions, limiter }: DeviceParts,
  page: PageRequest,
  typed: string,
  { subject }: BrowserLogin,
): Promise<Session | undefined> {
  const { sourceIP, log, auditID } = page.context;
  const { username } = subject;
  const attempt = { guesses: 'user code', username, address: sourceIP, client: pagesClient.name } as const;
  const showProblem = (problem: string, status: number): undefined =>
    userCodePage(page, { action, userCode: typed.slice(0, maxShown), problem, status }) as undefined;
  const refuse = (seconds: number): undefined => {
    page.res.setHeader('Retry-After', seconds);
    return showProblem(`Too many incorrect codes. Try again in ${durationText(seconds)}.`, 429);
  };
  return await limiter.during<Session | undefined>(attempt, refuse, async () => {
    const userCode = userCodeIn(typed);
    const session = userCode === undefined ? undefined : await sessions.devices.findPending(userCode);
    if (session !== undefined) return session;
    limiter.failed(attempt);
    log.info('unknown user code', { auditID, username, sourceIP });
    return showProblem('This code is incorrect or has expired. Check the code on your device.', 400);
  });
}

async function decide(
  { sessions }: DeviceParts,
  page: PageRequest,
  session: Session,
  { session: { metadata, spec }, subject }: BrowserLogin,
  isAllowed: boolean,
): Promise<void> {
  const { context, res } = page;
  const { auditID, sourceIP, log } = context;
  if (!isAllowed) await sessions.revoke(session.metadata.name);
  else {
    const user = { ...sessionOwnerOf(spec), authenticatedAt: spec.createdAt, login: metadata.name };
    if (!(await sessions.devices.approve(session, user)))
      return userCodePage(page, {
        action,
        userCode: '',
        problem: 'This code has expired. Start again on your device.',
        status: 400,
      });
  }
  context.annotate(annotations.client, session.spec.clientID);
  context.annotate(annotations.session, session.metadata.name);
  context.annotate(annotations.authorization, isAllowed ? 'Allowed' : 'Refused');
  log.info(isAllowed ? 'device authorized' : 'device denied', {
    auditID,
    username: subject.username,
    client: session.spec.clientID,
    sid: session.metadata.name,
    sourceIP,
  });
  if (isAllowed) donePage(res, 'Device authorized', 'You can close this page and return to your device.');
  else donePage(res, 'Device denied', 'You can close this page.');
}
