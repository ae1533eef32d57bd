/** `/oauth/login`: the login page for nothing else, which leads back here, and what that page sends wherever it was shown. */
import { pagesClient } from '../accounts/built-in-clients.ts';
import type { Account } from '../accounts/directory/account.ts';
import { problemWith } from '../accounts/password-rules.ts';
import { isChangeable, type PasswordStore } from '../accounts/password-store.ts';
import { OAuthError } from '../errors.ts';
import type { Route } from '../http/route.ts';
import { beginInBrowser, browserLogin, demandOurs, type BrowserLoginParts } from './browser-login.ts';
import { required } from './form.ts';
import { confirmLogoutPath } from './logout.ts';
import { loginPath, type ShowLogin } from './pages/login.ts';
import { logoutPage } from './pages/logout.ts';
import { formRoute, pageRoute, type PageRequest } from './pages/route.ts';

export interface LoginParts extends BrowserLoginParts {
  readonly passwordStore: PasswordStore;
  readonly showLogin: ShowLogin;
}

export function loginRoutes(parts: LoginParts): Route[] {
  const { login, directory, passwordStore, sessions, showLogin } = parts;
  async function changed(account: Account, password: string, current: string): Promise<Account> {
    if (!isChangeable(account))
      throw new OAuthError(
        'invalid_request',
        'the password stands in the cluster configuration object, and is changed there',
      );
    const problem = await problemWith(password, account, current);
    if (problem !== undefined) throw new OAuthError('invalid_request', `the new password ${problem}`);
    await passwordStore.change(account, password, true);
    const now = directory.account(account.username);
    if (now === undefined || now.passwordChangeRequired)
      throw new OAuthError('temporarily_unavailable', 'try again in a moment');
    return now;
  }

  async function logIn(page: PageRequest, next: string): Promise<void> {
    const { form, context } = page;
    const username = required(form, 'username');
    const password = required(form, 'password');
    const newPassword = form.get('new_password');
    let verified = await login.verify({ username, password, client: pagesClient.name, context });
    if (verified.account.passwordChangeRequired) {
      if (newPassword === undefined) return showLogin(page, { next, username, changesPassword: true });
      // Whoever mistypes what cannot be seen would be locked out.
      if (form.get('new_password_again') !== newPassword)
        throw new OAuthError('invalid_request', 'the new password is not the same both times');
      verified = { account: await changed(verified.account, newPassword, password) };
    }
    await beginInBrowser(parts, page, verified, next);
  }

  const shown = pageRoute({ path: loginPath, summary: 'The login page' }, async (page) => {
    const already = await browserLogin(page.req, { sessions, directory });
    if (already === undefined) return showLogin(page, { next: loginPath });
    logoutPage(page, {
      title: 'You are logged in',
      action: confirmLogoutPath,
      username: already.subject.username,
      query: '',
      redirectURI: undefined,
    });
  });

  const sent = formRoute({ path: loginPath, summary: 'What the login page sends' }, async (page) => {
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
