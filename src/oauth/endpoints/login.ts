/** Serves `/oauth/login`, the login page and its form. Other pages also show the form. */
import { pagesClient } from '../../accounts/directory/clients.ts';
import type { Account } from '../../accounts/directory/account.ts';
import { OwnPassword, type OwnPasswordParts } from '../../accounts/passwords/own.ts';
import { annotations } from '../../audit/annotations.ts';
import { OAuthError } from '../../runtime/errors.ts';
import type { RequestContext, Route } from '../../http/route.ts';
import { described, text } from '../../http/schema.ts';
import { browserLogin, assertOwnPage, logInBrowser, resume, type BrowserLoginParts } from '../browser-login.ts';
import type { Form } from '../form.ts';
import { oauthParameters } from '../parameters.ts';
import { confirmLogoutPath } from './logout.ts';
import { assertConfirmed, loginPath, type ShowLogin } from '../pages/login.ts';
import { logoutPage } from '../pages/notices.ts';
import { sentence } from '../pages/page.ts';
import { formRoute, pageRoute, type PageRequest } from '../pages/route.ts';
import { passwordRefusal } from '../password-login.ts';

export interface LoginParts extends BrowserLoginParts, OwnPasswordParts {
  readonly showLogin: ShowLogin;
}

const credentials = {
  username: described('Username or e-mail address', text),
  password: described('Password of the user', text),
  new_password: described('New password, if the password must be changed', text.optional()),
  new_password_again: described('New password again, to confirm it', text.optional()),
};
const { parse } = oauthParameters(credentials);

export function loginRoutes(parts: LoginParts): Route[] {
  const { login, directory, sessions, showLogin } = parts;
  const ownPassword = new OwnPassword(parts);
  const client = pagesClient.name;

  async function changePassword(
    account: Account,
    current: string,
    next: string,
    context: RequestContext,
  ): Promise<Account> {
    const { auditID, sourceIP, log } = context;
    const refused = await ownPassword.replace(account, current, next, { client, auditID, sourceIP, log });
    if (refused !== undefined) throw passwordRefusal(refused);
    const now = directory.account(account.username);
    if (now === undefined || now.passwordChangeRequired)
      throw new OAuthError('temporarily_unavailable', 'the new password is not active yet; try again in a moment');
    return now;
  }

  async function logIn(page: PageRequest, form: Form, next: string): Promise<void> {
    const typed = parse(form);
    const { username, password, new_password: newPassword } = typed;
    let verified = await login.verify({ username, password, client, context: page.context });
    if (verified.account.passwordChangeRequired) {
      page.context.annotate(annotations.login, 'PasswordChangeRequired');
      if (newPassword === undefined) return showLogin(page, { next, username, changesPassword: true });
      assertConfirmed(typed);
      verified = { account: await changePassword(verified.account, password, newPassword, page.context) };
    }
    await logInBrowser(parts, page, verified);
    resume(page.res, next);
  }

  const shown = pageRoute({
    path: loginPath,
    summary: 'Show the login page',
    description: 'Shows a logout page instead if the user is already logged in.',
    async handler(page) {
      const already = await browserLogin(page, { sessions, directory });
      if (already === undefined) return showLogin(page, { next: loginPath });
      logoutPage(page, {
        title: 'You are logged in',
        action: confirmLogoutPath,
        username: already.subject.username,
        query: '',
        redirectURI: undefined,
      });
    },
  });

  const sent = formRoute({
    path: loginPath,
    summary: 'Log in with a password',
    description:
      'Receives the form of the login page, wherever the page was shown. Sets the login cookie and redirects to ' +
      '`next`; a failed login shows the page again. If the password must be changed, the page first shows fields ' +
      'for a new one. Too many failed logins return 429 with `Retry-After`.',
    fields: {
      next: described(
        'Path to return to: `/oauth/account`, `/oauth/authorize`, `/oauth/device` or `/oauth/login`, with its query',
        text,
      ),
    },
    furtherFields: credentials,
    async handler(page) {
      const { form, fields } = page;
      const { next } = fields;
      assertOwnPage(next);
      try {
        await logIn(page, form, next);
      } catch (error) {
        if (!(error instanceof OAuthError)) throw error;
        const { code: status, headers } = error;
        const typed = { username: form.get('username') ?? '', changesPassword: form.has('new_password') };
        showLogin(page, { next, ...typed, problem: sentence(error.message), status, headers });
      }
    },
  });
  return [shown, sent];
}
