/** `/oauth/device` (RFC 8628 section 3.3): where somebody types in the code that a device shows, and lets it in. */
import { pagesClient } from '../../accounts/directory/clients.ts';
import type { Directory } from '../../accounts/directory/directory.ts';
import type { LoginLimiter } from '../../accounts/logins/limit.ts';
import { holderOf, type Session } from '../../tokens/sessions/session.ts';
import type { Sessions } from '../../tokens/sessions/sessions.ts';
import { annotations } from '../../audit/annotations.ts';
import { inQuery, type Route } from '../../http/route.ts';
import { browserLogin, type BrowserLogin } from '../browser-login.ts';
import { deviceConsentPage, userCodePage } from '../pages/device.ts';
import { donePage } from '../pages/notices.ts';
import type { ShowLogin } from '../pages/login.ts';
import { formRoute, pageRoute, type PageRequest } from '../pages/route.ts';
import { withParameters } from '../authorization-request.ts';
import { shown, userCodeIn } from '../user-code.ts';

export interface DeviceParts {
  readonly directory: Directory;
  readonly sessions: Sessions;
  readonly limiter: LoginLimiter;
  readonly showLogin: ShowLogin;
}

export const devicePath = '/oauth/device';
const action = devicePath;

export function deviceRoutes({ directory, sessions, limiter, showLogin }: DeviceParts): Route[] {
  /** Only who is logged in sees anything. */
  async function withLogin(
    page: PageRequest,
    typed: string,
    go: (login: BrowserLogin) => Promise<void>,
  ): Promise<void> {
    const login = await browserLogin(page, { sessions, directory });
    const next = withParameters(devicePath, { user_code: typed });
    if (login === undefined) showLogin(page, { next });
    else await go(login);
  }

  /** Wrong codes count like failed logins, apart from those of the user. */
  async function find(page: PageRequest, typed: string, { subject }: BrowserLogin): Promise<Session | undefined> {
    const { sourceIP, log, auditID } = page.context;
    const { username } = subject;
    const attempt = { guesses: 'user code', username, address: sourceIP, client: pagesClient.name } as const;
    const again = (problem: string, status: number): undefined =>
      userCodePage(page, { action, userCode: typed.slice(0, 20), problem, status }) as undefined;
    const refuse = (seconds: number): undefined => {
      page.res.setHeader('Retry-After', seconds);
      return again(`Too many wrong codes; try again in ${seconds} s.`, 429);
    };
    return await limiter.during<Session | undefined>(attempt, refuse, async () => {
      const userCode = userCodeIn(typed);
      const session = userCode === undefined ? undefined : await sessions.devices.waitingFor(userCode);
      if (session !== undefined) return session;
      limiter.failed(attempt);
      log.info('device code unknown', { auditID, username, sourceIP });
      return again('There is no such code, or it has expired. Look at your device again.', 400);
    });
  }

  async function decide(
    page: PageRequest,
    session: Session,
    { session: { metadata, spec }, subject }: BrowserLogin,
  ): Promise<void> {
    const { context, form, res } = page;
    const { auditID, sourceIP, log } = context;
    const isAllowed = form.get('decision') === 'allow';
    if (!isAllowed) await sessions.revoke(session.metadata.name);
    else {
      const who = { ...holderOf(spec), authenticatedAt: spec.createdAt, login: metadata.name };
      if (!(await sessions.devices.letIn(session, who)))
        return userCodePage(page, {
          action,
          userCode: '',
          problem: 'That was too late: begin again at the device.',
          status: 400,
        });
    }
    context.audit?.annotate(annotations.client, session.spec.clientID);
    context.audit?.annotate(annotations.session, session.metadata.name);
    context.audit?.annotate(annotations.authorization, isAllowed ? 'Allowed' : 'Refused');
    log.info(isAllowed ? 'device let in' : 'device refused', {
      auditID,
      username: subject.username,
      client: session.spec.clientID,
      sid: session.metadata.name,
      sourceIP,
    });
    if (isAllowed) donePage(res, 'The device is in', 'You may close this page and go on at the device.');
    else donePage(res, 'The device was refused', 'You may close this page.');
  }

  const summary = 'Lets people let a device in (RFC 8628)';
  const userCode = 'As the device shows it';
  const decision = 'allow, or anything else; left out to be asked';
  return [
    pageRoute({ path: devicePath, summary, parameters: [inQuery('user_code', userCode)] }, (page) => {
      const typed = page.context.query.get('user_code') ?? '';
      return withLogin(page, typed, async () => userCodePage(page, { action, userCode: typed.slice(0, 20) }));
    }),
    formRoute({ path: devicePath, summary, fields: { user_code: userCode, decision } }, (page) => {
      const typed = page.form.get('user_code') ?? '';
      return withLogin(page, typed, async (login) => {
        const session = await find(page, typed, login);
        if (session === undefined) return;
        if (page.form.has('decision')) return await decide(page, session, login);
        const { clientID, scope, code } = session.spec;
        deviceConsentPage(page, {
          action,
          userCode: shown(userCodeIn(typed) ?? ''),
          client: clientID,
          scope,
          sourceIP: code?.sourceIP ?? '',
          username: login.subject.username,
        });
      });
    }),
  ];
}
