/** `/oauth/login`: the login page for nothing else, which leads back here, and what that page sends wherever it was shown. */
import { pagesClient } from '../../accounts/directory/clients.ts';
import type { Account } from '../../accounts/directory/account.ts';
import { OwnPassword, type OwnPasswordParts } from '../../accounts/passwords/own.ts';
import { OAuthError } from '../../runtime/errors.ts';
import type { RequestContext, Route } from '../../http/route.ts';
import { beginInBrowser, browserLogin, demandOurs, goOn, type BrowserLoginParts } from '../browser-login.ts';
import { required } from '../form.ts';
import { confirmLogoutPath } from './logout.ts';
import { loginPath, type ShowLogin, newPasswordIn } from '../pages/login.ts';
import { logoutPage } from '../pages/notices.ts';
import { formRoute, pageRoute, type PageRequest } from '../pages/route.ts';
import { passwordRefusal } from '../password-login.ts';

export interface LoginParts extends BrowserLoginParts, OwnPasswordParts {
  readonly showLogin: ShowLogin;
}

export function loginRoutes(parts: LoginParts): Route[] {
  const { login, directory, sessions, showLogin } = parts;
  const ownPassword = new OwnPassword(parts);
  const client = pagesClient.name;

  async function changed(account: Account, current: string, next: string, context: RequestContext): Promise<Account> {
    const { auditID, sourceIP, log } = context;
    const refused = await ownPassword.replace(account, current, next, { client, auditID, sourceIP, log });
    if (refused !== undefined) throw passwordRefusal(refused);
    const now = directory.account(account.username);
    if (now === undefined || now.passwordChangeRequired)
      throw new OAuthError('temporarily_unavailable', 'try again in a moment');
    return now;
  }

  async function logIn(page: PageRequest, next: string): Promise<void> {
    const { form, context } = page;
    const username = required(form, 'username');
    const password = required(form, 'password');
    let verified = await login.verify({ username, password, client, context });
    if (verified.account.passwordChangeRequired) {
      const newPassword = newPasswordIn(form);
      if (newPassword === undefined) return showLogin(page, { next, username, changesPassword: true });
      verified = { account: await changed(verified.account, password, newPassword, context) };
    }
    await beginInBrowser(parts, page, verified);
    goOn(page.res, next);
  }

  const shown = pageRoute({ path: loginPath, summary: 'The login page' }, async (page) => {
    const already = await browserLogin(page, { sessions, directory });
    if (already === undefined) return showLogin(page, { next: loginPath });
    logoutPage(page, {
      title: 'You are logged in',
      action: confirmLogoutPath,
      username: already.subject.username,
      query: '',
      redirectURI: undefined,
    });
  });

  const fields = {
    next: 'Where it goes on',
    username: 'The name of the user, or the e-mail address',
    password: 'The password of the user',
    new_password: 'Where it has to be changed',
    new_password_again: 'The same again',
  };
  const sent = formRoute({ path: loginPath, summary: 'What the login page sends', fields }, async (page) => {
    const { form } = page;
    const next = required(form, 'next');
    demandOurs(next);
    try {
      await logIn(page, next);
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      const { code: status, headers, message } = error;
      const username = form.get('username') ?? '';
      const changesPassword = form.has('new_password');
      const problem = `That did not work: ${message}.`;
      showLogin(page, { next, username, changesPassword, problem, status, headers });
    }
  });
  return [shown, sent];
}
